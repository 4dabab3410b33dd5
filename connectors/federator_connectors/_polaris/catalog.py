"""One Polaris server, opened: the operations on single objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from federator.connector import (
    Catalog,
    CatalogError,
    Confirm,
    InvalidInput,
    PermissionDenied,
    Shard,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.altering import check_namespace, check_table
from federator.model import ROOT, Coverage, Identity, NamespaceRecord, Path, Record, TableRecord, path_key
from federator_connectors._polaris import records
from federator_connectors._polaris.client import Client, Native
from federator_connectors._polaris.crawl import Crawl
from federator_connectors._polaris.fan import Fan
from federator_connectors._polaris.settings import PolarisSettings


class PolarisCatalog(Catalog):
    """Paths are ``(catalog, namespace, ..., table)``. Safe for threads."""

    def __init__(self, source: str, settings: PolarisSettings) -> None:
        self.source = source
        self._settings = settings
        self._client = Client(source, settings)
        self._fan = Fan(settings.threads)
        self._crawl = Crawl(source, self._client, self._fan, settings.catalogs)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity:  # noqa: ARG002 - one answer has all catalogs
        """The realm, and when each catalog was created, where the management API tells this principal."""
        named = self._settings.catalogs
        try:
            created = self._client.creations()
        except PermissionDenied:
            if not named:
                raise
            created = {}
        scopes = {path_key((name,)): created.get(name, "") for name in named or created}
        return Identity.of(f"realm {self._settings.realm or 'of the server'}", scopes)

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        if parent == ROOT:
            return sorted(self._settings.catalogs or self._client.catalogs())
        return sorted(self._client.namespaces(parent))

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        if len(path) == 1:
            return records.catalog_record(self.source, path[0], self._client.catalog(path[0]))
        return records.namespace_record(self.source, path, self._client.namespace(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        if len(record.path) < 2:
            raise Unsupported(f"{self.source}: catalogs are made by Polaris's administrators, with their storage")
        made = self._client.create_namespace(record.path, records.namespace_properties(record))
        return records.namespace_record(self.source, record.path, made)

    def drop_namespace(self, path: Path) -> None:
        if len(path) < 2:
            raise Unsupported(f"{self.source}: catalogs are dropped by Polaris's administrators")
        self._client.drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """The properties alone: a namespace has no doc of its own. Polaris compares nothing between our look and our write."""
        if len(before.path) < 2:
            raise Unsupported(f"{self.source}: catalogs are altered by Polaris's administrators")
        check_namespace(self.describe_namespace(before.path), before, after, doc=False)
        changed = {key: value for key, value in after.properties.items() if before.properties.get(key) != value}
        self._client.alter_namespace(before.path, changed, sorted(set(before.properties) - set(after.properties)))
        return self.describe_namespace(before.path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        """Polaris lists identifiers, so that each generic table is asked for its format.

        One that this principal may not read is listed, as it is there; one that has just gone is not. Any other failure fails the
        whole listing.
        """
        if len(namespace) < 2:
            self.describe_namespace(namespace)
            return []
        paths = [(*namespace, name) for name in sorted(self._client.tables(namespace))]
        return [path[-1] for path, found in self._fan.each(self._client.table, paths) if _counts(found)]

    def describe_table(self, path: Path) -> TableRecord:
        table = self._client.table(path)
        if not records.is_lance(table):
            raise InvalidInput(f"{self.source}: {path_key(path)} is not a Lance table (format {table.get('format')!r})")
        return records.table_record(self.source, path, table)

    def declare_table(self, record: TableRecord) -> TableRecord:
        wanted = replace(record, location=record.location or self.default_location(record.path))
        made = self._client.create_table(record.path, records.new_table(wanted))
        return records.table_record(self.source, record.path, made)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Looked at just before: Polaris itself compares nothing."""
        check_table(self.describe_table(expected.path), expected, confirm)
        self._client.drop_table(expected.path)

    def native(self, path: Path) -> dict[str, Any]:
        """The generic table as Polaris has it, and under ``grants`` those on the table itself, each with its catalog role.

        Raises Unsupported to a principal who may not see the grants, since they go with the table.
        """
        table = self._client.table(path)
        try:
            return {**table, "grants": self._client.grants(path)}
        except PermissionDenied as error:
            raise Unsupported(f"{error.message}; they would be lost if the table were declared anew", hint=error.hint) from None

    def lost_by_recreation(self, native: Mapping[str, Any]) -> str | None:
        held = sorted(f"{grant['privilege']} of the catalog role {grant['role']}" for grant in native["grants"])
        return f"grants on the table: {', '.join(held)}" if held else None

    def default_location(self, path: Path) -> str:
        name = path[-1]
        if "/" in name:
            # It would be the place of another table, in a namespace inside.
            raise InvalidInput(f"{self.source}: a table whose name has a slash needs a location", hint="give one")
        above = self.describe_namespace(path[:-1]).location
        if above is None:
            above = "/".join([(self._settings.root or str(FilePath.cwd())).rstrip("/"), *path[:-1]])
        return f"{above.rstrip('/')}/{name}.lance"

    # The crawl

    def shards(self) -> Sequence[Shard]:
        return self._crawl.shards()

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        return self._crawl.read(shard)

    def ping(self) -> str:
        if self._settings.catalogs:
            self._client.catalog(self._settings.catalogs[0])
        else:
            self._client.catalogs()
        return ""

    def close(self) -> None:
        self._fan.close()
        self._client.close()


def _counts(found: Native | CatalogError) -> bool:
    if isinstance(found, TableNotFound):
        return False
    if isinstance(found, PermissionDenied):
        return True
    if isinstance(found, CatalogError):
        raise found
    return records.is_lance(found)
