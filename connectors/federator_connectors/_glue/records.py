"""Glue's objects and our records, both ways; pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from federator.connector import LANCE, LANCE_MARKER
from federator.model import Kind, NamespaceRecord, Path, TableRecord, canonical_json, path_key, stable_properties

EXTERNAL_TABLE = "EXTERNAL_TABLE"
_IDENTIFYING = (LANCE_MARKER, "EXTERNAL")

Native = Mapping[str, Any]


def kind_of(table: Native) -> Kind | None:
    """TABLE for a Lance table, MANAGED_TABLE for one that is marked lance but not external, None for any other table."""
    if str((table.get("Parameters") or {}).get(LANCE_MARKER, "")).lower() != LANCE:
        return None
    return Kind.TABLE if table.get("TableType") == EXTERNAL_TABLE else Kind.MANAGED_TABLE


def table_record(source: str, database: Path, table: Native, kind: Kind = Kind.TABLE) -> TableRecord:
    """What Glue says of a table. A table without StorageDescriptor has no location."""
    storage = table.get("StorageDescriptor") or {}
    properties = {key: value for key, value in (table.get("Parameters") or {}).items() if key not in _IDENTIFYING}
    return TableRecord(
        source,
        # Glue folds names, whatever stands before it.
        (*database, table["Name"].lower()),
        storage.get("Location") or None,
        properties,
        doc=table.get("Description") or None,
        owner=table.get("Owner") or None,
        schema=_schema(storage.get("Columns") or []),
        native_id=_time(table.get("CreateTime")),
        version=table.get("VersionId"),
        kind=kind,
    )


def catalog_record(source: str, path: Path, catalog: Native) -> NamespaceRecord:
    """What Glue says of a catalog. The account's own has neither a creation time nor properties: its id is its number."""
    return NamespaceRecord(
        source,
        path,
        dict(catalog.get("Parameters") or {}),
        doc=catalog.get("Description") or None,
        native_id=_time(catalog.get("CreateTime")) or catalog.get("CatalogId"),
    )


def database_record(source: str, path: Path, database: Native) -> NamespaceRecord:
    """What Glue says of a database."""
    return NamespaceRecord(
        source,
        path,
        dict(database.get("Parameters") or {}),
        location=database.get("LocationUri") or None,
        doc=database.get("Description") or None,
        native_id=_time(database.get("CreateTime")),
    )


def link(path: Path, database: Native) -> list[tuple[str, str]]:
    """The target of a database that is a resource link, by its path key; empty for any other database."""
    target = database.get("TargetDatabase")
    if not target:
        return []
    region = f" in {target['Region']}" if target.get("Region") else ""
    return [(path_key(path), f"link to {target.get('CatalogId')}/{target.get('DatabaseName')}{region}")]


def table_input(record: TableRecord) -> dict[str, Any]:
    """The TableInput that declares a table."""
    storage: dict[str, Any] = {"Location": record.location, "Columns": _columns(record.schema)}
    wanted: dict[str, Any] = {
        "Name": record.path[-1],
        "TableType": EXTERNAL_TABLE,
        "Parameters": {**record.properties, LANCE_MARKER: LANCE},
        "StorageDescriptor": storage,
    }
    return wanted | _given({"Description": record.doc, "Owner": record.owner})


def changed_input(table: Native, after: TableRecord, shape: Any) -> dict[str, Any]:
    """The TableInput that gives a native table the location, properties and doc of ``after`` and keeps everything else.

    ``shape`` is the service model's ``TableInput``: what GetTable answers beyond it is read-only and refused by UpdateTable.
    """
    kept: dict[str, Any] = _within(table, shape)
    native = table.get("Parameters") or {}
    stable = stable_properties(native)
    # Statistics that Glue's crawlers rewrite are theirs, also where the desired state does not know them.
    extras = {key: value for key, value in native.items() if key in _IDENTIFYING or key not in stable}
    marker = {LANCE_MARKER: native.get(LANCE_MARKER, LANCE)}
    kept["Parameters"] = {**extras, **after.properties, **marker}
    kept["StorageDescriptor"] = {**kept.get("StorageDescriptor", {}), **_given({"Location": after.location})}
    kept.pop("Description", None)
    return kept | _given({"Description": after.doc})


def changed_namespace(native: Native, after: NamespaceRecord, shape: Any) -> dict[str, Any]:
    """The input that gives a native database or catalog the properties and doc of ``after`` and keeps everything else.

    ``shape`` is the service model's: what Glue answers beyond it is read-only.
    """
    kept: dict[str, Any] = _within(native, shape)
    kept["Parameters"] = dict(after.properties)
    kept.pop("Description", None)
    return kept | _given({"Description": after.doc})


def database_input(record: NamespaceRecord) -> dict[str, Any]:
    """The DatabaseInput that creates a database."""
    wanted: dict[str, Any] = {"Name": record.path[-1], "Parameters": dict(record.properties)}
    return wanted | _given({"Description": record.doc, "LocationUri": record.location})


def catalog_input(record: NamespaceRecord) -> dict[str, Any]:
    """The CatalogInput that creates a catalog."""
    return {"Parameters": dict(record.properties)} | _given({"Description": record.doc})


def _within(value: Any, shape: Any) -> Any:
    if shape.type_name == "structure":
        return {key: _within(value[key], member) for key, member in shape.members.items() if value.get(key) is not None}
    if shape.type_name == "list":
        return [_within(item, shape.member) for item in value]
    return value


def _schema(columns: list[Native]) -> str | None:
    if not columns:
        return None
    return canonical_json([_given({"name": c.get("Name"), "type": c.get("Type"), "doc": c.get("Comment")}) for c in columns])


def _columns(schema: str | None) -> list[dict[str, str]]:
    listed = json.loads(schema) if schema else []
    return [_given({"Name": c["name"], "Type": c.get("type"), "Comment": c.get("doc")}) for c in listed]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None
