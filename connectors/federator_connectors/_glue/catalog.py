"""One Glue Data Catalog, opened: the operations on single objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path as FilePath
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
    Unsupported,
    unconditional,
)
from federator.connector.altering import check_namespace, check_table
from federator.model import ROOT, Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord, path_key
from federator_connectors._glue import crawl, records
from federator_connectors._glue.client import Clients
from federator_connectors._glue.errors import calling
from federator_connectors._glue.pages import PAGE, pages
from federator_connectors._glue.settings import GlueSettings
from federator_connectors._glue.tree import BULK, Node, Tree


class GlueCatalog(Catalog):
    """Records and listings have canonical paths, ``(account, database, table)`` or ``(catalog, ..., database, table)``; every
    method also takes ``(database, table)`` for the root catalog. Names of databases and tables are in lower case, as Glue
    stores them.
    """

    def __init__(self, source: str, settings: GlueSettings, clients: Clients | None = None) -> None:
        self.source = source
        self._settings = settings
        self._clients = clients or Clients(source, settings)
        self._tree = Tree(source, self._clients, settings.catalog_id)

    def canonical_path(self, path: Path) -> Path:
        """The path under which records of this object are returned.

        ``(database,)`` and ``(database, table)`` get the account in front, unless the first level is the name of a catalog;
        databases and tables are folded to lower case, catalogs get the case of their own. A path of three levels or more that
        starts with no catalog names nothing, and is returned as it is. Listing the catalogs may raise CatalogError.
        """
        return self._tree.canonical(path, max_age=BULK)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        """Account, region and catalog id; of databases that are resource links, what they link to. None: nothing tells the account."""
        account = self._tree.account()
        if account is None:
            return None
        region = self._clients.reads.meta.region_name
        whole = f"account {account}, region {region}, catalog {self._settings.catalog_id or account}"
        return Identity.of(whole, dict(self._links(namespaces)))

    def _links(self, namespaces: Collection[Path] | None) -> Iterator[tuple[str, str]]:
        """The targets of resource links among databases: path key and text."""
        if namespaces is None:
            root = self._tree.root
            with self._calling("listing databases in", root.path, missing=NamespaceNotFound):
                databases = pages(self._clients.reads.get_databases, "DatabaseList", MaxResults=PAGE, **root.scope)
                yield from (pair for native in databases for pair in records.link((*root.path, native["Name"]), native))
            return
        for path in {self._path(namespace) for namespace in namespaces}:
            with suppress(NamespaceNotFound):
                if len(path) > 1 and self._tree.find(path) is None:
                    yield from records.link(path, self._native_database(path))

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        path = self._path(parent)
        if path == ROOT:
            return sorted([*self._tree.root.path, *self._tree.children(self._tree.root)])
        node = self._catalog_at(path)
        return [] if node is None else self._children_of(node)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        path = self._path(path)
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        node = self._tree.find(path, doubting=len(path) == 1)
        if node is None:
            try:
                return self._describe_database(path)
            except NamespaceNotFound:
                node = self._tree.find(path)
                if node is None:
                    raise
        return records.catalog_record(self.source, node.path, self._tree.describe(node))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """One level makes a catalog in the root, more make a database: Glue has no call for a catalog inside a catalog."""
        path = self._path(record.path)
        if len(record.path) == 1:
            return self._create_catalog(record, path)
        if self._tree.find(path):
            raise NamespaceAlreadyExists(f"{self.source}: {path_key(path)} is a catalog")
        parent, _ = self._database(path)
        wanted: Any = records.database_input(replace(record, path=path))
        with self._calling("creating database", path, missing=NamespaceNotFound, existing=NamespaceAlreadyExists):
            self._clients.writes.create_database(DatabaseInput=wanted, **parent.scope)
        return self.describe_namespace(path)

    def drop_namespace(self, path: Path) -> None:
        """Glue itself would drop a database with its tables, so that emptiness is proven here just before, by two listings: one
        answer without tables may be a broken one.

        What others create between the look and the drop goes with it; so does what this principal may not list.
        """
        path = self._path(path)
        if path in (ROOT, self._tree.root.path):
            raise InvalidInput(f"{self.source}: the root catalog cannot be dropped")
        node = self._catalog_at(path)
        for _ in range(2):
            inside = self._children_of(node) if node else (table["Name"] for table in self._tables(path))
            held = next(iter(inside), None)
            if held is not None:
                raise NamespaceNotEmpty(f"{self.source}: {path_key(path)} is not empty: it holds {held}")
        if node:
            with self._calling("dropping catalog", path, missing=NamespaceNotFound):
                self._clients.writes.delete_catalog(CatalogId=node.catalog_id)
            self._tree.forget()
            return
        parent, name = self._database(path)
        with self._calling("dropping database", path, missing=NamespaceNotFound):
            self._clients.writes.delete_database(Name=name, **parent.scope)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Of a database or a child catalog. Glue compares nothing here: between our look and our write lies a moment."""
        path = self._path(before.path)
        if path in (ROOT, self._tree.root.path):
            raise Unsupported(f"{self.source}: the account's own catalog has no properties")
        node = self._catalog_at(path)
        if node is not None:
            native = self._tree.describe(node)
            check_namespace(records.catalog_record(self.source, node.path, native), before, after)
            catalog: Any = records.changed_namespace(native, after, self._shape("CatalogInput"))
            with self._calling("updating catalog", path, missing=NamespaceNotFound):
                self._clients.writes.update_catalog(CatalogId=node.catalog_id, CatalogInput=catalog)
            self._tree.forget()
            return self.describe_namespace(path)
        parent, name = self._database(path)
        with self._calling("reading database", path, missing=NamespaceNotFound):
            native = self._clients.reads.get_database(Name=name, **parent.scope)["Database"]
        check_namespace(records.database_record(self.source, path, native), before, after)
        database: Any = records.changed_namespace(native, after, self._shape("DatabaseInput"))
        with self._calling("updating database", path, missing=NamespaceNotFound):
            self._clients.writes.update_database(Name=name, DatabaseInput=database, **parent.scope)
        return self.describe_namespace(path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        path = self._path(namespace)
        if path == ROOT or self._catalog_at(path, surely=True):
            return []
        return sorted(table["Name"] for table in self._tables(path) if records.kind_of(table) is Kind.TABLE)

    def describe_table(self, path: Path) -> TableRecord:
        """A missing database is a missing table here: Glue's answer does not tell them apart."""
        path = self._path(path)
        return self._lance(path, self._native_table(path))

    def declare_table(self, record: TableRecord) -> TableRecord:
        path = self._path(record.path)
        parent, database = self._table_parent(path, NamespaceNotFound)
        self._describe_database(path[:-1])
        wanted: Any = records.table_input(replace(record, path=path, location=record.location or self.default_location(path)))
        with self._calling("declaring table", path, missing=NamespaceNotFound, existing=TableAlreadyExists):
            self._clients.writes.create_table(DatabaseName=database, TableInput=wanted, **parent.scope)
        try:
            return self.describe_table(path)
        except TableNotFound as error:
            raise Internal(f"{self.source}: Glue reported {path_key(path)} as declared and does not have it") from error

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        """Compared twice: the content by us, and the version, between our look and our write, by Glue."""
        path = self._path(before.path)
        parent, database = self._table_parent(path, TableNotFound)
        native = self._native_table(path)
        found = self._lance(path, native)
        wanted = records.changed_input(native, after, self._shape("TableInput"))
        request: Any = {"DatabaseName": database, "TableInput": wanted, **parent.scope}
        if native.get("VersionId"):
            request["VersionId"] = native["VersionId"]
        check_table(found, before, confirm)
        with self._calling("updating table", path, missing=TableNotFound):
            # The audit keeps what was before; Glue's own archive of versions is limited, and would fill up.
            self._clients.writes.update_table(SkipArchive=True, **request)
        # The response to a write is empty: reading back tells it from one that did nothing.
        made = self.describe_table(path)
        if made.digest == found.digest and not _shows(made, after):
            raise Internal(f"{self.source}: Glue reported {path_key(path)} as updated and has it as before")
        return made

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """DeleteTable removes the entry and its versions; what lies at the location of an external table stays."""
        path = self._path(expected.path)
        parent, database = self._table_parent(path, TableNotFound)
        found = self._lance(path, self._native_table(path))
        check_table(found, expected, confirm)
        with self._calling("removing table", path, missing=TableNotFound):
            self._clients.writes.delete_table(DatabaseName=database, Name=path[-1], **parent.scope)
        with suppress(TableNotFound, InvalidInput):
            left = self.describe_table(path)
            if (left.digest, left.native_id) == (found.digest, found.native_id):
                raise Internal(f"{self.source}: Glue reported {path_key(path)} as removed and still has it")

    def default_location(self, path: Path) -> str:
        """Below the source's root, the account is left out of the levels."""
        path = self._path(path)
        location = self.describe_namespace(path[:-1]).location
        if location is None:
            levels = path[1:-1] if path[:1] == self._tree.root.path else path[:-1]
            location = "/".join([(self._settings.root or str(FilePath.cwd())).rstrip("/"), *levels])
        return f"{location.rstrip('/')}/{path[-1]}.lance"

    # The crawl

    def shards(self) -> Sequence[Shard]:
        return crawl.shards(self.source, self._tree, self._clients)

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        return crawl.read(self.source, shard, self._clients)

    def ping(self) -> str:
        with calling(f"{self.source}: listing databases"):
            self._clients.reads.get_databases(MaxResults=1, **self._tree.root.scope)
        return ""

    def close(self) -> None:
        self._clients.close()

    # What they share

    def _path(self, path: Path) -> Path:
        return self._tree.canonical(path)

    def _catalog_at(self, path: Path, *, surely: bool = False) -> Node | None:
        """The catalog at a path, None for a database; ``surely``: one that was just seen. Raises NamespaceNotFound."""
        node = self._tree.find(path, doubting=False)
        if node is None or surely:
            self.describe_namespace(path)
            node = self._tree.find(path, doubting=False)
        return node

    def _children_of(self, node: Node) -> list[str]:
        with self._calling("listing databases in", node.path, missing=NamespaceNotFound):
            databases = pages(self._clients.reads.get_databases, "DatabaseList", MaxResults=PAGE, **node.scope)
            names = {database["Name"] for database in databases}
        # The catalogs inside the root are its siblings in our tree.
        return sorted(names if node == self._tree.root else names | set(self._tree.children(node)))

    def _describe_database(self, path: Path) -> NamespaceRecord:
        return records.database_record(self.source, path, self._native_database(path))

    def _native_database(self, path: Path) -> Mapping[str, Any]:
        parent, name = self._database(path)
        with self._calling("reading database", path, missing=NamespaceNotFound):
            return self._clients.reads.get_database(Name=name, **parent.scope)["Database"]

    def _create_catalog(self, record: NamespaceRecord, path: Path) -> NamespaceRecord:
        try:
            self.describe_namespace(path)
        except NamespaceNotFound:
            pass
        else:
            # A new catalog would take over the short paths of a database of that name.
            raise NamespaceAlreadyExists(f"{self.source}: {path_key(path)} exists")
        name = record.path[0]
        wanted: Any = records.catalog_input(record)
        with self._calling("creating catalog", (name,), existing=NamespaceAlreadyExists):
            self._clients.writes.create_catalog(Name=name, CatalogInput=wanted)
        self._tree.forget()
        return self.describe_namespace((name,))

    def _tables(self, database: Path) -> Iterator[Mapping[str, Any]]:
        parent, name = self._database(database)
        with self._calling("listing tables in", database, missing=NamespaceNotFound):
            yield from pages(self._clients.reads.get_tables, "TableList", DatabaseName=name, MaxResults=PAGE, **parent.scope)

    def _native_table(self, path: Path) -> Mapping[str, Any]:
        parent, database = self._table_parent(path, TableNotFound)
        with self._calling("reading table", path, missing=TableNotFound):
            return self._clients.reads.get_table(DatabaseName=database, Name=path[-1], **parent.scope)["Table"]

    def _lance(self, path: Path, table: Mapping[str, Any]) -> TableRecord:
        kind = records.kind_of(table)
        if kind is Kind.TABLE:
            return records.table_record(self.source, path[:-1], table)
        is_what = f"marked lance, but managed ({table.get('TableType')})" if kind else "not a Lance table"
        raise InvalidInput(f"{self.source}: {path_key(path)} is {is_what}")

    def _table_parent(self, path: Path, missing: type[CatalogError]) -> tuple[Node, str]:
        """The catalog and the database of a table."""
        if len(path) < 3:
            raise missing(
                f"{self.source}: {path_key(path)} names no table: {path[0]} is a catalog, and tables lie in databases"
            )
        return self._database(path[:-1], missing)

    def _database(self, path: Path, missing: type[CatalogError] = NamespaceNotFound) -> tuple[Node, str]:
        """The catalog that holds a database, and the database's own name."""
        parent = self._tree.find(path[:-1])
        if parent is None:
            # As it was asked for: without the account that the short form was given.
            catalog = path[1:-1] if path[:1] == self._tree.root.path else path[:-1]
            raise missing(f"{self.source}: {path_key(path)} not found: there is no catalog {path_key(catalog)!r}")
        return parent, path[-1]

    def _shape(self, name: str) -> Any:
        return self._clients.writes.meta.service_model.shape_for(name)

    def _calling(
        self, what: str, path: Path, *, missing: type[CatalogError] = Internal, existing: type[CatalogError] = Internal
    ) -> AbstractContextManager[None]:
        return calling(f"{self.source}: {what} {path_key(path)}", missing=missing, existing=existing)


def _shows(made: TableRecord, wanted: TableRecord) -> bool:
    """Whether a table that was read back has what an update asked for; one that asked for nothing new changes nothing."""
    same = (made.canonical, made.doc or None) == (wanted.canonical, wanted.doc or None)
    return same and dict(made.properties) == dict(wanted.properties)
