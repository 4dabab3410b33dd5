"""An example connector: a catalog that keeps Lance tables in two tables of a SQLite file.

Paths are (namespace, table). It shows what every connector decides: which answers prove absence, how a write stays conditional,
and how a crawl is cut into shards.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from federator.connector import (
    Capabilities,
    Catalog,
    Confirm,
    Connector,
    ConnectorSettings,
    NameRules,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    ServiceUnavailable,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    option,
    unconditional,
)
from federator.connector.crawl import CoverageBuilder
from federator.connector.preconditions import check_table
from federator.lance.lazy_facade import lazy_facade_class
from federator.model import (
    ROOT,
    Coverage,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    path_key,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS namespaces (name TEXT PRIMARY KEY, properties TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tables (
    id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL REFERENCES namespaces, name TEXT NOT NULL,
    location TEXT NOT NULL, properties TEXT NOT NULL, doc TEXT, UNIQUE (namespace, name)
);
"""


@dataclass(frozen=True, kw_only=True)
class SqliteSettings(ConnectorSettings):
    """The options of a source; ``root`` and ``storage.*`` are inherited."""

    file: str = option("file", doc="The SQLite file.")


class SqliteCatalog(Catalog):
    """One SQLite file. Each call has a connection of its own, so threads may share the catalog."""

    def __init__(self, source: str, settings: SqliteSettings) -> None:
        self.source = source
        self._file = settings.file
        self._root = (settings.root or "s3://example").rstrip("/")

    def list_namespaces(self, parent: Path) -> list[str]:
        with self._connect() as connection:
            self._require_namespace(connection, parent)
            if parent != ROOT:
                return []
            return [name for (name,) in connection.execute("SELECT name FROM namespaces ORDER BY name")]

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        with self._connect() as connection:
            return self._namespace(connection, path)

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        with self._connect() as connection:
            try:
                values = (record.path[-1], json.dumps(dict(record.properties)))
                connection.execute("INSERT INTO namespaces VALUES (?, ?)", values)
            except sqlite3.IntegrityError as error:
                raise NamespaceAlreadyExists(f"{self.source}: the namespace {record.key} exists") from error
            return self._namespace(connection, record.path)

    def drop_namespace(self, path: Path) -> None:
        with self._connect() as connection:
            self._require_namespace(connection, path)
            if connection.execute("SELECT 1 FROM tables WHERE namespace = ?", path).fetchone():
                raise NamespaceNotEmpty(f"{self.source}: the namespace {path_key(path)} is not empty")
            connection.execute("DELETE FROM namespaces WHERE name = ?", path)

    def list_tables(self, namespace: Path) -> list[str]:
        with self._connect() as connection:
            self._require_namespace(connection, namespace)
            query = "SELECT name FROM tables WHERE namespace = ? ORDER BY name"
            return [name for (name,) in connection.execute(query, namespace or ("",))]

    def describe_table(self, path: Path) -> TableRecord:
        with self._connect() as connection:
            self._require_namespace(connection, path[:-1])
            return self._table(connection, path)

    def declare_table(self, record: TableRecord) -> TableRecord:
        with self._connect() as connection:
            self._require_namespace(connection, record.path[:-1])
            location = record.location or self.default_location(record.path)
            values = (*record.path, location, json.dumps(dict(record.properties)), record.doc)
            try:
                connection.execute(
                    "INSERT INTO tables (namespace, name, location, properties, doc) VALUES (?, ?, ?, ?, ?)", values
                )
            except sqlite3.IntegrityError as error:
                raise TableAlreadyExists(f"{self.source}: {record.key} exists") from error
            return self._table(connection, record.path)

    # In these three the transaction holds the write lock from its begin: nobody writes between the check and the change.

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        with self._connect() as connection:
            check_table(self._table(connection, before.path), before, confirm)
            values = (after.location, json.dumps(dict(after.properties)), after.doc, *before.path)
            connection.execute(
                "UPDATE tables SET location = ?, properties = ?, doc = ? WHERE namespace = ? AND name = ?", values
            )
            return self._table(connection, before.path)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        with self._connect() as connection:
            check_table(self._table(connection, expected.path), expected, confirm)
            connection.execute("DELETE FROM tables WHERE namespace = ? AND name = ?", expected.path)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        with self._connect() as connection:
            check_table(self._table(connection, before.path), before, unconditional)
            self._require_namespace(connection, new_path[:-1])
            try:
                connection.execute(
                    "UPDATE tables SET namespace = ?, name = ? WHERE namespace = ? AND name = ?", (*new_path, *before.path)
                )
            except sqlite3.IntegrityError as error:
                raise TableAlreadyExists(f"{self.source}: {path_key(new_path)} exists") from error
            return self._table(connection, new_path)

    def default_location(self, path: Path) -> str:
        return "/".join((self._root, *path)) + ".lance"

    def plan_shards(self) -> Sequence[Shard]:
        return [Shard((ROOT,)), *(Shard(((name,),)) for name in self.list_namespaces(ROOT))]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            # A namespace that cannot be read is neither complete nor empty. Only "not found" proves that it is absent.
            yield from CoverageBuilder(self.source, namespace).read(self._read_children(namespace))

    def _read_children(self, namespace: Path) -> Iterator[Record]:
        with self._connect() as connection:
            self._require_namespace(connection, namespace)
            if namespace == ROOT:
                rows = connection.execute("SELECT * FROM namespaces ORDER BY name").fetchall()
                records: Sequence[Record] = [_namespace_record(self.source, row) for row in rows]
            else:
                rows = connection.execute("SELECT * FROM tables WHERE namespace = ? ORDER BY name", namespace).fetchall()
                records = [_table_record(self.source, row) for row in rows]
        yield from records

    def _require_namespace(self, connection: sqlite3.Connection, path: Path) -> None:
        if path != ROOT:
            self._namespace(connection, path)

    def _namespace(self, connection: sqlite3.Connection, path: Path) -> NamespaceRecord:
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        row = connection.execute("SELECT * FROM namespaces WHERE name = ?", path).fetchone()
        if row is None:
            raise NamespaceNotFound(f"{self.source}: namespace {path_key(path)} not found")
        return _namespace_record(self.source, row)

    def _table(self, connection: sqlite3.Connection, path: Path) -> TableRecord:
        row = connection.execute("SELECT * FROM tables WHERE namespace = ? AND name = ?", path).fetchone()
        if row is None:
            raise TableNotFound(f"{self.source}: table {path_key(path)} not found")
        return _table_record(self.source, row)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Every error of SQLite's becomes one of the port's errors here, and nowhere else."""
        connection = None
        try:
            connection = sqlite3.connect(f"file:{self._file}?mode=rw", uri=True, timeout=30, isolation_level=None)
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise ServiceUnavailable(f"{self.source}: {self._file}: {error}") from error
        finally:
            if connection is not None:
                connection.close()


def create_file(file: str) -> None:
    """Create an empty catalog."""
    with sqlite3.connect(file) as connection:
        connection.executescript(_SCHEMA)
    connection.close()


def _namespace_record(source: str, row: Any) -> NamespaceRecord:
    return NamespaceRecord(source, (row["name"],), json.loads(row["properties"]))


def _table_record(source: str, row: Any) -> TableRecord:
    return TableRecord(
        source, (row["namespace"], row["name"]), row["location"], json.loads(row["properties"]), row["doc"],
        native_id=str(row["id"]),
    )  # fmt: skip


class SqliteConnector(Connector[SqliteSettings]):
    """impl ``sqlite``."""

    impl = "sqlite"
    settings_type = SqliteSettings
    capabilities = Capabilities(
        min_depth=1, max_depth=1, levels=("namespace",), names=NameRules(pattern=r"[^/$\x00]+"),
        creates_namespaces_at=frozenset({1}),
    )  # fmt: skip

    def open(self, source: str, settings: SqliteSettings) -> Catalog:
        return SqliteCatalog(source, settings)


CONNECTOR = SqliteConnector()
# ``sqlite_catalog.SqliteNamespace`` is the catalog as a Lance namespace, for clients without the service.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "SqliteNamespace")


__all__ = ["CONNECTOR", "SqliteCatalog", "SqliteConnector", "SqliteSettings", "create_file"]
