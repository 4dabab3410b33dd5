"""The metastore's thrift interface as this connector uses it: hmsclient's generated types, extended by what Hive 3 added.

hmsclient 0.1.1 was generated from the interface of Hive 2.3: it lacks catalogs and ``catName``. Fields and methods are given as
data in the numbering of ``hive_metastore.thrift`` (Hive 3.1 and 4.0); a server of an older version skips what it does not know.
"""

from __future__ import annotations

from typing import Any

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

Field = tuple[int, int, str, Any]


def _struct(name: str, *fields: Field) -> Any:
    """A thrift struct class. ``fields``: id, type, name, and what the element types are."""
    spec: list[Any] = [None] * (max((number for number, *_ in fields), default=-1) + 1)
    for number, kind, field, inner in fields:
        spec[number] = (number, kind, field, inner, None)
    names = tuple(field for _, _, field, _ in fields)

    def __init__(self: Any, **values: Any) -> None:  # noqa: N807
        for field in names:
            setattr(self, field, values.pop(field, None))
        if values:
            raise TypeError(f"{name} has no field {', '.join(values)}")

    return type(name, (TBase,), {"thrift_spec": tuple(spec), "__init__": __init__, "__slots__": names})


def _extended(generated: Any, *more: Field) -> Any:
    """A generated struct with more optional fields."""
    old = [tuple(spec[:4]) for spec in generated.thrift_spec if spec]
    return _struct(generated.__name__, *old, *more)


def _of(cls: Any) -> list[Any]:
    return [cls, cls.thrift_spec]


def _string(number: int, name: str) -> Field:
    return (number, TType.STRING, name, "UTF8")


def _bool(number: int, name: str) -> Field:
    return (number, TType.BOOL, name, None)


def _one(number: int, name: str, cls: Any) -> Field:
    return (number, TType.STRUCT, name, _of(cls))


def _many(number: int, name: str, cls: Any) -> Field:
    return (number, TType.LIST, name, (TType.STRUCT, _of(cls), False))


def _strings(number: int, name: str) -> Field:
    return (number, TType.LIST, name, (TType.STRING, "UTF8", False))


FieldSchema = ttypes.FieldSchema
StorageDescriptor = ttypes.StorageDescriptor
SerDeInfo = ttypes.SerDeInfo
EnvironmentContext = ttypes.EnvironmentContext
ClientCapabilities = ttypes.ClientCapabilities
PrincipalType = ttypes.PrincipalType

#: a value of ClientCapability that Hive 3 added; Hive 2 takes it for none
INSERT_ONLY_TABLES = 2

AlreadyExistsException = ttypes.AlreadyExistsException
InvalidObjectException = ttypes.InvalidObjectException
InvalidOperationException = ttypes.InvalidOperationException
MetaException = ttypes.MetaException
NoSuchObjectException = ttypes.NoSuchObjectException
UnknownDBException = ttypes.UnknownDBException

Catalog = _struct("Catalog", _string(1, "name"), _string(2, "description"), _string(3, "locationUri"))
CreateCatalogRequest = _struct("CreateCatalogRequest", _one(1, "catalog", Catalog))
AlterCatalogRequest = _struct("AlterCatalogRequest", _string(1, "name"), _one(2, "newCat", Catalog))
GetCatalogRequest = _struct("GetCatalogRequest", _string(1, "name"))
GetCatalogResponse = _struct("GetCatalogResponse", _one(1, "catalog", Catalog))
GetCatalogsResponse = _struct("GetCatalogsResponse", _strings(1, "names"))
DropCatalogRequest = _struct("DropCatalogRequest", _string(1, "name"))
# 9 to 13 are Hive 4's; without them an alter would take them from a database.
Database = _extended(
    ttypes.Database,
    _string(8, "catalogName"),
    _string(9, "managedLocationUri"),
    (10, TType.I32, "createTime", None),
    (11, TType.I32, "type", None),
    _string(12, "connector_name"),
    _string(13, "remote_dbname"),
)
# 23 to 25 are Hive 4's; without them an alter would drop the capabilities that a table demands of its readers.
Table = _extended(
    ttypes.Table,
    _string(17, "catName"),
    (18, TType.I32, "ownerType", None),
    _strings(23, "requiredReadCapabilities"),
    _strings(24, "requiredWriteCapabilities"),
    (25, TType.I64, "id", None),
)
GetTableRequest = _extended(ttypes.GetTableRequest, _string(4, "catName"))
GetTableResult = _struct("GetTableResult", _one(1, "table", Table))
GetTablesRequest = _extended(ttypes.GetTablesRequest, _string(4, "catName"))
GetTablesResult = _struct("GetTablesResult", _many(1, "tables", Table))
NotificationEventRequest = ttypes.NotificationEventRequest
CurrentNotificationEventId = ttypes.CurrentNotificationEventId
NotificationEvent = _struct(
    "NotificationEvent",
    (1, TType.I64, "eventId", None),
    (2, TType.I32, "eventTime", None),
    *(_string(number, name) for number, name in enumerate(("eventType", "dbName", "tableName", "message"), 3)),
    _string(7, "messageFormat"),
    _string(8, "catName"),
)
NotificationEventResponse = _struct("NotificationEventResponse", _many(1, "events", NotificationEvent))


class Method:
    """One call: the struct of its arguments, that of its answer, and its declared exceptions in order."""

    def __init__(self, name: str, arguments: list[Field], answer: Field | None, *exceptions: Any, writes: bool = False) -> None:
        self.name = name
        self.names = [field for _, _, field, _ in arguments]
        self.arguments = _struct(f"{name}_args", *arguments)
        self.failures = [f"o{number}" for number in range(1, len(exceptions) + 1)]
        declared = [_one(number, f"o{number}", exception) for number, exception in enumerate(exceptions, 1)]
        self.result = _struct(f"{name}_result", *([answer] if answer else []), *declared)
        self.answers = answer is not None
        self.writes = writes


_EXISTS = AlreadyExistsException
_INVALID = InvalidObjectException
_REFUSED = InvalidOperationException
_META = MetaException
_LOST = NoSuchObjectException
_NO_DATABASE = UnknownDBException

_NAMES = _strings(0, "success")
_CONTEXT = ("environment_context", EnvironmentContext)


def _answer(cls: Any) -> Field:
    return _one(0, "success", cls)


def _request(cls: Any) -> list[Field]:
    return [_one(1, "request", cls)]


def _texts(*names: str) -> list[Field]:
    return [_string(number, name) for number, name in enumerate(names, 1)]


_BY_FILTER = [*_texts("dbname", "filter"), (3, TType.I16, "max_tables", None)]
_DROP_DATABASE = [_string(1, "name"), _bool(2, "deleteData"), _bool(3, "cascade")]
_CREATE_TABLE = [_one(1, "tbl", Table), _one(2, *_CONTEXT)]
_ALTER_TABLE = [*_texts("dbname", "tbl_name"), _one(3, "new_tbl", Table), _one(4, *_CONTEXT)]
_DROP_TABLE = [*_texts("dbname", "name"), _bool(3, "deleteData")]

METHODS = {
    method.name: method
    for method in (
        Method("get_catalogs", [], _answer(GetCatalogsResponse), _META),
        Method("get_config_value", _texts("name", "defaultValue"), _string(0, "success"), ttypes.ConfigValSecurityException),
        Method("get_metastore_db_uuid", [], _string(0, "success"), _META),
        Method("get_current_notificationEventId", [], _answer(CurrentNotificationEventId)),
        Method("get_next_notification", [_one(1, "rqst", NotificationEventRequest)], _answer(NotificationEventResponse)),
        Method("get_catalog", _request(GetCatalogRequest), _answer(GetCatalogResponse), _LOST, _META),
        Method("create_catalog", _request(CreateCatalogRequest), None, _EXISTS, _INVALID, _META, writes=True),
        Method("alter_catalog", _request(AlterCatalogRequest), None, _LOST, _REFUSED, _META, writes=True),
        Method("drop_catalog", _request(DropCatalogRequest), None, _LOST, _REFUSED, _META, writes=True),
        Method("get_databases", _texts("pattern"), _NAMES, _META),
        Method("get_database", _texts("name"), _answer(Database), _LOST, _META),
        Method("create_database", [_one(1, "database", Database)], None, _EXISTS, _INVALID, _META, writes=True),
        Method("alter_database", [_string(1, "dbname"), _one(2, "db", Database)], None, _META, _LOST, writes=True),
        Method("drop_database", _DROP_DATABASE, None, _LOST, _REFUSED, _META, writes=True),
        Method("get_all_tables", _texts("db_name"), _NAMES, _META),
        Method("get_tables_by_type", _texts("db_name", "pattern", "tableType"), _NAMES, _META),
        Method("get_table_names_by_filter", _BY_FILTER, _NAMES, _META, _REFUSED, _NO_DATABASE),
        Method("get_table_req", _request(GetTableRequest), _answer(GetTableResult), _META, _LOST),
        Method(
            "get_table_objects_by_name_req", _request(GetTablesRequest), _answer(GetTablesResult), _META, _REFUSED, _NO_DATABASE
        ),
        Method("create_table_with_environment_context", _CREATE_TABLE, None, _EXISTS, _INVALID, _META, _LOST, writes=True),
        Method("alter_table_with_environment_context", _ALTER_TABLE, None, _REFUSED, _META, writes=True),
        Method("drop_table", _DROP_TABLE, None, _LOST, _META, writes=True),
    )
}
