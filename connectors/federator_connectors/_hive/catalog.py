"""One metastore as a ``Catalog``: the operations on single namespaces and tables."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from federator.connector import (
    Catalog,
    CatalogError,
    Changes,
    ConcurrentModification,
    Confirm,
    Internal,
    InvalidInput,
    NamespaceNotEmpty,
    NamespaceNotFound,
    ServiceUnavailable,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.altering import check_namespace, check_table
from federator.connector.errors import UnfinishedDeclaration
from federator.connector.operation import current_operation
from federator.model import ROOT, Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord, canonical_location
from federator_connectors._hive import convert
from federator_connectors._hive.changes import ChangeFeed
from federator_connectors._hive.client import Client
from federator_connectors._hive.crawl import BATCH, Crawl
from federator_connectors._hive.metastore import DEFAULT_DATABASE, Metastore
from federator_connectors._hive.settings import HiveSettings
from federator_connectors._hive.transport import dialler


class HiveCatalog(Catalog):
    """A Hive metastore. Connects with the first operation; thread-safe, with ``client.pool-size`` connections at most."""

    def __init__(self, source: str, settings: HiveSettings, *, levels: int) -> None:
        self.source = source
        self._root = settings.root
        self._levels = levels
        client = Client(
            source, settings.uri, size=settings.pool_size, timeout=settings.timeout, dial=dialler(source, settings),
            limits=settings.limits,
        )  # fmt: skip
        self._store = Metastore(client, levels=levels)
        self._feed = ChangeFeed(source, self._store)
        self._crawl = Crawl(source, self._store, parts=settings.pool_size)

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        parent = self._place(parent)
        if parent == ROOT:
            return sorted(self._store.catalogs() if self._levels == 2 else self._store.databases(ROOT))
        if len(parent) == self._levels:
            self._store.database(parent)
            return []
        # A catalog that does not exist lists as empty.
        self._store.catalog(parent)
        names = self._store.databases(parent)
        self._store.catalog(parent)
        return sorted(names)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        path = self._place(path)
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        if len(path) == self._levels:
            return convert.database_record(self.source, path, self._store.database(path))
        return convert.catalog_record(self.source, path, self._store.catalog(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Creates a catalog or a database. A catalog comes with a database ``default``, which Hive makes on its own.

        A database without a location goes below ``root`` if that is set, else where the metastore's warehouse is; a catalog
        must have one, which is below ``root``. The metastore makes the directory.
        """
        path = self._place(record.path)
        if path == ROOT:
            raise InvalidInput("the root namespace always exists")
        if len(path) == self._levels:
            location = record.location or (self._below_root(path) if self._root else None)
            database = convert.new_database(record, self._store.catalog_of(path), location)
            if len(path) > 1:
                self._store.catalog(path[:1])
            self._store.create_database(path, database)
        else:
            self._store.create_catalog(convert.new_catalog(record, record.location or self._below_root(path)))
        try:
            return self.describe_namespace(path)
        except NamespaceNotFound:
            # A 3.1.3 metastore whose schema was not made by schematool does so for catalogs.
            raise Internal(f"{self.source}: the metastore reported {record.key!r} as created and does not have it") from None

    def drop_namespace(self, path: Path) -> None:
        """Drops an empty database, or a catalog that has at most an empty ``default``. No directory is removed."""
        path = self._place(path)
        if path == ROOT:
            raise InvalidInput("the root namespace cannot be dropped")
        if len(path) == self._levels:
            # Dropping a database that does not exist is a NullPointerException in the server.
            self._store.database(path)
            self._store.drop_database(path)
        else:
            self._drop_catalog(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """A database's; a catalog keeps no properties. The metastore compares nothing: between our look and our write lies a moment."""
        path = self._place(before.path)
        if len(path) != self._levels:
            raise Unsupported(f"{self.source}: a Hive catalog keeps no properties, so that none are changed")
        database = self._store.database(path)
        check_namespace(convert.database_record(self.source, path, database), before, after)
        if after.doc != before.doc:
            # First and alone: Hive 2 leaves the old one, without a word.
            self._store.alter_database(path, convert.changed_database(database, replace(before, doc=after.doc)))
            if self.describe_namespace(path).doc != after.doc:
                raise Unsupported(f"{self.source}: this metastore does not change the description of {before.key}")
        self._store.alter_database(path, convert.changed_database(database, after))
        return self.describe_namespace(path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        namespace = self._place(namespace)
        if len(namespace) < self._levels:
            self.describe_namespace(namespace)
            return []
        # A database that does not exist lists as empty.
        self._store.database(namespace)
        marked = self._store.marked_tables(namespace)
        if marked.exact:
            names = set(marked.names).intersection(self._store.external_tables(namespace))
        else:
            names = {table.tableName for table in self._whole(namespace, marked.names) if _is_external_lance(table)}
        self._store.database(namespace)
        return sorted(names)

    def foreign_objects(self, namespace: Path) -> list[str]:
        """The names of the tables and views of a database that are not external Lance tables."""
        if len(namespace) < self._levels:
            return []
        names = self._store.all_tables(self._place(namespace))
        return sorted(set(names).difference(self.list_tables(namespace)))

    def describe_table(self, path: Path) -> TableRecord:
        return self._read(path)[1]

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declare an external table, in two calls: create a view without location, then alter it to the table.

        A metastore that creates a table makes its directory, and removes it with everything in it if the creation then fails, for
        example because another client was first. It makes none for a view, and none when it alters (ADR 0011).
        """
        path, op_id = self._table_place(record.path), current_operation()
        unfinished = convert.unfinished_table(record, self._store.catalog_of(path[:-1]), op_id)
        self._store.database(path[:-1])
        try:
            self._store.create_table(path, unfinished)
        except TableAlreadyExists as error:
            # A metastore repeats what its database refused: the entry may be this operation's own.
            self._refuse_taken(path, op_id, error)
        except CatalogError as error:
            self._undo(path, op_id, error)
            raise
        self._finish(path, record, op_id)
        return self._read_back(path, record)

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        path = self._table_place(path)
        try:
            if convert.unfinished_operation(self._store.table(path)) != op_id:
                return False
            self._store.drop_table(path)
        except TableNotFound:
            return False
        return True

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        path = self._table_place(before.path)
        table = self._unchanged(path, before, confirm)
        expected = _compared(table.parameters or {}, after)
        self._store.alter_table(path, convert.changed_table(table, after), expected=expected)
        return self._read_back(path, after)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        path = self._table_place(expected.path)
        self._unchanged(path, expected, confirm)
        self._store.drop_table(path)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        """Renames within one catalog. Refused for a table whose directory the metastore would move with it."""
        path, new_path = self._table_place(before.path), self._table_place(new_path)
        if path[:-2] != new_path[:-2]:
            raise Unsupported(f"{self.source}: Hive moves no table from one catalog to another")
        table = convert.renamed_table(self._unchanged(path, before), new_path)
        self._store.database(new_path[:-1])
        self._store.alter_table(path, table)
        return self._read_back(new_path, replace(before, path=new_path))

    def default_location(self, path: Path) -> str:
        *_, name = path = self._table_place(path)
        parent = self.describe_namespace(path[:-1])
        return f"{(parent.location or self._below_root(path[:-1])).rstrip('/')}/{name}.lance"

    # The bulk crawl

    def shards(self) -> Sequence[Shard]:
        return self._crawl.shards()

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        return self._crawl.read(shard)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity:  # noqa: ARG002 - one database has all
        uuid = self._store.anchor_identity()
        # Stated, so that a Hive 3 that takes the address of a Hive 2 is another catalog, and not the first with an identity.
        return Identity.of(f"metastore {uuid}" if uuid else "metastore without an id")

    # The feed of changes

    def change_cursor(self) -> str:
        return self._feed.cursor()

    def changes_since(self, cursor: str) -> Changes:
        return self._feed.since(cursor)

    def ping(self) -> str:
        self.list_namespaces(ROOT)
        return "Hive 3 or later" if self._levels == 2 else "Hive"

    def close(self) -> None:
        self._store.close()

    # What the operations share

    def _place(self, path: Path) -> Path:
        """The namespace's path as the metastore spells it: in lower case. Raises NamespaceNotFound."""
        convert.check_place(path, self._levels)
        return tuple(name.lower() for name in path)

    def _table_place(self, path: Path) -> Path:
        if len(path) != self._levels + 1:
            raise InvalidInput(f"a table's path has {self._levels + 1} levels here, {'$'.join(path)!r} has {len(path)}")
        return (*self._place(path[:-1]), path[-1].lower())

    def _below_root(self, path: Path) -> str:
        return "/".join([(self._root or FilePath.cwd().as_uri()).rstrip("/"), *path])

    def _whole(self, namespace: Path, names: list[str]) -> Iterator[Any]:
        for start in range(0, len(names), BATCH):
            yield from self._store.tables(namespace, names[start : start + BATCH])

    def _read(self, path: Path) -> tuple[Any, TableRecord]:
        """A table as the metastore has it and as we see it. Raises TableNotFound, InvalidInput."""
        path = self._table_place(path)
        table = self._store.table(path)
        shown = "$".join(path)
        if (op_id := convert.unfinished_operation(table)) is not None:
            raise self._unfinished(path, op_id)
        if not convert.is_lance(table):
            raise InvalidInput(f"{self.source}: {shown} is no Lance table: it is not marked with table_type = lance")
        record = convert.table_record(self.source, path, table)
        if record.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{self.source}: {shown} is marked as Lance, but is a {table.tableType}, not an EXTERNAL_TABLE")
        return table, record

    def _unchanged(self, path: Path, expected: TableRecord, confirm: Confirm = unconditional) -> Any:
        """The table as the metastore has it, if it still is as expected. Raises ConcurrentModification."""
        table, current = self._read(path)
        check_table(current, expected, confirm)
        return table

    def _finish(self, path: Path, record: TableRecord, op_id: str) -> None:
        """Alter an unfinished declaration of this operation to the table. If that fails, remove the entry and raise the error."""
        created = None
        try:
            table = self._store.table(path)
            if convert.unfinished_operation(table) != op_id:
                raise ConcurrentModification(f"{self.source}: {record.key} was changed while it was declared")
            created = convert.native_id(table)
            # Not compared by the server: nobody else alters this entry, and 4.x on Derby or Oracle takes seconds to refuse.
            self._store.alter_table(path, convert.changed_table(table, record))
        except CatalogError as error:
            # An entry that is no longer unfinished was altered, and only the response was lost.
            if self._undo(path, op_id, error) or created is None or self._native_id(path) != created:
                raise

    def _undo(self, path: Path, op_id: str, error: CatalogError) -> bool:
        """Remove what a failed declaration left. Raise ServiceUnavailable where that fails: the journal then resolves the intent."""
        try:
            return self.remove_unfinished(path, op_id)
        except CatalogError:
            if error.retryable:
                raise error from None
            message = f"{self.source}: {'$'.join(path)} was not declared, and its unfinished entry remains: {error.message}"
            raise ServiceUnavailable(message) from error

    def _refuse_taken(self, path: Path, op_id: str, error: TableAlreadyExists) -> None:
        """Raise TableAlreadyExists unless the entry at ``path`` is an unfinished declaration of this operation."""
        try:
            other = convert.unfinished_operation(self._store.table(path))
        except TableNotFound:
            raise error from None
        if other == op_id:
            return
        if other is None:
            raise error
        unfinished = self._unfinished(path, other)
        raise TableAlreadyExists(unfinished.message, hint=unfinished.hint) from error

    def _unfinished(self, path: Path, op_id: str) -> UnfinishedDeclaration:
        shown, view = "$".join(path), ".".join(path[-2:])
        error = UnfinishedDeclaration(
            f"{self.source}: {shown} is being declared, or its declaration was interrupted (operation {op_id})",
            hint=f"try again; if it remains, no client is declaring it any more: DROP VIEW {view} in Hive removes the entry",
        )
        error.op_id = op_id
        return error

    def _native_id(self, path: Path) -> str | None:
        try:
            return convert.native_id(self._store.table(path))
        except TableNotFound:
            return None

    def _read_back(self, path: Path, wanted: TableRecord) -> TableRecord:
        """What a write really made. Raises Internal if that is not an external table at the wanted location."""
        try:
            record = self.describe_table(path)
        except (InvalidInput, TableNotFound) as error:
            raise Internal(f"{self.source}: {wanted.key} was written and reads back otherwise: {error.message}") from error
        if record.canonical != canonical_location(wanted.location or ""):
            raise Internal(f"{self.source}: {wanted.key} was written and reads back with the location {record.location}")
        return record

    def _drop_catalog(self, path: Path) -> None:
        """Drops a catalog without the directory of its location.

        ``drop_catalog`` of Hive 3 deletes that directory with everything below it, and offers no way not to. So the catalog is
        first pointed at a directory that does not exist. Likewise it would drop ``default`` with its data.
        """
        catalog = self._store.catalog(path)
        default = (*path, DEFAULT_DATABASE)
        names = self._store.databases(path)
        if any(name != DEFAULT_DATABASE for name in names) or (names and self._store.all_tables(default)):
            raise NamespaceNotEmpty(f"{self.source}: the catalog {path[0]!r} is not empty")
        database = self._store.database(default) if names else None
        location = catalog.locationUri
        if database:
            self._store.drop_database(default)
        try:
            catalog.locationUri = f"{location.rstrip('/')}/.dropped-{uuid.uuid4().hex}"
            self._store.alter_catalog(catalog)
            if self._store.catalog(path).locationUri != catalog.locationUri:
                raise Internal(f"{self.source}: the catalog {path[0]!r} cannot be dropped without its directory")
            self._store.drop_catalog(path)
        except CatalogError:
            catalog.locationUri = location
            with suppress(CatalogError):
                self._store.alter_catalog(catalog)
                if database:
                    self._store.create_database(default, database)
            raise


def _is_external_lance(table: Any) -> bool:
    return convert.is_lance(table) and table.tableType == convert.EXTERNAL_TABLE


def _compared(parameters: dict[str, str], after: TableRecord) -> tuple[str, str] | None:
    """A parameter that the change gives another value, with its present one: of two such changes only one can succeed."""
    changing = sorted(key for key, value in after.properties.items() if parameters.get(key, value) != value)
    return (changing[0], parameters[changing[0]]) if changing else None
