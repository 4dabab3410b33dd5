"""Conversions between Glue's objects and records. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from federator.connector import LANCE, PLACEHOLDER_COLUMN, TABLE_TYPE_KEY
from federator.model import Kind, NamespaceRecord, Path, TableRecord, canonical_json, path_key, stable_properties
from federator.runtime.mappings import without_none

EXTERNAL_TABLE = "EXTERNAL_TABLE"
_IDENTIFYING = (TABLE_TYPE_KEY, "EXTERNAL")
#: parameter of a database or a catalog for its owner, for which Glue has no field
OWNER = "database.owner"

Native = Mapping[str, Any]


def table_kind(table: Native) -> Kind | None:
    """Return TABLE for a Lance table, MANAGED_TABLE for a table that is marked as Lance but not external; None for any other.

    The Java client of ``lance-namespace-impls``, which lance-spark uses, sets no type, but ``managed_by``.
    """
    parameters = table.get("Parameters") or {}
    if str(parameters.get(TABLE_TYPE_KEY, "")).lower() != LANCE:
        return None
    is_storage_managed = not table.get("TableType") and str(parameters.get("managed_by", "")).lower() == "storage"
    return Kind.TABLE if is_storage_managed or table.get("TableType") == EXTERNAL_TABLE else Kind.MANAGED_TABLE


def table_record(source: str, database: Path, table: Native, kind: Kind = Kind.TABLE) -> TableRecord:
    """Return the record of a table. A table without StorageDescriptor has no location."""
    storage = table.get("StorageDescriptor") or {}
    properties = {key: value for key, value in (table.get("Parameters") or {}).items() if key not in _IDENTIFYING}
    return TableRecord(
        source,
        # Glue stores names in lower case, but an API-compatible metastore may return them in another case.
        (*database, table["Name"].lower()),
        storage.get("Location") or None,
        properties,
        doc=table.get("Description") or None,
        owner=table.get("Owner") or None,
        schema=_columns_to_schema(storage.get("Columns") or []),
        native_id=_format_time(table.get("CreateTime")),
        version=table.get("VersionId"),
        kind=kind,
    )


def catalog_record(source: str, path: Path, catalog: Native) -> NamespaceRecord:
    """Return the record of a catalog. The account's own catalog has no creation time, so its native id is the account number."""
    properties = dict(catalog.get("Parameters") or {})
    return NamespaceRecord(
        source,
        path,
        owner=properties.pop(OWNER, None),
        properties=properties,
        doc=catalog.get("Description") or None,
        native_id=_format_time(catalog.get("CreateTime")) or catalog.get("CatalogId"),
    )


def database_record(source: str, path: Path, database: Native) -> NamespaceRecord:
    """Return the record of a database."""
    properties = dict(database.get("Parameters") or {})
    return NamespaceRecord(
        source,
        path,
        owner=properties.pop(OWNER, None),
        properties=properties,
        location=database.get("LocationUri") or None,
        doc=database.get("Description") or None,
        native_id=_format_time(database.get("CreateTime")),
    )


def resource_link(path: Path, database: Native) -> list[tuple[str, str]]:
    """Return the path key and the target of a database that is a resource link; an empty list for any other database."""
    target = database.get("TargetDatabase")
    if not target:
        return []
    region = f" in {target['Region']}" if target.get("Region") else ""
    return [(path_key(path), f"link to {target.get('CatalogId')}/{target.get('DatabaseName')}{region}")]


def build_table_input(record: TableRecord) -> dict[str, Any]:
    """Build the TableInput that declares a table."""
    storage: dict[str, Any] = {"Location": record.location, "Columns": _schema_to_columns(record.schema)}
    table_input: dict[str, Any] = {
        "Name": record.path[-1],
        "TableType": EXTERNAL_TABLE,
        "Parameters": {**record.properties, TABLE_TYPE_KEY: LANCE},
        "StorageDescriptor": storage,
    }
    return table_input | without_none({"Description": record.doc, "Owner": record.owner})


def build_changed_table_input(table: Native, after: TableRecord, shape: Any) -> dict[str, Any]:
    """Build the TableInput that sets the location, properties and doc of ``after`` on a native table. Other fields stay.

    ``shape`` is the service model's ``TableInput``. Other fields in GetTable's response are read-only, and UpdateTable refuses them.
    """
    table_input: dict[str, Any] = _keep_known_fields(table, shape)
    native = table.get("Parameters") or {}
    stable = stable_properties(native)
    # Statistics that Glue's crawlers maintain keep their values, because the desired state does not contain them.
    extras = {key: value for key, value in native.items() if key in _IDENTIFYING or key not in stable}
    marker = {TABLE_TYPE_KEY: native.get(TABLE_TYPE_KEY, LANCE)}
    table_input["Parameters"] = {**extras, **after.properties, **marker}
    table_input["StorageDescriptor"] = {
        **table_input.get("StorageDescriptor", {}),
        **without_none({"Location": after.location}),
    }
    table_input.pop("Description", None)
    return table_input | without_none({"Description": after.doc})


def build_changed_namespace_input(native: Native, after: NamespaceRecord, shape: Any) -> dict[str, Any]:
    """Build the input that sets the properties and doc of ``after`` on a native database or catalog. Other fields stay.

    ``shape`` is the service model's input shape. Other fields in Glue's response are read-only.
    """
    namespace_input: dict[str, Any] = _keep_known_fields(native, shape)
    namespace_input["Parameters"] = _parameters(after)
    namespace_input.pop("Description", None)
    return namespace_input | without_none({"Description": after.doc})


def build_database_input(record: NamespaceRecord) -> dict[str, Any]:
    """Build the DatabaseInput that creates a database."""
    database_input: dict[str, Any] = {"Name": record.path[-1], "Parameters": _parameters(record)}
    return database_input | without_none({"Description": record.doc, "LocationUri": record.location})


def build_catalog_input(record: NamespaceRecord) -> dict[str, Any]:
    """Build the CatalogInput that creates a catalog."""
    return {"Parameters": _parameters(record)} | without_none({"Description": record.doc})


def _parameters(record: NamespaceRecord) -> dict[str, str]:
    return dict(record.properties) | without_none({OWNER: record.owner})


def _keep_known_fields(value: Any, shape: Any) -> Any:
    if shape.type_name == "structure":
        return {
            key: _keep_known_fields(value[key], member) for key, member in shape.members.items() if value.get(key) is not None
        }
    if shape.type_name == "list":
        return [_keep_known_fields(item, shape.member) for item in value]
    return value


def _columns_to_schema(columns: list[Native]) -> str | None:
    if [column.get("Name") for column in columns] in ([], [PLACEHOLDER_COLUMN]):
        return None
    return canonical_json(
        [without_none({"name": c.get("Name"), "type": c.get("Type"), "doc": c.get("Comment")}) for c in columns]
    )


def _schema_to_columns(schema: str | None) -> list[dict[str, str]]:
    columns = json.loads(schema) if schema else []
    return [without_none({"Name": c["name"], "Type": c.get("type"), "Comment": c.get("doc")}) for c in columns]


def _format_time(time: datetime | None) -> str | None:
    return time.astimezone(UTC).isoformat() if time else None
