"""The metastore's calls by path: ``(catalog, database)`` for Hive 3, ``(database,)`` for Hive 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from federator.connector import Internal, Unsupported
from federator.model import ROOT, Path
from federator_connectors._hive import errors, structs
from federator_connectors._hive.client import Client

#: the database that every catalog comes with
DEFAULT_DATABASE = "default"

# JDOQL's matches. Without (?i) a table marked LANCE is lost; "=" runs for 20 s and fails on 3.1.3's own Derby schema.
_LANCE_FILTER = 'hive_filter_field_params__table_type like "(?i)lance"'
_ALL = -1
# Without it the server refuses a whole batch because of one insert-only table in it.
_CAPABILITIES = structs.ClientCapabilities(values=[structs.INSERT_ONLY_TABLES])
# Hive's own names for what transactions, or nobody, wait for.
_LISTENERS = ("hive.metastore.transactional.event.listeners", "hive.metastore.event.listeners")


class Marked(NamedTuple):
    """Names of tables; ``exact`` unless some of them may not be marked."""

    names: list[str]
    exact: bool = True


class Metastore:
    """Typed calls over one client. ``levels``: 2 with catalogs, 1 without. Thread-safe. Raises CatalogError."""

    def __init__(self, client: Client, *, levels: int) -> None:
        self._client = client
        self._compares = True
        self.levels = levels

    def catalogs(self) -> list[str]:
        """Raises Unsupported on a Hive 2 metastore."""
        if not self._client.has_catalogs():
            raise Unsupported("this is a Hive 2 metastore, which has no catalogs", hint="use the impl hive2")
        answer = self._client.call("get_catalogs", about=errors.namespace(ROOT))
        return _folded(answer.names)

    def catalog(self, path: Path) -> Any:
        """Raises NamespaceNotFound."""
        request = structs.GetCatalogRequest(name=path[0])
        return self._client.call("get_catalog", request, about=errors.namespace(path)).catalog

    def create_catalog(self, catalog: Any) -> None:
        request = structs.CreateCatalogRequest(catalog=catalog)
        self._client.call("create_catalog", request, about=errors.namespace((catalog.name,)))

    def alter_catalog(self, catalog: Any) -> None:
        request = structs.AlterCatalogRequest(name=catalog.name, newCat=catalog)
        self._client.call("alter_catalog", request, about=errors.namespace((catalog.name,)))

    def drop_catalog(self, path: Path) -> None:
        """The server deletes the directory of the catalog's location with all that is in it. Raises NamespaceNotEmpty."""
        request = structs.DropCatalogRequest(name=path[0])
        self._client.call("drop_catalog", request, about=errors.namespace(path))

    def databases(self, parent: Path) -> list[str]:
        """Names of the databases; of a catalog that does not exist none."""
        return _folded(self._client.call("get_databases", self._qualified((*parent, "*")), about=errors.namespace(parent)))

    def database(self, path: Path) -> Any:
        """Raises NamespaceNotFound."""
        return self._client.call("get_database", self._qualified(path), about=errors.namespace(path))

    def create_database(self, path: Path, database: Any) -> None:
        self._client.call("create_database", database, about=errors.namespace(path))

    def alter_database(self, path: Path, database: Any) -> None:
        """Gives a database the parameters and the description of ``database``. Raises NamespaceNotFound."""
        self._client.call("alter_database", self._qualified(path), database, about=errors.namespace(path))

    def drop_database(self, path: Path) -> None:
        """Drops an empty database; its directory stays. Raises NamespaceNotEmpty."""
        self._client.call("drop_database", self._qualified(path), False, False, about=errors.namespace(path))

    def all_tables(self, path: Path) -> list[str]:
        """Names of the tables and views of a database, Lance or not; of one that does not exist none."""
        return _folded(self._client.call("get_all_tables", self._qualified(path), about=errors.namespace(path)))

    def marked_tables(self, path: Path) -> Marked:
        """The tables marked as Lance, external or not; of a database that does not exist none.

        Filtered by the server, or, where that fails (some databases below a metastore cannot compare the column), all tables.
        """
        about, database = errors.namespace(path), self._qualified(path)
        try:
            return Marked(_folded(self._client.call("get_table_names_by_filter", database, _LANCE_FILTER, _ALL, about=about)))
        except (Internal, Unsupported):
            return Marked(self.all_tables(path), exact=False)

    def external_tables(self, path: Path) -> list[str]:
        """Names of the external tables; of a database that does not exist none."""
        about = errors.namespace(path)
        return _folded(self._client.call("get_tables_by_type", self._qualified(path), "*", "EXTERNAL_TABLE", about=about))

    def tables(self, path: Path, names: Sequence[str]) -> list[Any]:
        """Whole tables, in one answer; a name that does not exist is left out. Raises NamespaceNotFound."""
        request = structs.GetTablesRequest(
            dbName=path[-1], tblNames=list(names), catName=self.catalog_of(path), capabilities=_CAPABILITIES
        )
        answer = self._client.call("get_table_objects_by_name_req", request, about=errors.namespace(path))
        return list(answer.tables)

    def table(self, path: Path) -> Any:
        """Raises TableNotFound, also when the database does not exist: the server does not tell them apart."""
        request = structs.GetTableRequest(
            dbName=path[-2], tblName=path[-1], catName=self.catalog_of(path[:-1]), capabilities=_CAPABILITIES
        )
        table = self._client.call("get_table_req", request, about=errors.table(path)).table
        if (table.dbName.lower(), table.tableName.lower()) != path[-2:]:
            raise Internal(f"table {'$'.join(path)!r}: the metastore answers with {table.dbName}.{table.tableName}")
        return table

    def create_table(self, path: Path, table: Any) -> None:
        context = structs.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        self._client.call("create_table_with_environment_context", table, context, about=errors.table(path))

    def alter_table(self, path: Path, table: Any, *, expected: tuple[str, str] | None = None) -> None:
        """``table`` may have another name and database, but not another catalog.

        ``expected``: a parameter and the value that it must have. 2.3.10 and 4.x compare, unless their database cannot; 3.1.3
        silently does not. Raises ConcurrentModification where the server compares.
        """
        if expected and self._compares:
            try:
                self._alter(path, table, {"expected_parameter_key": expected[0], "expected_parameter_value": expected[1]})
            except errors.Incomparable:
                # It takes the server a while to say so.
                self._compares = False
            else:
                return
        self._alter(path, table, {})

    def _alter(self, path: Path, table: Any, context: dict[str, str]) -> None:
        environment = structs.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true", **context})
        self._client.call(
            "alter_table_with_environment_context", self._qualified(path[:-1]), path[-1], table, environment,
            about=errors.table(path),
        )  # fmt: skip

    def drop_table(self, path: Path) -> None:
        """Drops the declaration; the data stays. Raises TableNotFound."""
        self._client.call("drop_table", self._qualified(path[:-1]), path[-1], False, about=errors.table(path))

    def listeners(self) -> str:
        """The classes that the server is configured to tell of every change, separated by commas."""
        about = errors.namespace(ROOT)
        return ",".join(str(self._client.call("get_config_value", name, "", about=about)) for name in _LISTENERS)

    def anchor_identity(self) -> str:
        """As ``identity``, and no connection to another metastore is used afterwards (``Client.identity``)."""
        return self._client.identity()

    def identity(self) -> str:
        """The id that the metastore's database was given when it was made; empty on Hive 2, which has none."""
        try:
            return str(self._client.call("get_metastore_db_uuid", about=errors.namespace(ROOT)))
        except Unsupported:
            return ""

    def current_event(self) -> int:
        """The id of the last event of the notification log; 0 if there never was one."""
        return int(self._client.call("get_current_notificationEventId", about=errors.namespace(ROOT)).eventId)

    def events(self, after: int, most: int) -> list[Any]:
        """At most ``most`` events with ids above ``after``, in the order of their ids; expired ones are left out silently."""
        request = structs.NotificationEventRequest(lastEvent=after, maxEvents=most)
        return list(self._client.call("get_next_notification", request, about=errors.namespace(ROOT)).events)

    def catalog_of(self, path: Path) -> str | None:
        """The catalog of a database's path, None without catalogs."""
        return path[0] if self.levels == 2 else None

    def close(self) -> None:
        self._client.close()

    def _qualified(self, path: Path) -> str:
        """A database's name as a method's argument takes it; catalogs go into it as ``@catalog#database``."""
        return f"@{path[0]}#{path[1]}" if self.levels == 2 else path[0]


def _folded(names: Sequence[str]) -> list[str]:
    """Names as Hive keeps them: in lower case, each once."""
    return list(dict.fromkeys(name.lower() for name in names))
