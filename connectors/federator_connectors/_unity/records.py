"""Unity's objects and our records, both ways; pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import LANCE, LANCE_MARKER, Internal
from federator.model import Kind, NamespaceRecord, Path, TableRecord
from federator_connectors._arrow.columns import columns_of, schema_of
from federator_connectors._unity.comment import marks_of, with_marks, without_marks

EXTERNAL = "EXTERNAL"
#: Unity does not know Lance; the spec names this stand-in
DATA_SOURCE_FORMAT = "TEXT"

Native = Mapping[str, Any]


def kind_of(table: Native) -> Kind | None:
    """TABLE for a Lance table, MANAGED_TABLE for one that is marked lance but not external, None for any other table."""
    if str((table.get("properties") or {}).get(LANCE_MARKER, "")).lower() != LANCE:
        return None
    return Kind.TABLE if table.get("table_type") == EXTERNAL else Kind.MANAGED_TABLE


def table_record(source: str, schema: Path, table: Native, kind: Kind = Kind.TABLE) -> TableRecord:
    """What Unity says of a table; a mark in its comment is shown among the properties."""
    doc, marks = without_marks(table.get("comment"))
    properties = {key: value for key, value in (table.get("properties") or {}).items() if key != LANCE_MARKER}
    return TableRecord(
        source,
        (*schema, name_of(source, table)),
        table.get("storage_location") or None,
        {**marks, **properties},
        doc=doc,
        owner=table.get("owner") or None,
        schema=schema_of(table.get("columns") or []),
        native_id=table.get("table_id") or None,
        kind=kind,
    )


def schema_record(source: str, catalog: str, schema: Native) -> NamespaceRecord:
    """What Unity says of a schema. Its location is where the server puts managed tables."""
    return _namespace(source, (catalog, name_of(source, schema)), schema, schema.get("schema_id"))


def catalog_record(source: str, catalog: Native) -> NamespaceRecord:
    """What Unity says of a catalog."""
    return _namespace(source, (name_of(source, catalog),), catalog, catalog.get("id"))


def new_schema(record: NamespaceRecord) -> dict[str, Any]:
    """The CreateSchema of a record; the owner is the principal that creates it."""
    wanted = {"name": record.path[-1], "catalog_name": record.path[0], "properties": dict(record.properties)}
    return wanted | _given({"comment": record.doc, "storage_root": record.location})


def changed_schema(before: NamespaceRecord, after: NamespaceRecord) -> dict[str, Any]:
    """The UpdateSchema that gives a schema the properties and doc of ``after``."""
    comment = {"comment": after.doc or ""} if after.doc != before.doc else {}
    return {"properties": dict(after.properties), **comment}


def new_table(record: TableRecord, *, marks_in_comment: bool = False) -> dict[str, Any]:
    """The CreateTable of a record, whose location is set."""
    catalog, schema, name = record.path
    properties, comment = dict(record.properties), record.doc
    if marks_in_comment and marks_of(properties):
        marks = marks_of(properties)
        properties = {key: value for key, value in properties.items() if key not in marks}
        comment = with_marks(record.doc, marks)
    wanted: dict[str, Any] = {
        "name": name,
        "catalog_name": catalog,
        "schema_name": schema,
        "table_type": EXTERNAL,
        "data_source_format": DATA_SOURCE_FORMAT,
        # Required also where there are none.
        "columns": columns_of(record.schema),
        "storage_location": record.location,
        "properties": {**properties, LANCE_MARKER: LANCE},
    }
    return wanted | _given({"comment": comment})


def name_of(source: str, native: Native) -> str:
    """Raises Internal for an object without a name, which could not be told from a missing one."""
    name = native.get("name")
    if not isinstance(name, str) or not name:
        raise Internal(f"{source}: the server answered with an object that has no name")
    return name


def _namespace(source: str, path: Path, native: Native, native_id: str | None) -> NamespaceRecord:
    return NamespaceRecord(
        source,
        path,
        dict(native.get("properties") or {}),
        location=native.get("storage_root") or None,
        doc=native.get("comment") or None,
        owner=native.get("owner") or None,
        native_id=native_id,
    )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
