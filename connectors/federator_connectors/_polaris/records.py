"""Conversions between Polaris's objects and records. Generic tables have no owner, schema or id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import LANCE, TABLE_TYPE_KEY
from federator.model import NamespaceRecord, Path, TableRecord
from federator_connectors._iceberg.base_catalog import namespace_record
from federator_connectors._polaris.client import Native

_BASE_LOCATION = "default-base-location"
#: property of a declared table that also becomes its description
_DOC = "doc"


def catalog_record(source: str, name: str, properties: Native) -> NamespaceRecord:
    """Return the record of a catalog. Its location is the base location of its namespaces."""
    return namespace_record(source, (name,), properties, _BASE_LOCATION)


def is_lance(table: Native) -> bool:
    """Return whether ``format`` is ``lance``, in any case. The property ``table_type`` is only written for other catalogs."""
    return str(table.get("format", "")).lower() == LANCE


def table_record(source: str, path: Path, table: Native) -> TableRecord:
    """Return the record of a Lance table. A description that repeats the property ``doc`` is left out."""
    native_properties: Mapping[str, Any] = table.get("properties") or {}
    properties = {key: value for key, value in native_properties.items() if key != TABLE_TYPE_KEY}
    doc = table.get("doc") or None
    return TableRecord(
        source, path, table.get("base-location") or None, properties, doc=None if doc == properties.get(_DOC) else doc
    )


def build_table_request(record: TableRecord) -> dict[str, Any]:
    """Build the CreateGenericTableRequest that declares a table."""
    request = {
        "name": record.path[-1],
        "format": LANCE,
        "base-location": record.location,
        "doc": record.doc or record.properties.get(_DOC),
        "properties": {**record.properties, TABLE_TYPE_KEY: LANCE},
    }
    return {key: value for key, value in request.items() if value is not None}
