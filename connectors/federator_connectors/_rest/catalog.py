"""One Lance REST server as a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from federator.connector import (
    Catalog,
    Confirm,
    Internal,
    Shard,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.altering import check_namespace, check_table
from federator.connector.answers import namespace_properties, namespace_record
from federator.model import ROOT, Coverage, Kind, NamespaceRecord, Path, Record, TableRecord, canonical_location
from federator_connectors._http.answer import Tls
from federator_connectors._http.client import HttpClient
from federator_connectors._http.signin import FixedHeaders
from federator_connectors._rest import crawl
from federator_connectors._rest.errors import general_error, lance_error
from federator_connectors._rest.general import GeneralProtocol
from federator_connectors._rest.lance import LanceProtocol
from federator_connectors._rest.protocol import Protocol, Told
from federator_connectors._rest.settings import GENERAL, RestSettings

_IDENTIFYING = ("table_type", "external")


class RestCatalog(Catalog):
    """The namespaces and tables of one server, over either protocol. Thread-safe."""

    def __init__(self, source: str, settings: RestSettings) -> None:
        self.source = source
        self._root = settings.root.rstrip("/") if settings.root else None
        self._protocol = _protocol(source, settings)
        self._fan_out = crawl.FanOut(settings.pool_size)

    def list_namespaces(self, parent: Path) -> list[str]:
        return self._proven(parent, self._protocol.namespaces(parent))

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        return namespace_record(self.source, path, self._protocol.namespace(path))

    def list_tables(self, namespace: Path) -> list[str]:
        return self._proven(namespace, self._protocol.tables(namespace))

    def describe_table(self, path: Path) -> TableRecord:
        return self._record(path, self._protocol.table(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        self._protocol.create_namespace(record.path, namespace_properties(record))
        return self.describe_namespace(record.path)

    def drop_namespace(self, path: Path) -> None:
        self._protocol.drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        check_namespace(self.describe_namespace(before.path), before, after)
        old, new = namespace_properties(before), namespace_properties(after)
        changed = {key: value for key, value in new.items() if old.get(key) != value}
        self._protocol.alter_namespace(before.path, changed, sorted(set(old) - set(new)))
        return self.describe_namespace(before.path)

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Raises Unsupported where the server puts the table elsewhere than at its location; it is then deregistered again."""
        self._protocol.declare(record.path, record.location, record.properties)
        try:
            made = self.describe_table(record.path)
        except TableNotFound as error:
            raise Internal(
                f"{self.source}: the server took the table {record.key} and does not know it: {error.message}"
            ) from None
        if record.location and made.canonical != canonical_location(record.location):
            with suppress(TableNotFound):
                self._protocol.deregister(record.path)
            raise Unsupported(
                f"{self.source}: the server puts {record.key} at {made.location} instead of {record.location}",
                hint="it manages its own locations: declare without one",
            )
        return made

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        if after.canonical != before.canonical or after.doc != before.doc:
            raise Unsupported(f"{self.source}: the server can change the properties of {before.key} only")
        check_table(self.describe_table(before.path), before, confirm)
        changed = {key: value for key, value in after.properties.items() if before.properties.get(key) != value}
        removed = sorted(set(before.properties) - set(after.properties))
        self._protocol.alter(before.path, changed, removed)
        return self.describe_table(before.path)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Raises Unsupported where the server says that it did so and still has the table."""
        check_table(self.describe_table(expected.path), expected, confirm)
        self._protocol.deregister(expected.path)
        if not self.observe(expected.path).absent:
            raise Unsupported(
                f"{self.source}: the server took the deregistration of {expected.key} and still has the table",
                hint="pylance's own server shows every directory of its root as a table",
            )

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        check_table(self.describe_table(before.path), before, unconditional)
        self._protocol.rename(before.path, new_path)
        return self.describe_table(new_path)

    def default_location(self, path: Path) -> str | None:
        """``<the namespace's location, else rest.root/levels>/<table>.lance``; None without either: the server decides."""
        above = self.describe_namespace(path[:-1]).location
        if not above and self._root:
            above = "/".join((self._root, *path[:-1]))
        return f"{above.rstrip('/')}/{path[-1]}.lance" if above else None

    def shards(self) -> Sequence[Shard]:
        return crawl.shards(self._protocol.namespaces)

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        return crawl.read(self, shard, self._fan_out)

    def ping(self) -> str:
        self._protocol.namespaces(ROOT)
        return ""

    def close(self) -> None:
        self._fan_out.close()
        self._protocol.close()

    def _proven(self, namespace: Path, names: list[str]) -> list[str]:
        # An empty list may be a missing namespace's. Looked at afterwards, so that one dropped meanwhile does not look empty.
        if not names and namespace != ROOT:
            self._protocol.namespace(namespace)
        return names

    def _record(self, path: Path, told: Told) -> TableRecord:
        properties = {key: value for key, value in told.properties.items() if key.lower() not in _IDENTIFYING}
        record = TableRecord(self.source, path, told.location, properties)
        return replace(record, kind=Kind.MANAGED_TABLE) if told.managed else record


def _protocol(source: str, settings: RestSettings) -> Protocol:
    general = settings.protocol == GENERAL
    client = HttpClient(
        source,
        settings.uri,
        error_of=general_error() if general else lance_error,
        sign_in=FixedHeaders(settings.all_headers),
        limits=settings.limits,
        tls=Tls(verify=settings.tls_verify, ca=settings.tls_ca, certificate=settings.tls_certificate, key=settings.tls_key),
    )
    if general:
        return GeneralProtocol(client, page_size=settings.page_size, drop_keeps_data=settings.drop_keeps_data)
    return LanceProtocol(client, delimiter=settings.delimiter, page_size=settings.page_size, root=settings.root)
