"""Between the metastore's structs and our records. Pure functions; what a server leaves out, None or empty, is no error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from federator.connector import LANCE, LANCE_MARKER, InvalidInput, NamespaceNotFound, Unsupported
from federator.model import Kind, NamespaceRecord, Path, TableRecord, canonical_json, path_key, stable_properties
from federator_connectors._hive import structs

EXTERNAL = "EXTERNAL"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
VIRTUAL_VIEW = "VIRTUAL_VIEW"
#: property of an unfinished declaration: the id of the operation that created it
DECLARING = "federator.declaring"
COMMENT = "comment"
OWNER_TYPE = "database.owner-type"
# Hive 4 sets it on tables that were declared as managed, and moves their directory when they are renamed.
_TRANSLATED = "TRANSLATED_TO_EXTERNAL"
_IDENTIFYING = (LANCE_MARKER, EXTERNAL)

# What the columns of the metastore's own database hold. A longer value is retried there for 20 s before it is refused.
_NAME_CHARACTERS = {1: 128, 2: 128}
_TABLE_CHARACTERS = 256
_KEY_CHARACTERS = {"namespace": 180, "table": 256}
_VALUE_CHARACTERS = 4000
# Java's \w is ASCII. The server also takes "/" in table names, which would put one table's directory into another's.
_NAME = re.compile(r"[A-Za-z0-9_]+")


def is_lance(table: Any) -> bool:
    """Whether the table is marked as Lance, external or not."""
    return bool((table.parameters or {}).get(LANCE_MARKER, "").lower() == LANCE)


def table_record(source: str, path: Path, table: Any) -> TableRecord:
    """The record of a table that is marked as Lance; of kind MANAGED_TABLE unless it is external."""
    parameters = dict(table.parameters or {})
    storage = table.sd
    columns = [*((storage and storage.cols) or []), *(table.partitionKeys or [])]
    return TableRecord(
        source,
        path,
        location=(storage and storage.location) or None,
        properties={key: value for key, value in parameters.items() if key not in _IDENTIFYING},
        doc=parameters.get(COMMENT) or None,
        owner=table.owner or None,
        schema=_schema(columns),
        native_id=native_id(table),
        kind=Kind.TABLE if table.tableType == EXTERNAL_TABLE else Kind.MANAGED_TABLE,
    )


def native_id(table: Any) -> str:
    """Hive 4's own number, else the second of creation: two declarations within one second are told apart by content only."""
    return str(table.id if table.id is not None else table.createTime)


def undescribed(source: str, path: Path, problem: str) -> TableRecord:
    """A table that was listed and could not be described."""
    return TableRecord(source, path, kind=Kind.UNDESCRIBED, problem=problem)


def catalog_record(source: str, path: Path, catalog: Any) -> NamespaceRecord:
    return NamespaceRecord(source, path, location=catalog.locationUri or None, doc=catalog.description or None)


def database_record(source: str, path: Path, database: Any) -> NamespaceRecord:
    """The record of a database. Its owner is a user unless the property ``database.owner-type`` says ROLE or GROUP."""
    properties = dict(database.parameters or {})
    kind = structs.PrincipalType._VALUES_TO_NAMES.get(database.ownerType)
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


def new_catalog(record: NamespaceRecord, location: str) -> Any:
    """Raises InvalidInput for properties, for which a Hive catalog has no place."""
    _check_name("namespace", record.path)
    if record.properties:
        shown = ", ".join(sorted(record.properties))
        raise InvalidInput(f"a Hive catalog keeps a location and a description only, not {shown}")
    return structs.Catalog(name=record.path[-1], description=record.doc, locationUri=location)


def new_database(record: NamespaceRecord, catalog: str | None, location: str | None) -> Any:
    """``location`` None leaves the choice to the metastore. Raises InvalidInput."""
    _check_name("namespace", record.path)
    properties = dict(record.properties)
    owner_type = properties.pop(OWNER_TYPE, "USER").upper()
    kinds = structs.PrincipalType._NAMES_TO_VALUES
    if owner_type not in kinds:
        raise InvalidInput(f"{OWNER_TYPE}: {owner_type!r} is not allowed", hint=f"one of {', '.join(kinds)}")
    _check_values("namespace", properties, values=True)
    _check_length("description", record.doc)
    return structs.Database(
        name=record.path[-1],
        catalogName=catalog,
        description=record.doc,
        locationUri=location,
        parameters=properties,
        ownerName=record.owner,
        ownerType=kinds[owner_type] if record.owner else None,
    )


def changed_database(database: Any, record: NamespaceRecord) -> Any:
    """``database`` with the properties and the doc of ``record``; the rest stays. Changes ``database`` in place.

    Raises InvalidInput, and Unsupported for another kind of owner, and for a doc that is taken away, which Hive does not do.
    """
    properties = dict(record.properties)
    owner_type = properties.pop(OWNER_TYPE, None)
    if owner_type != database_record("", record.path, database).properties.get(OWNER_TYPE):
        raise Unsupported(f"{record.key}: {OWNER_TYPE} is not changed in place")
    if database.description and not record.doc:
        raise Unsupported(f"{record.key}: Hive takes another description, and not none")
    _check_values("namespace", properties, values=True)
    _check_length("description", record.doc)
    database.parameters, database.description = properties, record.doc
    return database


def new_table(record: TableRecord, catalog: str | None) -> Any:
    """An external Lance table that exists nowhere yet. Raises InvalidInput."""
    _check_name("table", record.path)
    storage = structs.StorageDescriptor(
        cols=_columns(record.schema),
        compressed=False,
        numBuckets=-1,
        serdeInfo=structs.SerDeInfo(parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    table = structs.Table(
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
    return changed_table(table, record)


def changed_table(table: Any, record: TableRecord) -> Any:
    """``table`` with the location, properties and doc of ``record``; the rest stays. Changes ``table`` in place.

    Values that the server itself keeps (statistics) are those of the table, not of the record. Raises InvalidInput.
    """
    if not record.location:
        raise InvalidInput(f"{record.key}: a table in Hive needs a location")
    wanted = {key: value for key, value in stable_properties(record.properties).items() if key not in _IDENTIFYING}
    if record.doc:
        wanted[COMMENT] = record.doc
    _check_values("table", wanted, values=False)
    _check_length("location", record.location)
    table.parameters = _volatile(table.parameters or {}) | wanted | {LANCE_MARKER: LANCE, EXTERNAL: "TRUE"}
    table.tableType = EXTERNAL_TABLE
    table.sd.location = record.location
    return table


def unfinished_table(record: TableRecord, catalog: str | None, op_id: str) -> Any:
    """The entry that a declaration starts with: a view without location, for which no metastore makes a directory.

    It has the columns of ``record``, so that the metastore checks them, and is no Lance table for any reader. Raises InvalidInput for
    a record that ``changed_table`` would refuse later.
    """
    table = new_table(record, catalog)
    table.tableType, table.parameters, table.sd.location = VIRTUAL_VIEW, {DECLARING: op_id}, None
    return table


def unfinished_operation(table: Any) -> str | None:
    """The operation that created an unfinished declaration; None for any other table or view."""
    return (table.parameters or {}).get(DECLARING) if table.tableType == VIRTUAL_VIEW else None


def renamed_table(table: Any, new_path: Path) -> Any:
    """``table`` under another name; changes it in place. Raises InvalidInput, Unsupported."""
    _check_name("table", new_path)
    if (table.parameters or {}).get(_TRANSLATED, "").upper() == "TRUE":
        raise Unsupported(f"{table.tableName}: the metastore took it for a managed table, and would move its data")
    table.dbName, table.tableName = new_path[-2:]
    return table


def check_place(path: Path, levels: int) -> None:
    """Raises NamespaceNotFound for a path that no namespace can have here.

    ``@`` and ``#`` would be read by the server as the mark of another catalog.
    """
    if len(path) > levels or not all(path) or any(character in name for name in path for character in "@#"):
        raise NamespaceNotFound(f"namespace {path_key(path)!r} does not exist")


def _volatile(parameters: Mapping[str, str]) -> dict[str, str]:
    stable = stable_properties(parameters)
    # Without it the server writes the time of this change.
    return {key: value for key, value in parameters.items() if key not in stable and key != "transient_lastDdlTime"}


def _schema(columns: list[Any]) -> str | None:
    if not columns:
        return None
    described = [{"name": column.name, "type": column.type, "doc": column.comment} for column in columns]
    return canonical_json([{key: value for key, value in column.items() if value} for column in described])


def _columns(schema: str | None) -> list[Any]:
    if not schema:
        return []
    try:
        return [structs.FieldSchema(column["name"], column["type"], column.get("doc")) for column in json.loads(schema)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput("the schema is not a JSON list of columns with name and type") from None


def _check_name(what: str, path: Path) -> None:
    name = path[-1]
    longest = _TABLE_CHARACTERS if what == "table" else _NAME_CHARACTERS[len(path)]
    if not _NAME.fullmatch(name) or len(name) > longest:
        raise InvalidInput(f"{name!r} is no name for a {what} in Hive", hint=f"1 to {longest} of a-z, 0-9 and _")


def _check_values(what: str, properties: Mapping[str, str], *, values: bool) -> None:
    longest = _KEY_CHARACTERS[what]
    for key, value in properties.items():
        if not 0 < len(key) <= longest:
            raise InvalidInput(f"the property {key[:60]!r}: Hive takes names of 1 to {longest} characters")
        if values:
            _check_length(f"property {key!r}", value)


def _check_length(what: str, value: str | None) -> None:
    if value and len(value) > _VALUE_CHARACTERS:
        raise InvalidInput(f"the {what} has {len(value)} characters; Hive takes {_VALUE_CHARACTERS}")
