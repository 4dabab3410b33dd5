"""``Catalog`` of one Glue Data Catalog: the operations on single objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

from federator.connector import (
    Catalog,
    CatalogError,
    Confirm,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    TemporaryCredentials,
    Unsupported,
    unconditional,
)
from federator.connector.preconditions import check_namespace_update, check_table
from federator.model import ROOT, Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord, path_key
from federator_connectors._glue import crawl, lake_formation, records
from federator_connectors._glue.catalog_tree import BULK_CACHE_SECONDS, CatalogNode, CatalogTree
from federator_connectors._glue.client import PAGE_SIZE, Clients, iter_items
from federator_connectors._glue.errors import translate_aws_errors
from federator_connectors._glue.settings import GlueSettings
from federator_connectors._locations import join_levels


class GlueCatalog(Catalog):
    """A Glue Data Catalog.

    Records and listings have canonical paths, ``(account, database, table)`` or ``(catalog, ..., database, table)``. Every method
    also accepts ``(database, table)`` for the root catalog. Names of databases and tables are in lower case, as Glue stores them.
    Thread-safe.
    """

    thread_safe = True

    def __init__(self, source: str, settings: GlueSettings, clients: Clients | None = None) -> None:
        self.source = source
        self._settings = settings
        self._clients = clients or Clients(source, settings)
        self._tree = CatalogTree(source, self._clients, settings.catalog_id)

    def canonical_path(self, path: Path) -> Path:
        """Return the path that records of this object have.

        ``(database,)`` and ``(database, table)`` get the account as first level, unless their first level is the name of a catalog.
        Names of databases and tables are folded to lower case; names of catalogs get the catalog's spelling. A path of three or
        more levels that does not start with a catalog names no object and is returned unchanged. Raise CatalogError if the
        catalogs cannot be listed.
        """
        return self._tree.canonicalize(path, max_age=BULK_CACHE_SECONDS)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        """Return account, region and catalog id, and the targets of databases that are resource links.

        None if the account cannot be determined.
        """
        account = self._tree.account()
        if account is None:
            return None
        region = self._clients.reads.meta.region_name
        text = f"account {account}, region {region}, catalog {self._settings.catalog_id or account}"
        return Identity.of(text, dict(self._links(namespaces)))

    def _links(self, namespaces: Collection[Path] | None) -> Iterator[tuple[str, str]]:
        """Yield the path key and the target of each database that is a resource link; None selects the root catalog's databases."""
        if namespaces is None:
            root = self._tree.root
            with self._translate_errors("listing databases in", root.path, missing=NamespaceNotFound):
                databases = iter_items(self._clients.reads.get_databases, "DatabaseList", MaxResults=PAGE_SIZE, **root.scope)
                yield from (
                    pair for native in databases for pair in records.resource_link((*root.path, native["Name"]), native)
                )
            return
        for path in {self._canonicalize(namespace) for namespace in namespaces}:
            with suppress(NamespaceNotFound):
                if len(path) > 1 and self._tree.find(path) is None:
                    yield from records.resource_link(path, self._native_database(path))

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        path = self._canonicalize(parent)
        if path == ROOT:
            return sorted([*self._tree.root.path, *self._tree.children(self._tree.root)])
        node = self._catalog_at(path)
        return [] if node is None else self._children_of(node)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        path = self._canonicalize(path)
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        node = self._tree.find(path, refresh=len(path) == 1)
        if node is None:
            try:
                return self._describe_database(path)
            except NamespaceNotFound:
                node = self._tree.find(path)
                if node is None:
                    raise
        return records.catalog_record(self.source, node.path, self._tree.describe(node))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Create a catalog for a path of one level, else a database: Glue has no call for a catalog inside a catalog."""
        path = self._canonicalize(record.path)
        if len(record.path) == 1:
            return self._create_catalog(record, path)
        if self._tree.find(path):
            raise NamespaceAlreadyExists(f"{self.source}: {path_key(path)} is a catalog")
        parent, _ = self._locate_database(path)
        database_input: Any = records.build_database_input(replace(record, path=path))
        with self._translate_errors("creating database", path, missing=NamespaceNotFound, existing=NamespaceAlreadyExists):
            self._clients.writes.create_database(DatabaseInput=database_input, **parent.scope)
        return self.describe_namespace(path)

    def drop_namespace(self, path: Path) -> None:
        """Drop an empty database or catalog.

        Glue drops a database with its tables. Two listings therefore prove directly before the drop that it is empty; a single
        response without tables may be faulty. The drop also removes tables that other clients create after the listings, and
        tables that the catalog credentials may not list.
        """
        path = self._canonicalize(path)
        if path in (ROOT, self._tree.root.path):
            raise InvalidInput(f"{self.source}: the root catalog cannot be dropped")
        node = self._catalog_at(path)
        for _ in range(2):
            names = self._children_of(node) if node else (table["Name"] for table in self._iter_native_tables(path))
            child = next(iter(names), None)
            if child is not None:
                raise NamespaceNotEmpty(f"{self.source}: {path_key(path)} is not empty: it contains {child}")
        if node:
            with self._translate_errors("dropping catalog", path, missing=NamespaceNotFound):
                self._clients.writes.delete_catalog(CatalogId=node.catalog_id)
            self._tree.clear_cache()
            return
        parent, name = self._locate_database(path)
        with self._translate_errors("dropping database", path, missing=NamespaceNotFound):
            self._clients.writes.delete_database(Name=name, **parent.scope)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Update the properties and the doc of a database or a child catalog.

        Glue does not compare: a change between this method's read and its write is overwritten.
        """
        path = self._canonicalize(before.path)
        if path in (ROOT, self._tree.root.path):
            raise Unsupported(f"{self.source}: the account's own catalog has no properties")
        node = self._catalog_at(path)
        if node is not None:
            native = self._tree.describe(node)
            check_namespace_update(records.catalog_record(self.source, node.path, native), before, after)
            catalog: Any = records.build_changed_namespace_input(native, after, self._input_shape("CatalogInput"))
            with self._translate_errors("updating catalog", path, missing=NamespaceNotFound):
                self._clients.writes.update_catalog(CatalogId=node.catalog_id, CatalogInput=catalog)
            self._tree.clear_cache()
            return self.describe_namespace(path)
        parent, name = self._locate_database(path)
        native = self._native_database(path)
        check_namespace_update(records.database_record(self.source, path, native), before, after)
        database: Any = records.build_changed_namespace_input(native, after, self._input_shape("DatabaseInput"))
        with self._translate_errors("updating database", path, missing=NamespaceNotFound):
            self._clients.writes.update_database(Name=name, DatabaseInput=database, **parent.scope)
        return self.describe_namespace(path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        path = self._canonicalize(namespace)
        if path == ROOT or self._catalog_at(path, verify=True):
            return []
        return sorted(table["Name"] for table in self._iter_native_tables(path) if records.table_kind(table) is Kind.TABLE)

    def describe_table(self, path: Path) -> TableRecord:
        """Return the record of a table. Raise TableNotFound also for a missing database: Glue does not distinguish the two."""
        path = self._canonicalize(path)
        return self._lance_record(path, self._native_table(path))

    def issue_credentials(self, record: TableRecord, *, writes: bool) -> TemporaryCredentials:
        """Return Lake Formation's temporary credentials for a table."""
        path = self._canonicalize(record.path)
        parent, _ = self._locate_table_database(path, TableNotFound)
        return lake_formation.issue_credentials(self._clients, parent.catalog_id, path, record, writes=writes)

    def declare_table(self, record: TableRecord) -> TableRecord:
        path = self._canonicalize(record.path)
        parent, database = self._locate_table_database(path, NamespaceNotFound)
        self._describe_database(path[:-1])
        table_input: Any = records.build_table_input(
            replace(record, path=path, location=record.location or self.default_location(path))
        )
        with self._translate_errors("declaring table", path, missing=NamespaceNotFound, existing=TableAlreadyExists):
            self._clients.writes.create_table(DatabaseName=database, TableInput=table_input, **parent.scope)
        try:
            return self.describe_table(path)
        except TableNotFound as error:
            raise Internal(f"{self.source}: Glue reported {path_key(path)} as declared and does not have it") from error

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        """Update a table that is unchanged since ``before``.

        This method compares the content. Glue compares the version, which detects a change between the read and the write.
        """
        path = self._canonicalize(before.path)
        parent, database = self._locate_table_database(path, TableNotFound)
        native = self._native_table(path)
        current = self._lance_record(path, native)
        table_input = records.build_changed_table_input(native, after, self._input_shape("TableInput"))
        request: Any = {"DatabaseName": database, "TableInput": table_input, **parent.scope}
        if native.get("VersionId"):
            request["VersionId"] = native["VersionId"]
        check_table(current, before, confirm)
        with self._translate_errors("updating table", path, missing=TableNotFound):
            # The audit log stores the previous content; Glue's own archive of versions is limited and would fill up.
            self._clients.writes.update_table(SkipArchive=True, **request)
        # The response to a write is empty; only reading the table again shows whether the write had an effect.
        updated = self.describe_table(path)
        if updated.digest == current.digest and not _matches(updated, after):
            raise Internal(f"{self.source}: Glue reported {path_key(path)} as updated, but it is unchanged")
        return updated

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Remove a table that is unchanged since ``expected``.

        DeleteTable removes the entry and its versions. The data at the location of an external table stays.
        """
        path = self._canonicalize(expected.path)
        parent, database = self._locate_table_database(path, TableNotFound)
        current = self._lance_record(path, self._native_table(path))
        check_table(current, expected, confirm)
        with self._translate_errors("removing table", path, missing=TableNotFound):
            self._clients.writes.delete_table(DatabaseName=database, Name=path[-1], **parent.scope)
        with suppress(TableNotFound, InvalidInput):
            remaining = self.describe_table(path)
            if (remaining.digest, remaining.native_id) == (current.digest, current.native_id):
                raise Internal(f"{self.source}: Glue reported {path_key(path)} as removed and still has it")

    def default_location(self, path: Path) -> str:
        """Return the default location. Below the source's ``root``, the account is not part of the path."""
        path = self._canonicalize(path)
        location = self.describe_namespace(path[:-1]).location
        if location is None:
            levels = path[1:-1] if path[:1] == self._tree.root.path else path[:-1]
            return join_levels(self._settings.root_uri, (*levels, f"{path[-1]}.lance"))
        return join_levels(location.rstrip("/"), [f"{path[-1]}.lance"])

    # Crawl

    def plan_shards(self) -> Sequence[Shard]:
        return crawl.plan_shards(self.source, self._tree, self._clients)

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        return crawl.read_shard(self.source, shard, self._clients)

    def ping(self) -> str:
        with translate_aws_errors(f"{self.source}: listing databases"):
            self._clients.reads.get_databases(MaxResults=1, **self._tree.root.scope)
        return ""

    def close(self) -> None:
        self._clients.close()

    # Helpers

    def _canonicalize(self, path: Path) -> Path:
        return self._tree.canonicalize(path)

    def _catalog_at(self, path: Path, *, verify: bool = False) -> CatalogNode | None:
        """Return the catalog at a path; None for a database. Raise NamespaceNotFound.

        ``verify``: read a catalog from the service even if it is in the cache.
        """
        node = self._tree.find(path, refresh=False)
        if node is None or verify:
            self.describe_namespace(path)
            node = self._tree.find(path, refresh=False)
        return node

    def _children_of(self, node: CatalogNode) -> list[str]:
        with self._translate_errors("listing databases in", node.path, missing=NamespaceNotFound):
            databases = iter_items(self._clients.reads.get_databases, "DatabaseList", MaxResults=PAGE_SIZE, **node.scope)
            names = {database["Name"] for database in databases}
        # In this connector's paths, the child catalogs of the root catalog are its siblings.
        return sorted(names if node == self._tree.root else names | set(self._tree.children(node)))

    def _describe_database(self, path: Path) -> NamespaceRecord:
        return records.database_record(self.source, path, self._native_database(path))

    def _native_database(self, path: Path) -> Mapping[str, Any]:
        parent, name = self._locate_database(path)
        with self._translate_errors("reading database", path, missing=NamespaceNotFound):
            return self._clients.reads.get_database(Name=name, **parent.scope)["Database"]

    def _create_catalog(self, record: NamespaceRecord, path: Path) -> NamespaceRecord:
        try:
            self.describe_namespace(path)
        except NamespaceNotFound:
            pass
        else:
            # The short paths of an existing database of this name would then mean the new catalog.
            raise NamespaceAlreadyExists(f"{self.source}: {path_key(path)} exists")
        name = record.path[0]
        catalog_input: Any = records.build_catalog_input(record)
        with self._translate_errors("creating catalog", (name,), existing=NamespaceAlreadyExists):
            self._clients.writes.create_catalog(Name=name, CatalogInput=catalog_input)
        self._tree.clear_cache()
        return self.describe_namespace((name,))

    def _iter_native_tables(self, database: Path) -> Iterator[Mapping[str, Any]]:
        parent, name = self._locate_database(database)
        with self._translate_errors("listing tables in", database, missing=NamespaceNotFound):
            yield from iter_items(
                self._clients.reads.get_tables, "TableList", DatabaseName=name, MaxResults=PAGE_SIZE, **parent.scope
            )

    def _native_table(self, path: Path) -> Mapping[str, Any]:
        parent, database = self._locate_table_database(path, TableNotFound)
        with self._translate_errors("reading table", path, missing=TableNotFound):
            return self._clients.reads.get_table(DatabaseName=database, Name=path[-1], **parent.scope)["Table"]

    def _lance_record(self, path: Path, table: Mapping[str, Any]) -> TableRecord:
        kind = records.table_kind(table)
        if kind is Kind.TABLE:
            return records.table_record(self.source, path[:-1], table)
        description = f"marked as Lance, but managed ({table.get('TableType')})" if kind else "not a Lance table"
        raise InvalidInput(f"{self.source}: {path_key(path)} is {description}")

    def _locate_table_database(self, path: Path, missing: type[CatalogError]) -> tuple[CatalogNode, str]:
        """Return the catalog of a table and the name of its database. Raise ``missing`` for a path without database."""
        if len(path) < 3:
            raise missing(
                f"{self.source}: {path_key(path)} is not a table's path: {path[0]} is a catalog, and only databases contain tables"
            )
        return self._locate_database(path[:-1], missing)

    def _locate_database(self, path: Path, missing: type[CatalogError] = NamespaceNotFound) -> tuple[CatalogNode, str]:
        """Return the catalog of a database, and the database's name. Raise ``missing`` if there is no such catalog."""
        parent = self._tree.find(path[:-1])
        if parent is None:
            # The message shows the path without the account, because a short path does not have it.
            catalog = path[1:-1] if path[:1] == self._tree.root.path else path[:-1]
            raise missing(f"{self.source}: {path_key(path)} not found: there is no catalog {path_key(catalog)!r}")
        return parent, path[-1]

    def _input_shape(self, name: str) -> Any:
        return self._clients.writes.meta.service_model.shape_for(name)

    def _translate_errors(
        self, what: str, path: Path, *, missing: type[CatalogError] = Internal, existing: type[CatalogError] = Internal
    ) -> AbstractContextManager[None]:
        return translate_aws_errors(f"{self.source}: {what} {path_key(path)}", missing=missing, existing=existing)


def _matches(current: TableRecord, desired: TableRecord) -> bool:
    """Return whether a table has the location, doc and properties of the desired record."""
    same = (current.canonical, current.doc or None) == (desired.canonical, desired.doc or None)
    return same and dict(current.properties) == dict(desired.properties)
