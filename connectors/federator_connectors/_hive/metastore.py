"""Typed metastore calls by path: ``(catalog, database)`` for Hive 3, ``(database,)`` for Hive 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from federator.connector import Internal, Unsupported
from federator.model import ROOT, Path
from federator_connectors._hive import errors, thrift_types
from federator_connectors._hive.client import Client

#: the catalog of clients that name none
DEFAULT_CATALOG = "hive"
#: the database that Hive creates in every catalog
DEFAULT_DATABASE = "default"

# JDOQL's `matches`. Without (?i) a table marked LANCE is not listed; "=" runs for 20 s and fails on the Derby schema of 3.1.3.
_LANCE_FILTER = 'hive_filter_field_params__table_type like "(?i)lance"'
_ALL = -1
# Without this capability the server refuses a whole batch because of one insert-only table in it.
_CAPABILITIES = thrift_types.ClientCapabilities(values=[thrift_types.INSERT_ONLY_TABLES])
# Hive's configuration keys of the listeners that run inside the transaction, and of those that run after it.
_LISTENERS = ("hive.metastore.transactional.event.listeners", "hive.metastore.event.listeners")


class LanceTableNames(NamedTuple):
    """Names of tables. ``is_exact`` is false if some of the tables may not be marked as Lance."""

    names: list[str]
    is_exact: bool = True


class Metastore:
    """Typed calls over one client. ``levels``: 2 with catalogs, 1 without. Thread-safe. All calls raise CatalogError."""

    def __init__(self, client: Client, *, levels: int) -> None:
        self._client = client
        #: whether the server compares expected parameters, as far as known
        self._compares = True
        self.levels = levels

    def list_catalogs(self) -> list[str]:
        """Return the catalogs' names. Raise Unsupported on a Hive 2 metastore."""
        if not self._client.has_catalogs():
            raise Unsupported("this is a Hive 2 metastore, which has no catalogs", hint="use the impl hive2")
        response = self._client.call("get_catalogs", about=errors.namespace_subject(ROOT))
        return _lower_names(response.names)

    def get_catalog(self, path: Path) -> Any:
        """Return the thrift struct of a catalog. Raise NamespaceNotFound."""
        request = thrift_types.GetCatalogRequest(name=path[0])
        return self._client.call("get_catalog", request, about=errors.namespace_subject(path)).catalog

    def create_catalog(self, catalog: Any) -> None:
        request = thrift_types.CreateCatalogRequest(catalog=catalog)
        self._client.call("create_catalog", request, about=errors.namespace_subject((catalog.name,)))

    def alter_catalog(self, catalog: Any) -> None:
        request = thrift_types.AlterCatalogRequest(name=catalog.name, newCat=catalog)
        self._client.call("alter_catalog", request, about=errors.namespace_subject((catalog.name,)))

    def drop_catalog(self, path: Path) -> None:
        """Drop a catalog. The server deletes the directory of its location with all content. Raise NamespaceNotEmpty."""
        request = thrift_types.DropCatalogRequest(name=path[0])
        self._client.call("drop_catalog", request, about=errors.namespace_subject(path))

    def list_databases(self, parent: Path) -> list[str]:
        """Return the databases' names; an empty list if the catalog does not exist."""
        return _lower_names(
            self._client.call("get_databases", self._qualified((*parent, "*")), about=errors.namespace_subject(parent))
        )

    def get_database(self, path: Path) -> Any:
        """Return the thrift struct of a database. Raise NamespaceNotFound."""
        return self._client.call("get_database", self._qualified(path), about=errors.namespace_subject(path))

    def create_database(self, path: Path, database: Any) -> None:
        self._client.call("create_database", database, about=errors.namespace_subject(path))

    def alter_database(self, path: Path, database: Any) -> None:
        """Set the parameters and the description of a database to those of ``database``. Raise NamespaceNotFound."""
        self._client.call("alter_database", self._qualified(path), database, about=errors.namespace_subject(path))

    def drop_database(self, path: Path) -> None:
        """Drop an empty database; its directory stays. Raise NamespaceNotEmpty."""
        self._client.call("drop_database", self._qualified(path), False, False, about=errors.namespace_subject(path))

    def all_tables(self, path: Path) -> list[str]:
        """Return the names of all tables and views of a database, Lance or not; an empty list if it does not exist."""
        return _lower_names(self._client.call("get_all_tables", self._qualified(path), about=errors.namespace_subject(path)))

    def list_marked_tables(self, path: Path) -> LanceTableNames:
        """Return the tables marked as Lance, external or not; none if the database does not exist.

        The server filters. Where its filter fails (some metastore databases cannot compare the column), all tables are returned.
        """
        about, database = errors.namespace_subject(path), self._qualified(path)
        try:
            return LanceTableNames(
                _lower_names(self._client.call("get_table_names_by_filter", database, _LANCE_FILTER, _ALL, about=about))
            )
        except (Internal, Unsupported):
            return LanceTableNames(self.all_tables(path), is_exact=False)

    def list_external_tables(self, path: Path) -> list[str]:
        """Return the names of the external tables; an empty list if the database does not exist."""
        about = errors.namespace_subject(path)
        return _lower_names(self._client.call("get_tables_by_type", self._qualified(path), "*", "EXTERNAL_TABLE", about=about))

    def get_tables(self, path: Path, names: Sequence[str]) -> list[Any]:
        """Return the tables with all fields, in one response. Names that do not exist are omitted. Raise NamespaceNotFound."""
        request = thrift_types.GetTablesRequest(
            dbName=path[-1], tblNames=list(names), catName=self.catalog_of(path), capabilities=_CAPABILITIES
        )
        response = self._client.call("get_table_objects_by_name_req", request, about=errors.namespace_subject(path))
        return list(response.tables)

    def get_table(self, path: Path) -> Any:
        """Return the thrift struct of a table.

        Raise TableNotFound, also if the database does not exist: the server does not distinguish the two cases.
        """
        request = thrift_types.GetTableRequest(
            dbName=path[-2], tblName=path[-1], catName=self.catalog_of(path[:-1]), capabilities=_CAPABILITIES
        )
        table = self._client.call("get_table_req", request, about=errors.table_subject(path)).table
        if (table.dbName.lower(), table.tableName.lower()) != path[-2:]:
            raise Internal(f"table {'$'.join(path)!r}: the metastore returned {table.dbName}.{table.tableName}")
        return table

    def create_table(self, path: Path, table: Any) -> None:
        context = thrift_types.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        self._client.call("create_table_with_environment_context", table, context, about=errors.table_subject(path))

    def alter_table(self, path: Path, table: Any, *, expected: tuple[str, str] | None = None) -> None:
        """Replace the table at ``path`` by ``table``, which may have another name and database, but not another catalog.

        ``expected`` is a parameter and its required current value. Hive 2.3.10 and 4.x compare it, unless their database cannot;
        Hive 3.1.3 silently ignores it. Raise ConcurrentModification if the server finds another value.
        """
        if expected and self._compares:
            try:
                self._alter(path, table, {"expected_parameter_key": expected[0], "expected_parameter_value": expected[1]})
            except errors.Incomparable:
                # The server takes seconds to report this, so it is not asked to compare again.
                self._compares = False
            else:
                return
        self._alter(path, table, {})

    def _alter(self, path: Path, table: Any, context: dict[str, str]) -> None:
        environment = thrift_types.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true", **context})
        self._client.call(
            "alter_table_with_environment_context", self._qualified(path[:-1]), path[-1], table, environment,
            about=errors.table_subject(path),
        )  # fmt: skip

    def drop_table(self, path: Path) -> None:
        """Drop the declaration; the data stays. Raise TableNotFound."""
        self._client.call("drop_table", self._qualified(path[:-1]), path[-1], False, about=errors.table_subject(path))

    def get_listeners(self) -> str:
        """Return the server's configured event listener classes, separated by commas."""
        about = errors.namespace_subject(ROOT)
        return ",".join(str(self._client.call("get_config_value", name, "", about=about)) for name in _LISTENERS)

    def anchor_identity(self) -> str:
        """Return the metastore's id, as ``get_metastore_id`` does. From then on, connections to another metastore are refused."""
        return self._client.anchor_identity()

    def get_metastore_id(self) -> str:
        """Return the id that the metastore's database got at its creation; empty on Hive 2, which has none."""
        try:
            return str(self._client.call("get_metastore_db_uuid", about=errors.namespace_subject(ROOT)))
        except Unsupported:
            return ""

    def get_current_event_id(self) -> int:
        """Return the id of the last event of the notification log; 0 if the log never had an event."""
        return int(self._client.call("get_current_notificationEventId", about=errors.namespace_subject(ROOT)).eventId)

    def list_events(self, after: int, limit: int) -> list[Any]:
        """Return at most ``limit`` events with ids above ``after``, ordered by id. Expired events are silently omitted."""
        request = thrift_types.NotificationEventRequest(lastEvent=after, maxEvents=limit)
        return list(self._client.call("get_next_notification", request, about=errors.namespace_subject(ROOT)).events)

    def catalog_of(self, path: Path) -> str | None:
        """Return the catalog of a database's path; None without catalogs."""
        return path[0] if self.levels == 2 else None

    def close(self) -> None:
        self._client.close()

    def _qualified(self, path: Path) -> str:
        """Return a database's name as thrift methods expect it: ``@catalog#database`` if there are catalogs."""
        return f"@{path[0]}#{path[1]}" if self.levels == 2 else path[0]


def _lower_names(names: Sequence[str]) -> list[str]:
    """Return names as Hive stores them: in lower case, without duplicates."""
    return list(dict.fromkeys(name.lower() for name in names))
