"""``Catalog`` of one metastore: the operations on single namespaces and tables."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from federator.connector import (
    Catalog,
    CatalogChanges,
    CatalogError,
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
from federator.connector.errors import UnfinishedDeclaration
from federator.connector.operation import current_operation
from federator.connector.preconditions import check_namespace_update, check_table
from federator.model import ROOT, Coverage, Identity, NamespaceRecord, Path, Record, TableRecord, canonical_location, path_key
from federator_connectors._hive import records
from federator_connectors._hive.change_feed import ChangeFeed
from federator_connectors._hive.client import Client
from federator_connectors._hive.crawl import BATCH, Crawl
from federator_connectors._hive.metastore import DEFAULT_CATALOG, DEFAULT_DATABASE, Metastore
from federator_connectors._hive.settings import BELOW_ROOT, HiveSettings
from federator_connectors._hive.transport import build_dialer
from federator_connectors._locations import join_levels


class HiveCatalog(Catalog):
    """A Hive metastore. It connects at the first operation, with at most ``client.pool-size`` connections. Thread-safe.

    ``levels`` are those of a database's path: 2 with catalogs (Hive 3), 1 without.
    """

    thread_safe = True

    def __init__(self, source: str, settings: HiveSettings, *, levels: int) -> None:
        self.source = source
        self._root, self._has_root = settings.root_uri, settings.root is not None
        self._default_location = settings.default_location
        self._levels = levels
        client = Client(
            source, settings.uri, size=settings.pool_size, timeout=settings.timeout, dial=build_dialer(source, settings),
            limits=settings.limits, ugi=settings.ugi,
        )  # fmt: skip
        self._store = Metastore(client, levels=levels)
        self._feed = ChangeFeed(source, self._store)
        self._storage_managed = settings.storage_managed
        self._crawl = Crawl(source, self._store, parts=settings.pool_size, storage_managed=settings.storage_managed)

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        parent = self._namespace_path(parent)
        if parent == ROOT:
            return sorted(self._store.list_catalogs() if self._levels == 2 else self._store.list_databases(ROOT))
        if self._is_database(parent):
            self._store.get_database(parent)
            return []
        # The server lists an absent catalog as empty, so its existence is checked before and after the listing.
        self._store.get_catalog(parent)
        names = self._store.list_databases(parent)
        self._store.get_catalog(parent)
        return sorted(names)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        path = self._namespace_path(path)
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        if self._is_database(path):
            return records.database_record(self.source, path, self._store.get_database(path))
        return records.catalog_record(self.source, path, self._store.get_catalog(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Create a catalog or a database. Hive adds a database ``default`` to a new catalog.

        A database without a location gets one below ``root`` if that is set or ``default_location`` is ``root``, else the metastore
        chooses one in its warehouse. A catalog without a location gets one below ``root``, whose default is the working directory.
        The metastore creates the directory.
        """
        path = self._namespace_path(record.path)
        if path == ROOT:
            raise InvalidInput("the root namespace always exists")
        if self._is_database(path):
            location = record.location or self._default_database_location(path)
            database = records.build_database(record, self._store.catalog_of(path), location)
            if len(path) > 1:
                self._store.get_catalog(path[:1])
            self._store.create_database(path, database)
        else:
            self._store.create_catalog(records.build_catalog(record, record.location or self._location_below_root(path)))
        try:
            return self.describe_namespace(path)
        except NamespaceNotFound:
            # Hive 3.1.3 behaves like this for catalogs if its schema was not created by schematool.
            raise Internal(f"{self.source}: the metastore reported {record.key!r} as created and does not have it") from None

    def drop_namespace(self, path: Path) -> None:
        """Drop an empty database, or a catalog with at most an empty ``default`` database. No directory is removed."""
        path = self._namespace_path(path)
        if path == ROOT:
            raise InvalidInput("the root namespace cannot be dropped")
        if self._is_database(path):
            # Without this check, dropping an absent database causes a NullPointerException in the server.
            self._store.get_database(path)
            self._store.drop_database(path)
        else:
            self._drop_catalog(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Update the properties and the doc of a database. Raise Unsupported for a catalog, which stores no properties.

        The metastore does not compare: a change between this method's read and its write is overwritten.
        """
        path = self._namespace_path(before.path)
        if not self._is_database(path):
            raise Unsupported(f"{self.source}: a Hive catalog has no properties that could be changed")
        database = self._store.get_database(path)
        check_namespace_update(records.database_record(self.source, path, database), before, after)
        if after.doc != before.doc:
            # The description is written first and alone, because Hive 2 silently keeps the old one.
            self._store.alter_database(path, records.modify_database(database, replace(before, doc=after.doc)))
            if self.describe_namespace(path).doc != after.doc:
                raise Unsupported(f"{self.source}: this metastore does not change the description of {before.key}")
        self._store.alter_database(path, records.modify_database(database, after))
        return self.describe_namespace(path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        namespace = self._namespace_path(namespace)
        if len(namespace) < self._levels:
            self.describe_namespace(namespace)
            return []
        external, others = self._list_lance_tables(namespace)
        return sorted(external | {table.tableName.lower() for table in others if records.is_storage_managed(table)})

    def _list_lance_tables(self, namespace: Path) -> tuple[set[str], list[Any]]:
        """Return the names of a database's external Lance tables, and the structs of other tables that are marked as Lance."""
        # The server lists an absent database as empty, so its existence is checked before and after the listing.
        self._store.get_database(namespace)
        marked = self._store.list_marked_tables(namespace)
        if marked.is_exact:
            external = set(marked.names).intersection(self._store.list_external_tables(namespace))
            others = list(self._fetch_tables(namespace, sorted(set(marked.names) - external)))
        else:
            tables = [table for table in self._fetch_tables(namespace, marked.names) if records.is_lance_table(table)]
            external = {table.tableName.lower() for table in tables if records.is_external_table(table)}
            others = [table for table in tables if not records.is_external_table(table)]
        self._store.get_database(namespace)
        return external, others

    def list_foreign_objects(self, namespace: Path) -> list[str]:
        """Return the names of the tables and views of a database that are not external Lance tables."""
        if len(namespace) < self._levels:
            return []
        namespace = self._namespace_path(namespace)
        return sorted(set(self._store.all_tables(namespace)) - self._list_lance_tables(namespace)[0])

    def describe_table(self, path: Path) -> TableRecord:
        return self._fetch_table(path)[1]

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declare an external table, in two calls: create a view without location, then alter it to the table.

        A metastore that creates a table also creates its directory. If the creation then fails, for example because another client
        was first, it removes the directory with all content. It creates no directory for a view or an alter (ADR 0011).
        """
        path, op_id = self._table_path(record.path), current_operation()
        unfinished = records.unfinished_table(record, self._store.catalog_of(path[:-1]), op_id)
        self._store.get_database(path[:-1])
        try:
            self._store.create_table(path, unfinished)
        except TableAlreadyExists as error:
            # A metastore retries an insert that its database refused, so the existing entry may be from this operation.
            self._require_own_entry(path, op_id, error)
        except CatalogError as error:
            self._undo(path, op_id, error)
            raise
        self._finish(path, record, op_id)
        return self._read_back(path, record)

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        path = self._table_path(path)
        try:
            if records.unfinished_operation(self._store.get_table(path)) != op_id:
                return False
            self._store.drop_table(path)
        except TableNotFound:
            return False
        return True

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        path = self._table_path(before.path)
        table = self._require_unchanged(path, before, confirm)
        expected = _find_compared_parameter(table.parameters or {}, after)
        self._store.alter_table(path, records.modify_table(table, after), expected=expected)
        return self._read_back(path, after)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        path = self._table_path(expected.path)
        self._require_unchanged(path, expected, confirm)
        self._store.drop_table(path)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        """Rename a table within one catalog. Raise Unsupported if the metastore would also move the table's directory."""
        path, new_path = self._table_path(before.path), self._table_path(new_path)
        if path[:-2] != new_path[:-2]:
            raise Unsupported(f"{self.source}: Hive cannot move a table from one catalog to another")
        table = records.rename_table(self._require_unchanged(path, before), new_path)
        self._store.get_database(new_path[:-1])
        self._store.alter_table(path, table)
        return self._read_back(new_path, replace(before, path=new_path))

    def default_location(self, path: Path) -> str:
        path = self._table_path(path)
        namespace, name = path[:-1], path[-1]
        if self._default_location == BELOW_ROOT:
            return f"{self._database_below_root(namespace)}/{name}"
        parent = self.describe_namespace(namespace).location or self._location_below_root(namespace)
        return join_levels(parent.rstrip("/"), [f"{name}.lance"])

    # Crawl

    def plan_shards(self) -> Sequence[Shard]:
        return self._crawl.plan_shards()

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        return self._crawl.read_shard(shard)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity:  # noqa: ARG002 - one id for the whole metastore
        metastore_id = self._store.anchor_identity()
        # A missing id is part of the identity: a Hive 3 that replaces a Hive 2 at its address is then another catalog. With no
        # identity at all, the Hive 3 would count as the first catalog with an identity.
        return Identity.of(f"metastore {metastore_id}" if metastore_id else "metastore without an id")

    # Change feed

    def describe_tables(self, namespace: Path, names: Sequence[str]) -> Sequence[TableRecord]:
        return self._crawl.read_named_tables(namespace, names)

    def current_feed_cursor(self) -> str:
        return self._feed.current_cursor()

    def changes_since(self, cursor: str) -> CatalogChanges:
        return self._feed.changes_since(cursor)

    def ping(self) -> str:
        self.list_namespaces(ROOT)
        return "3 or later" if self._levels == 2 else ""

    def close(self) -> None:
        self._store.close()

    # Helpers

    def _namespace_path(self, path: Path) -> Path:
        """Return the namespace's path in the metastore's spelling: in lower case. Raise NamespaceNotFound."""
        records.check_namespace_path(path, self._levels)
        return tuple(name.lower() for name in path)

    def _is_database(self, path: Path) -> bool:
        return len(path) == self._levels

    def _table_path(self, path: Path) -> Path:
        """Return the table's path in the metastore's spelling: in lower case. Raise InvalidInput, NamespaceNotFound."""
        if len(path) != self._levels + 1:
            raise InvalidInput(f"a table's path has {self._levels + 1} levels, {path_key(path)!r} has {len(path)}")
        return (*self._namespace_path(path[:-1]), path[-1].lower())

    def _default_database_location(self, path: Path) -> str | None:
        if self._default_location == BELOW_ROOT:
            return self._database_below_root(path)
        return self._location_below_root(path) if self._has_root else None

    def _database_below_root(self, path: Path) -> str:
        # As in Hive's warehouse: the databases of the default catalog are directly below the root.
        catalog = tuple(level for level in path[:-1] if level != DEFAULT_CATALOG)
        return self._location_below_root((*catalog, f"{path[-1]}.db"))

    def _location_below_root(self, path: Path) -> str:
        return "/".join([self._root, *path])

    def _fetch_tables(self, namespace: Path, names: list[str]) -> Iterator[Any]:
        for start in range(0, len(names), BATCH):
            yield from self._store.get_tables(namespace, names[start : start + BATCH])

    def _fetch_table(self, path: Path) -> tuple[Any, TableRecord]:
        """Return a table as the metastore's struct and as a record. Raise TableNotFound, InvalidInput."""
        path = self._table_path(path)
        table = self._store.get_table(path)
        if (op_id := records.unfinished_operation(table)) is not None:
            raise self._unfinished_error(path, op_id)
        if not records.is_lance_table(table):
            raise InvalidInput(
                f"{self.source}: {path_key(path)} is not a Lance table: it is not marked with table_type = lance"
            )
        if not records.is_storage_managed(table):
            self._require_external(path, table)
        return table, records.table_record(self.source, path, table, storage_managed=self._storage_managed)

    def _require_external(self, path: Path, table: Any) -> None:
        if not records.is_external_table(table):
            raise InvalidInput(
                f"{self.source}: {path_key(path)} is marked as Lance, but is a {table.tableType}, not an EXTERNAL_TABLE"
            )

    def _require_unchanged(self, path: Path, expected: TableRecord, confirm: Confirm = unconditional) -> Any:
        """Return the metastore's struct of a table that is unchanged since ``expected``. Raise ConcurrentModification."""
        table, current = self._fetch_table(path)
        # A storage-managed table is described, but never changed.
        self._require_external(path, table)
        check_table(current, expected, confirm)
        return table

    def _finish(self, path: Path, record: TableRecord, op_id: str) -> None:
        """Alter an unfinished declaration of this operation to the table. If that fails, remove the entry and raise the error."""
        entry_id = None
        try:
            table = self._store.get_table(path)
            if records.unfinished_operation(table) != op_id:
                raise ConcurrentModification(f"{self.source}: {record.key} was changed while it was declared")
            entry_id = records.native_id(table)
            # The server is not asked to compare: no other client alters this entry, and Hive 4 on Derby or Oracle takes seconds
            # to refuse.
            self._store.alter_table(path, records.modify_table(table, record))
        except CatalogError as error:
            was_unfinished = self._undo(path, op_id, error)
            # If the entry is still there and is finished, the alter succeeded and only its response was lost.
            if was_unfinished or entry_id is None or self._native_id(path) != entry_id:
                raise

    def _undo(self, path: Path, op_id: str, error: CatalogError) -> bool:
        """Remove the unfinished entry of a failed declaration. Return False if there is none.

        If the removal fails, raise an error that is retryable: the journal then resolves the intent.
        """
        try:
            return self.remove_unfinished(path, op_id)
        except CatalogError:
            if error.retryable:
                raise error from None
            message = f"{self.source}: {path_key(path)} was not declared, and its unfinished entry remains: {error.message}"
            raise ServiceUnavailable(message) from error

    def _require_own_entry(self, path: Path, op_id: str, error: TableAlreadyExists) -> None:
        """Raise TableAlreadyExists unless the entry at ``path`` is an unfinished declaration of this operation."""
        try:
            entry_op_id = records.unfinished_operation(self._store.get_table(path))
        except TableNotFound:
            raise error from None
        if entry_op_id == op_id:
            return
        if entry_op_id is None:
            raise error
        unfinished = self._unfinished_error(path, entry_op_id)
        raise TableAlreadyExists(unfinished.message, hint=unfinished.hint) from error

    def _unfinished_error(self, path: Path, op_id: str) -> UnfinishedDeclaration:
        view = ".".join(path[-2:])
        error = UnfinishedDeclaration(
            f"{self.source}: {path_key(path)} is being declared, or its declaration was interrupted (operation {op_id})",
            hint=f"try again; if the entry remains, no client is declaring the table: remove it with DROP VIEW {view} in Hive",
        )
        error.op_id = op_id
        return error

    def _native_id(self, path: Path) -> str | None:
        try:
            return records.native_id(self._store.get_table(path))
        except TableNotFound:
            return None

    def _read_back(self, path: Path, desired: TableRecord) -> TableRecord:
        """Return the record that a write produced. Raise Internal if it is not an external table at the desired location."""
        try:
            table, record = self._fetch_table(path)
            self._require_external(path, table)
        except (InvalidInput, TableNotFound) as error:
            raise Internal(f"{self.source}: {desired.key} was written and cannot be read back: {error.message}") from error
        if record.canonical != canonical_location(desired.location or ""):
            raise Internal(f"{self.source}: {desired.key} was written and reads back with the location {record.location}")
        return record

    def _drop_catalog(self, path: Path) -> None:
        """Drop a catalog and keep the directory of its location.

        ``drop_catalog`` of Hive 3 always deletes that directory with all content. The catalog's location is therefore first set to
        a directory that does not exist. ``drop_catalog`` would also drop ``default`` with its data, so ``default`` is dropped first.
        """
        catalog = self._store.get_catalog(path)
        default = (*path, DEFAULT_DATABASE)
        names = self._store.list_databases(path)
        if any(name != DEFAULT_DATABASE for name in names) or (names and self._store.all_tables(default)):
            raise NamespaceNotEmpty(f"{self.source}: the catalog {path[0]!r} is not empty")
        database = self._store.get_database(default) if names else None
        location = catalog.locationUri
        if database:
            self._store.drop_database(default)
        try:
            catalog.locationUri = f"{location.rstrip('/')}/.dropped-{uuid.uuid4().hex}"
            self._store.alter_catalog(catalog)
            if self._store.get_catalog(path).locationUri != catalog.locationUri:
                raise Internal(f"{self.source}: the catalog {path[0]!r} cannot be dropped without its directory")
            self._store.drop_catalog(path)
        except CatalogError:
            catalog.locationUri = location
            with suppress(CatalogError):
                self._store.alter_catalog(catalog)
                if database:
                    self._store.create_database(default, database)
            raise


def _find_compared_parameter(parameters: dict[str, str], after: TableRecord) -> tuple[str, str] | None:
    """Return a parameter whose value changes, with its current value; None if no value changes.

    The server compares it, so that only one of two concurrent changes of the parameter can succeed.
    """
    changing = sorted(key for key, value in after.properties.items() if parameters.get(key, value) != value)
    return (changing[0], parameters[changing[0]]) if changing else None
