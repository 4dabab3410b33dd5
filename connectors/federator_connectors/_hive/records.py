"""Conversions between the metastore's structs and records.

Pure functions. A field that a server omits, or sends as None or empty, is not an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from federator.connector import LANCE, PLACEHOLDER_COLUMN, TABLE_TYPE_KEY, InvalidInput, NamespaceNotFound, Unsupported
from federator.model import Kind, NamespaceRecord, Path, TableRecord, canonical_json, path_key, stable_properties
from federator_connectors._hive import thrift_types
from federator_connectors._hive.settings import ORIGINS, READ_ONLY

EXTERNAL = "EXTERNAL"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
MANAGED_TABLE = "MANAGED_TABLE"
VIRTUAL_VIEW = "VIRTUAL_VIEW"
#: property of an unfinished declaration: the id of the operation that created it
DECLARING = "federator.declaring"
COMMENT = "comment"
OWNER_TYPE = "database.owner-type"
# Hive 4 sets this property on tables that were declared as managed. It moves their directory when they are renamed.
_TRANSLATED = "TRANSLATED_TO_EXTERNAL"
_IDENTIFYING = (TABLE_TYPE_KEY, EXTERNAL)
_READ_ONLY_PROBLEM = (
    "read-only: a Lance client declared the table without EXTERNAL=TRUE, so Hive manages it; "
    "with storage_managed = origins in its source, mirrors copy it"
)

#: what the Java client of lance-namespace-impls writes. Until its version 0.2.0 it set no ``managed_by``.
_LANCE_INPUT_FORMATS = frozenset({"com.lancedb.lance.mapred.LanceInputFormat", "org.lance.mapred.LanceInputFormat"})

# Column lengths of the metastore's database. The metastore retries a longer value for 20 s before it refuses it.
_NAMESPACE_CHARACTERS = 128
_TABLE_CHARACTERS = 256
_KEY_CHARACTERS = {"namespace": 180, "table": 256}
_VALUE_CHARACTERS = 4000
# Java's \w is ASCII. The server also accepts "/" in table names, which would nest one table's directory in another's.
_NAME = re.compile(r"[A-Za-z0-9_]+")


def is_lance_table(table: Any) -> bool:
    """Return whether the table is marked as Lance, external or not."""
    return bool((table.parameters or {}).get(TABLE_TYPE_KEY, "").lower() == LANCE)


def is_external_table(table: Any) -> bool:
    """Return whether the table is external and marked as Lance."""
    return is_lance_table(table) and table.tableType == EXTERNAL_TABLE


def is_storage_managed(table: Any) -> bool:
    """Return whether a Lance client declared the table without EXTERNAL=TRUE, as lance-namespace-impls does: the metastore then
    makes a managed table of it, and may delete its data when it is dropped."""
    if not is_lance_table(table) or table.tableType != MANAGED_TABLE:
        return False
    managed_by = table.parameters.get("managed_by", "").lower()
    input_format = table.sd.inputFormat if table.sd else None
    return managed_by == "storage" or (not managed_by and input_format in _LANCE_INPUT_FORMATS)


def table_record(source: str, path: Path, table: Any, *, storage_managed: str = READ_ONLY) -> TableRecord:
    """Return the record of a table that is marked as Lance. Its kind is MANAGED_TABLE unless it is external.

    A storage-managed table is read-only, or has the kind TABLE with the setting ``storage_managed`` = origins.
    """
    parameters = dict(table.parameters or {})
    is_managed = is_storage_managed(table)
    is_origin = is_managed and storage_managed == ORIGINS
    storage = table.sd
    columns = [*((storage and storage.cols) or []), *(table.partitionKeys or [])]
    return TableRecord(
        source,
        path,
        location=(storage and storage.location) or None,
        properties={key: value for key, value in parameters.items() if key not in _IDENTIFYING},
        doc=parameters.get(COMMENT) or None,
        owner=table.owner or None,
        schema=_columns_to_schema(columns),
        native_id=native_id(table),
        kind=Kind.TABLE if table.tableType == EXTERNAL_TABLE or is_origin else Kind.MANAGED_TABLE,
        problem=_READ_ONLY_PROBLEM if is_managed and not is_origin else None,
    )


def native_id(table: Any) -> str:
    """Return Hive 4's table id, else the creation time in seconds.

    Without an id, two declarations within one second differ by their content only.
    """
    return str(table.id if table.id is not None else table.createTime)


def catalog_record(source: str, path: Path, catalog: Any) -> NamespaceRecord:
    return NamespaceRecord(source, path, location=catalog.locationUri or None, doc=catalog.description or None)


def database_record(source: str, path: Path, database: Any) -> NamespaceRecord:
    """Return the record of a database. Its owner is a user unless the property ``database.owner-type`` is ROLE or GROUP."""
    properties = dict(database.parameters or {})
    kind = thrift_types.PrincipalType._VALUES_TO_NAMES.get(database.ownerType)
    if database.ownerName and kind not in (None, "USER"):
        properties[OWNER_TYPE] = kind
    return NamespaceRecord(
        source,
        path,
        properties=properties,
        location=database.locationUri or None,
        doc=database.description or None,
        owner=database.ownerName or None,
    )


def build_catalog(record: NamespaceRecord, location: str) -> Any:
    """Build the struct of a catalog. Raise InvalidInput for properties, which a Hive catalog cannot store."""
    _check_name("namespace", record.path)
    properties = [*record.properties, *(["database.owner"] if record.owner else [])]
    if properties:
        names = ", ".join(sorted(properties))
        raise InvalidInput(f"a Hive catalog stores only a location and a description, not {names}")
    return thrift_types.Catalog(name=record.path[-1], description=record.doc, locationUri=location)


def build_database(record: NamespaceRecord, catalog: str | None, location: str | None) -> Any:
    """Build the struct of a database. If ``location`` is None, the metastore chooses one. Raise InvalidInput."""
    _check_name("namespace", record.path)
    properties = dict(record.properties)
    owner_type = properties.pop(OWNER_TYPE, "USER").upper()
    kinds = thrift_types.PrincipalType._NAMES_TO_VALUES
    if owner_type not in kinds:
        raise InvalidInput(f"{OWNER_TYPE}: {owner_type!r} is not allowed", hint=f"one of {', '.join(kinds)}")
    _check_values("namespace", properties, values=True)
    _check_length("description", record.doc)
    return thrift_types.Database(
        name=record.path[-1],
        catalogName=catalog,
        description=record.doc,
        locationUri=location,
        parameters=properties,
        ownerName=record.owner,
        ownerType=kinds[owner_type] if record.owner else None,
    )


def modify_database(database: Any, record: NamespaceRecord) -> Any:
    """Set the properties and the doc of ``record`` on ``database``, in place, and return it. The other fields stay.

    Raise InvalidInput. Raise Unsupported for another kind of owner and for the removal of a doc, which Hive cannot do.
    """
    properties = dict(record.properties)
    owner_type = properties.pop(OWNER_TYPE, None)
    if owner_type != database_record("", record.path, database).properties.get(OWNER_TYPE):
        raise Unsupported(f"{record.key}: {OWNER_TYPE} cannot be changed in place")
    if database.description and not record.doc:
        raise Unsupported(f"{record.key}: Hive can replace a description, but cannot remove it")
    _check_values("namespace", properties, values=True)
    _check_length("description", record.doc)
    database.parameters, database.description = properties, record.doc
    return database


def build_table(record: TableRecord, catalog: str | None) -> Any:
    """Build the struct of a new external Lance table. Raise InvalidInput."""
    _check_name("table", record.path)
    storage = thrift_types.StorageDescriptor(
        cols=_schema_to_columns(record.schema),
        compressed=False,
        numBuckets=-1,
        serdeInfo=thrift_types.SerDeInfo(parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    table = thrift_types.Table(
        tableName=record.path[-1],
        dbName=record.path[-2],
        catName=catalog,
        owner=record.owner,
        createTime=0,
        lastAccessTime=0,
        retention=0,
        tableType=EXTERNAL_TABLE,
        partitionKeys=[],
        parameters={},
        sd=storage,
    )
    return modify_table(table, record)


def modify_table(table: Any, record: TableRecord) -> Any:
    """Set the location, properties and doc of ``record`` on ``table``, in place, and return it. The other fields stay.

    Parameters that the server maintains itself (statistics) keep the table's values. Raise InvalidInput.
    """
    if not record.location:
        raise InvalidInput(f"{record.key}: a Hive table needs a location")
    parameters = {key: value for key, value in stable_properties(record.properties).items() if key not in _IDENTIFYING}
    if record.doc:
        parameters[COMMENT] = record.doc
    _check_values("table", parameters, values=False)
    _check_length("location", record.location)
    table.parameters = _server_parameters(table.parameters or {}) | parameters | {TABLE_TYPE_KEY: LANCE, EXTERNAL: "TRUE"}
    table.tableType = EXTERNAL_TABLE
    table.sd.location = record.location
    return table


def unfinished_table(record: TableRecord, catalog: str | None, op_id: str) -> Any:
    """Build the first entry of a declaration: a view without location, for which no metastore creates a directory.

    The view has the columns of ``record``, so that the metastore checks them. No reader takes it for a Lance table. Raise
    InvalidInput for a record that ``modify_table`` would refuse later.
    """
    table = build_table(record, catalog)
    table.tableType, table.parameters, table.sd.location = VIRTUAL_VIEW, {DECLARING: op_id}, None
    return table


def unfinished_operation(table: Any) -> str | None:
    """Return the id of the operation that created an unfinished declaration; None for any other table or view."""
    return (table.parameters or {}).get(DECLARING) if table.tableType == VIRTUAL_VIEW else None


def rename_table(table: Any, new_path: Path) -> Any:
    """Set the name of ``table`` to ``new_path``, in place, and return it. Raise InvalidInput, Unsupported."""
    _check_name("table", new_path)
    if (table.parameters or {}).get(_TRANSLATED, "").upper() == "TRUE":
        raise Unsupported(f"{table.tableName}: the metastore created it as a managed table, and would move its data")
    table.dbName, table.tableName = new_path[-2:]
    return table


def check_namespace_path(path: Path, levels: int) -> None:
    """Raise NamespaceNotFound for a path that no namespace of this metastore can have.

    The server would read ``@`` and ``#`` as the prefix of another catalog.
    """
    if len(path) > levels or not all(path) or any(character in name for name in path for character in "@#"):
        raise NamespaceNotFound(f"namespace {path_key(path)!r} does not exist")


def _server_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    stable = stable_properties(parameters)
    # transient_lastDdlTime is left out: the server then writes the time of this change.
    return {key: value for key, value in parameters.items() if key not in stable and key != "transient_lastDdlTime"}


def _columns_to_schema(columns: list[Any]) -> str | None:
    if [column.name for column in columns] in ([], [PLACEHOLDER_COLUMN]):
        return None
    entries = [{"name": column.name, "type": column.type, "doc": column.comment} for column in columns]
    return canonical_json([{key: value for key, value in column.items() if value} for column in entries])


def _schema_to_columns(schema: str | None) -> list[Any]:
    if not schema:
        return []
    try:
        return [thrift_types.FieldSchema(column["name"], column["type"], column.get("doc")) for column in json.loads(schema)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput("the schema is not a JSON list of columns with name and type") from None


def _check_name(what: str, path: Path) -> None:
    name = path[-1]
    max_length = _TABLE_CHARACTERS if what == "table" else _NAMESPACE_CHARACTERS
    if not _NAME.fullmatch(name) or len(name) > max_length:
        raise InvalidInput(
            f"{name!r} is not a valid {what} name in Hive", hint=f"use 1 to {max_length} characters of a-z, 0-9 and _"
        )


def _check_values(what: str, properties: Mapping[str, str], *, values: bool) -> None:
    max_length = _KEY_CHARACTERS[what]
    for key, value in properties.items():
        if not 0 < len(key) <= max_length:
            raise InvalidInput(f"the property {key[:60]!r}: Hive allows property names of 1 to {max_length} characters")
        if values:
            _check_length(f"property {key!r}", value)


def _check_length(what: str, value: str | None) -> None:
    if value and len(value) > _VALUE_CHARACTERS:
        raise InvalidInput(f"the {what} has {len(value)} characters; Hive allows {_VALUE_CHARACTERS}")
