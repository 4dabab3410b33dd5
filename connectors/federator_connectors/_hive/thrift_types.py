"""Thrift types and methods of the metastore.

They are hmsclient's generated types, extended by the fields and methods of Hive 3 and Hive 4. hmsclient 0.1.1 was generated from
the interface of Hive 2.3, so it lacks catalogs and ``catName``. This module lists fields and methods as data, with the numbers of
``hive_metastore.thrift`` (Hive 3.1 and 4.0). An older server skips fields that it does not know.
"""

from __future__ import annotations

from typing import Any

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

Field = tuple[int, int, str, Any]


def _struct(name: str, *fields: Field) -> Any:
    """Build a thrift struct class. ``fields``: id, type, name and element types."""
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
    """Return a generated struct with additional optional fields."""
    old = [tuple(spec[:4]) for spec in generated.thrift_spec if spec]
    return _struct(generated.__name__, *old, *more)


def _struct_fields(cls: Any) -> list[Any]:
    return [cls, cls.thrift_spec]


def _string_field(number: int, name: str) -> Field:
    return (number, TType.STRING, name, "UTF8")


def _bool_field(number: int, name: str) -> Field:
    return (number, TType.BOOL, name, None)


def _struct_field(number: int, name: str, cls: Any) -> Field:
    return (number, TType.STRUCT, name, _struct_fields(cls))


def _struct_list_field(number: int, name: str, cls: Any) -> Field:
    return (number, TType.LIST, name, (TType.STRUCT, _struct_fields(cls), False))


def _string_list_field(number: int, name: str) -> Field:
    return (number, TType.LIST, name, (TType.STRING, "UTF8", False))


FieldSchema = ttypes.FieldSchema
StorageDescriptor = ttypes.StorageDescriptor
SerDeInfo = ttypes.SerDeInfo
EnvironmentContext = ttypes.EnvironmentContext
ClientCapabilities = ttypes.ClientCapabilities
PrincipalType = ttypes.PrincipalType

#: a value of ClientCapability that Hive 3 added; Hive 2 ignores it
INSERT_ONLY_TABLES = 2

AlreadyExistsException = ttypes.AlreadyExistsException
InvalidObjectException = ttypes.InvalidObjectException
InvalidOperationException = ttypes.InvalidOperationException
MetaException = ttypes.MetaException
NoSuchObjectException = ttypes.NoSuchObjectException
UnknownDBException = ttypes.UnknownDBException

Catalog = _struct("Catalog", _string_field(1, "name"), _string_field(2, "description"), _string_field(3, "locationUri"))
CreateCatalogRequest = _struct("CreateCatalogRequest", _struct_field(1, "catalog", Catalog))
AlterCatalogRequest = _struct("AlterCatalogRequest", _string_field(1, "name"), _struct_field(2, "newCat", Catalog))
GetCatalogRequest = _struct("GetCatalogRequest", _string_field(1, "name"))
GetCatalogResponse = _struct("GetCatalogResponse", _struct_field(1, "catalog", Catalog))
GetCatalogsResponse = _struct("GetCatalogsResponse", _string_list_field(1, "names"))
DropCatalogRequest = _struct("DropCatalogRequest", _string_field(1, "name"))
# Fields 9 to 13 belong to Hive 4. If the struct lacked them, an alter would remove their values from a database.
Database = _extended(
    ttypes.Database,
    _string_field(8, "catalogName"),
    _string_field(9, "managedLocationUri"),
    (10, TType.I32, "createTime", None),
    (11, TType.I32, "type", None),
    _string_field(12, "connector_name"),
    _string_field(13, "remote_dbname"),
)
# Fields 23 to 25 belong to Hive 4. If the struct lacked them, an alter would remove the capabilities that a table requires of clients.
Table = _extended(
    ttypes.Table,
    _string_field(17, "catName"),
    (18, TType.I32, "ownerType", None),
    _string_list_field(23, "requiredReadCapabilities"),
    _string_list_field(24, "requiredWriteCapabilities"),
    (25, TType.I64, "id", None),
)
GetTableRequest = _extended(ttypes.GetTableRequest, _string_field(4, "catName"))
GetTableResult = _struct("GetTableResult", _struct_field(1, "table", Table))
GetTablesRequest = _extended(ttypes.GetTablesRequest, _string_field(4, "catName"))
GetTablesResult = _struct("GetTablesResult", _struct_list_field(1, "tables", Table))
NotificationEventRequest = ttypes.NotificationEventRequest
CurrentNotificationEventId = ttypes.CurrentNotificationEventId
NotificationEvent = _struct(
    "NotificationEvent",
    (1, TType.I64, "eventId", None),
    (2, TType.I32, "eventTime", None),
    *(_string_field(number, name) for number, name in enumerate(("eventType", "dbName", "tableName", "message"), 3)),
    _string_field(7, "messageFormat"),
    _string_field(8, "catName"),
)
NotificationEventResponse = _struct("NotificationEventResponse", _struct_list_field(1, "events", NotificationEvent))


class ThriftMethod:
    """One method: the structs of its arguments and its result, and its declared exceptions in order."""

    def __init__(
        self, name: str, arguments: list[Field], success: Field | None, *exceptions: Any, writes: bool = False
    ) -> None:
        self.name = name
        self.names = [field for _, _, field, _ in arguments]
        self.arguments = _struct(f"{name}_args", *arguments)
        self.failures = [f"o{number}" for number in range(1, len(exceptions) + 1)]
        declared = [_struct_field(number, f"o{number}", exception) for number, exception in enumerate(exceptions, 1)]
        self.result = _struct(f"{name}_result", *([success] if success else []), *declared)
        self.has_result = success is not None
        self.writes = writes


_EXISTS = AlreadyExistsException
_INVALID = InvalidObjectException
_REFUSED = InvalidOperationException
_META = MetaException
_NOT_FOUND = NoSuchObjectException
_NO_DATABASE = UnknownDBException

_NAMES = _string_list_field(0, "success")
_CONTEXT = ("environment_context", EnvironmentContext)


def _result_field(cls: Any) -> Field:
    return _struct_field(0, "success", cls)


def _request(cls: Any) -> list[Field]:
    return [_struct_field(1, "request", cls)]


def _string_fields(*names: str) -> list[Field]:
    return [_string_field(number, name) for number, name in enumerate(names, 1)]


_BY_FILTER = [*_string_fields("dbname", "filter"), (3, TType.I16, "max_tables", None)]
_DROP_DATABASE = [_string_field(1, "name"), _bool_field(2, "deleteData"), _bool_field(3, "cascade")]
_CREATE_TABLE = [_struct_field(1, "tbl", Table), _struct_field(2, *_CONTEXT)]
_ALTER_TABLE = [*_string_fields("dbname", "tbl_name"), _struct_field(3, "new_tbl", Table), _struct_field(4, *_CONTEXT)]
_DROP_TABLE = [*_string_fields("dbname", "name"), _bool_field(3, "deleteData")]

METHODS = {
    method.name: method
    for method in (
        ThriftMethod("get_catalogs", [], _result_field(GetCatalogsResponse), _META),
        ThriftMethod(
            "get_config_value",
            _string_fields("name", "defaultValue"),
            _string_field(0, "success"),
            ttypes.ConfigValSecurityException,
        ),
        ThriftMethod("set_ugi", [_string_field(1, "user_name"), _string_list_field(2, "group_names")], _NAMES, _META),
        ThriftMethod("get_metastore_db_uuid", [], _string_field(0, "success"), _META),
        ThriftMethod("get_current_notificationEventId", [], _result_field(CurrentNotificationEventId)),
        ThriftMethod(
            "get_next_notification",
            [_struct_field(1, "rqst", NotificationEventRequest)],
            _result_field(NotificationEventResponse),
        ),
        ThriftMethod("get_catalog", _request(GetCatalogRequest), _result_field(GetCatalogResponse), _NOT_FOUND, _META),
        ThriftMethod("create_catalog", _request(CreateCatalogRequest), None, _EXISTS, _INVALID, _META, writes=True),
        ThriftMethod("alter_catalog", _request(AlterCatalogRequest), None, _NOT_FOUND, _REFUSED, _META, writes=True),
        ThriftMethod("drop_catalog", _request(DropCatalogRequest), None, _NOT_FOUND, _REFUSED, _META, writes=True),
        ThriftMethod("get_databases", _string_fields("pattern"), _NAMES, _META),
        ThriftMethod("get_database", _string_fields("name"), _result_field(Database), _NOT_FOUND, _META),
        ThriftMethod("create_database", [_struct_field(1, "database", Database)], None, _EXISTS, _INVALID, _META, writes=True),
        ThriftMethod(
            "alter_database",
            [_string_field(1, "dbname"), _struct_field(2, "db", Database)],
            None,
            _META,
            _NOT_FOUND,
            writes=True,
        ),
        ThriftMethod("drop_database", _DROP_DATABASE, None, _NOT_FOUND, _REFUSED, _META, writes=True),
        ThriftMethod("get_all_tables", _string_fields("db_name"), _NAMES, _META),
        ThriftMethod("get_tables_by_type", _string_fields("db_name", "pattern", "tableType"), _NAMES, _META),
        ThriftMethod("get_table_names_by_filter", _BY_FILTER, _NAMES, _META, _REFUSED, _NO_DATABASE),
        ThriftMethod("get_table_req", _request(GetTableRequest), _result_field(GetTableResult), _META, _NOT_FOUND),
        ThriftMethod(
            "get_table_objects_by_name_req",
            _request(GetTablesRequest),
            _result_field(GetTablesResult),
            _META,
            _REFUSED,
            _NO_DATABASE,
        ),
        ThriftMethod(
            "create_table_with_environment_context", _CREATE_TABLE, None, _EXISTS, _INVALID, _META, _NOT_FOUND, writes=True
        ),
        ThriftMethod("alter_table_with_environment_context", _ALTER_TABLE, None, _REFUSED, _META, writes=True),
        ThriftMethod("drop_table", _DROP_TABLE, None, _NOT_FOUND, _META, writes=True),
    )
}
