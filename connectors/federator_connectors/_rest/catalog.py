"""``Catalog`` of one Lance REST server."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from federator.connector import (
    Catalog,
    Confirm,
    Internal,
    InvalidInput,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.fan_out import FanOut
from federator.connector.preconditions import check_namespace_update, check_table
from federator.lance.circles import DEPLOYMENT_IDENTITY, find_deployment
from federator.lance.facade_mapping import namespace_from_properties, namespace_to_properties
from federator.model import ROOT, Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord, canonical_location
from federator_connectors._http.authentication import FixedHeaders
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import TlsOptions
from federator_connectors._locations import join_levels, require_location
from federator_connectors._rest import crawl
from federator_connectors._rest.errors import error_for_lance_response, general_error_mapper
from federator_connectors._rest.general_protocol import GeneralProtocol
from federator_connectors._rest.lance_protocol import LanceProtocol
from federator_connectors._rest.protocol import RestProtocol, TableDescription
from federator_connectors._rest.settings import GENERAL, RestSettings

_IDENTIFYING = ("table_type", "external")


class RestCatalog(Catalog):
    """The namespaces and tables of one server, with either protocol, by at most ``client.pool-size`` connections. Thread-safe."""

    thread_safe = True

    def __init__(self, source: str, settings: RestSettings) -> None:
        self.source = source
        self._root = settings.root_uri if settings.root else None
        self._protocol = _build_protocol(source, settings)
        self._depth = settings.depth
        self._fan_out = FanOut(settings.pool_size, source)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:  # noqa: ARG002 - the server is one deployment
        """Return the deployment of this service that the server is. None for any other server."""
        deployment = find_deployment(self, ROOT)
        return None if deployment is None else Identity.of(f"{DEPLOYMENT_IDENTITY}{deployment}")

    def list_namespaces(self, parent: Path) -> list[str]:
        return self._confirm_listing(parent, self._protocol.list_namespaces(parent))

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        return namespace_from_properties(self.source, path, self._protocol.get_namespace(path))

    def list_tables(self, namespace: Path) -> list[str]:
        return self._confirm_listing(namespace, self._protocol.list_tables(namespace))

    def describe_table(self, path: Path) -> TableRecord:
        return self._record(path, self._protocol.get_table(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        self._protocol.create_namespace(record.path, namespace_to_properties(record))
        return self.describe_namespace(record.path)

    def drop_namespace(self, path: Path) -> None:
        self._protocol.drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        check_namespace_update(self.describe_namespace(before.path), before, after)
        old, new = namespace_to_properties(before), namespace_to_properties(after)
        changed = {key: value for key, value in new.items() if old.get(key) != value}
        self._protocol.alter_namespace(before.path, changed, sorted(set(old) - set(new)))
        return self.describe_namespace(before.path)

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declare a table. If the server chose another location, deregister the table and raise Unsupported.

        Only a declaration that the response describes is removed. Raise ConcurrentModification if the server has another one.
        """
        self._require_new(record)
        answered = self._protocol.declare_table(record.path, record.location, record.properties)
        try:
            created = self.describe_table(record.path)
        except TableNotFound as error:
            raise Internal(
                f"{self.source}: the server reported the table {record.key} as declared and does not have it: {error.message}"
            ) from None
        require_location(created, replace(record, location=answered or record.location or created.location))
        if record.location and created.canonical != canonical_location(record.location):
            with suppress(TableNotFound):
                self._protocol.deregister_table(record.path)
            raise Unsupported(
                f"{self.source}: the server declared {record.key} at {created.location} instead of {record.location}",
                hint="declare the table without a location: the server manages its own locations",
            )
        return created

    def _require_new(self, record: TableRecord) -> None:
        """Raise TableAlreadyExists if the server has the table: some servers answer a second declaration like the first one."""
        try:
            existing = self.describe_table(record.path)
        except (TableNotFound, InvalidInput, Unsupported):
            return
        raise TableAlreadyExists(f"{self.source}: the table {record.key} exists, at {existing.location}")

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        if after.canonical != before.canonical or after.doc != before.doc:
            raise Unsupported(f"{self.source}: the server can only change the properties of {before.key}")
        check_table(self.describe_table(before.path), before, confirm)
        changed = {key: value for key, value in after.properties.items() if before.properties.get(key) != value}
        removed = sorted(set(before.properties) - set(after.properties))
        self._protocol.alter_table(before.path, changed, removed)
        return self.describe_table(before.path)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Remove a table that is unchanged since ``expected``.

        Raise Unsupported if the server reports success and still has the table.
        """
        check_table(self.describe_table(expected.path), expected, confirm)
        self._protocol.deregister_table(expected.path)
        if not self.observe(expected.path).is_absent:
            raise Unsupported(
                f"{self.source}: the server reported {expected.key} as deregistered and still has the table",
                hint="check whether it is pylance's own server, which lists every directory of its root as a table",
            )

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        check_table(self.describe_table(before.path), before, unconditional)
        self._protocol.rename_table(before.path, new_path)
        return self.describe_table(new_path)

    def default_location(self, path: Path) -> str | None:
        """Return ``<the namespace's location, else rest.root/levels>/<table>.lance``. None without both: the server chooses."""
        parent = self.describe_namespace(path[:-1]).location
        if not parent and self._root:
            return join_levels(self._root, (*path[:-1], f"{path[-1]}.lance"))
        return join_levels(parent.rstrip("/"), [f"{path[-1]}.lance"]) if parent else None

    def plan_shards(self) -> Sequence[Shard]:
        return crawl.plan_shards(self._protocol, self._fan_out, self._depth)

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        return crawl.read_shard(self, shard, self._fan_out, self._depth)

    def ping(self) -> str:
        self._protocol.list_namespaces(ROOT)
        return ""

    def close(self) -> None:
        """Close the idle connections. The catalog stays usable, also for the threads that are using it."""
        self._protocol.close()

    def _confirm_listing(self, namespace: Path, names: list[str]) -> list[str]:
        # The listing of a missing namespace may be empty. The namespace is read after the listing, so that one that was dropped
        # meanwhile does not count as empty.
        if not names and namespace != ROOT:
            self._protocol.get_namespace(namespace)
        return names

    def _record(self, path: Path, description: TableDescription) -> TableRecord:
        properties = {key: value for key, value in description.properties.items() if key.lower() not in _IDENTIFYING}
        record = TableRecord(self.source, path, description.location, properties)
        return replace(record, kind=Kind.MANAGED_TABLE) if description.is_managed else record


def _build_protocol(source: str, settings: RestSettings) -> RestProtocol:
    general = settings.protocol == GENERAL
    connect_timeout, read_timeout = settings.timeouts
    client = HttpClient(
        source,
        settings.uri,
        error_of=general_error_mapper() if general else error_for_lance_response,
        authentication=FixedHeaders(settings.all_headers),
        limits=settings.limits,
        tls=TlsOptions(
            verify=settings.tls_verify, ca=settings.tls_ca, certificate=settings.tls_certificate, key=settings.tls_key
        ),
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        connections=settings.pool_size,
    )
    if general:
        return GeneralProtocol(client, page_size=settings.page_size, drop_keeps_data=settings.drop_keeps_data)
    return LanceProtocol(client, delimiter=settings.delimiter, page_size=settings.page_size, root=settings.root)
