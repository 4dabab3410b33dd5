"""``Catalog`` of one Polaris server: the operations on single objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from federator.connector import Confirm, InvalidInput, NameNotAllowed, Observation, PermissionDenied, Unsupported, unconditional
from federator.connector.preconditions import check_table
from federator.model import Identity, NamespaceRecord, Path, TableRecord, path_key
from federator_connectors._iceberg.base_catalog import NamespaceCatalog
from federator_connectors._locations import require_location
from federator_connectors._polaris import records
from federator_connectors._polaris.client import PolarisClient
from federator_connectors._polaris.settings import REFUSED_NAMES, PolarisSettings

# Properties that every version refuses.
_RESERVED = "polaris."


@contextmanager
def _name_refusals(record: NamespaceRecord | TableRecord) -> Iterator[None]:
    """Raise NameNotAllowed instead of InvalidInput for a name that some versions refuse."""
    try:
        yield
    except InvalidInput as error:
        is_name = any(re.fullmatch(rule, record.path[-1]) for rule in REFUSED_NAMES)
        if not is_name or any(key.startswith(_RESERVED) for key in record.properties):
            raise
        raise NameNotAllowed(error.message, hint=error.hint) from None


class PolarisCatalog(NamespaceCatalog):
    """A Polaris server. Paths are ``(catalog, namespace, ..., table)``. Thread-safe."""

    def __init__(self, source: str, settings: PolarisSettings) -> None:
        self._settings = settings
        self._client = PolarisClient(source, settings)
        super().__init__(source, self._client, catalogs=settings.catalogs, threads=settings.threads, root=settings.root_uri)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity:  # noqa: ARG002 - one response has all catalogs
        """Return the realm, and each catalog's creation time if the source's principal may use the management API."""
        configured = self._settings.catalogs
        try:
            created = self._client.list_creation_times()
        except PermissionDenied:
            if not configured:
                raise
            created = {}
        scopes = {path_key((name,)): created.get(name, "") for name in configured or created}
        return Identity.of(f"realm {self._settings.realm or 'of the server'}", scopes)

    def list_catalogs(self) -> list[NamespaceRecord]:
        return [records.catalog_record(self.source, name, native) for name, native in self._client.list_catalogs().items()]

    def describe_catalog(self, name: str) -> NamespaceRecord:
        return records.catalog_record(self.source, name, self._client.get_catalog(name))

    def list_all_tables(self, namespace: Path) -> list[str]:
        return self._client.list_tables(namespace)

    def read_table(self, path: Path) -> TableRecord | None:
        table = self._client.get_table(path)
        return records.table_record(self.source, path, table) if records.is_lance(table) else None

    def describe_table(self, path: Path) -> TableRecord:
        table = self._client.get_table(path)
        if not records.is_lance(table):
            raise InvalidInput(f"{self.source}: {path_key(path)} is not a Lance table (format {table.get('format')!r})")
        return records.table_record(self.source, path, table)

    def observe(self, path: Path) -> Observation:
        """Observe one table. An Iceberg table or a view of its name is foreign: no listing of generic tables has it."""
        observation = super().observe(path)
        kind = self._client.find_iceberg_object(path) if observation.is_absent else None
        return Observation(foreign=f"an Iceberg {kind}") if kind else observation

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        with _name_refusals(record):
            return super().create_namespace(record)

    def declare_table(self, record: TableRecord) -> TableRecord:
        desired = replace(record, location=record.location or self.default_location(record.path))
        with _name_refusals(record):
            created = self._client.create_table(record.path, records.build_table_request(desired))
        return require_location(records.table_record(self.source, record.path, created), desired)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Remove a table that is unchanged since ``expected``.

        Polaris does not compare: a change between this method's read and its call is removed with the table.
        """
        check_table(self.describe_table(expected.path), expected, confirm)
        self._client.drop_table(expected.path)

    def read_native(self, path: Path) -> dict[str, Any]:
        """Return the generic table with all fields, and the grants on it, with their catalog roles, under ``grants``.

        Raise Unsupported if the grants cannot be listed, because they are lost with the table.
        """
        table = self._client.get_table(path)
        try:
            return {**table, "grants": self._client.list_grants(path)}
        except (PermissionDenied, Unsupported) as error:
            raise Unsupported(
                f"{error.message}; the grants would be lost if the table were recreated", hint=error.hint
            ) from None

    def describe_recreate_loss(self, native: Mapping[str, Any]) -> str | None:
        grants = sorted(f"{grant['privilege']} of the catalog role {grant['role']}" for grant in native["grants"])
        return f"grants on the table: {', '.join(grants)}" if grants else None

    def ping(self) -> str:
        if self._settings.catalogs:
            for name in self._settings.catalogs:
                self._client.get_catalog(name)
        else:
            self._client.list_catalogs()
        return ""
