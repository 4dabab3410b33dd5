"""Records from what Polaris says, and what is sent to it from records. Generic tables have neither owner, schema nor id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import LANCE, LANCE_MARKER
from federator.model import Kind, NamespaceRecord, Path, TableRecord
from federator_connectors._polaris.client import Native

_LOCATION = "location"
_BASE_LOCATION = "default-base-location"
#: the property of a declared table that becomes its description, too
_DOC = "doc"
#: where Iceberg's engines put what a namespace of Polaris has no field for
_COMMENT, _OWNER = "comment", "owner"


def catalog_record(source: str, name: str, properties: Native) -> NamespaceRecord:
    """A catalog of the root; its base location is where its namespaces lie."""
    return _namespace(source, (name,), properties, _BASE_LOCATION)


def namespace_record(source: str, path: Path, properties: Native) -> NamespaceRecord:
    """A namespace: its location is a property to Polaris, and the other properties are as they were given."""
    return _namespace(source, path, properties, _LOCATION)


def namespace_properties(record: NamespaceRecord) -> dict[str, str]:
    """What creates a namespace. Without a location Polaris chooses one below the parent's."""
    own = {_LOCATION: record.location, _COMMENT: record.doc, _OWNER: record.owner}
    return {**record.properties, **{key: value for key, value in own.items() if value is not None}}


def is_lance(table: Native) -> bool:
    """By ``format`` alone, in any case; the property ``table_type`` is a courtesy to other catalogs."""
    return str(table.get("format", "")).lower() == LANCE


def table_record(source: str, path: Path, table: Native) -> TableRecord:
    """A Lance table. A description that repeats the property ``doc``, from which it was made, is not told twice."""
    given: Mapping[str, Any] = table.get("properties") or {}
    properties = {key: value for key, value in given.items() if key != LANCE_MARKER}
    doc = table.get("doc") or None
    return TableRecord(
        source, path, table.get("base-location") or None, properties, doc=None if doc == properties.get(_DOC) else doc
    )


def undescribed(source: str, path: Path, problem: str) -> TableRecord:
    """A table that was listed and would not say what it is."""
    return TableRecord(source, path, kind=Kind.UNDESCRIBED, problem=problem)


def new_table(record: TableRecord) -> dict[str, Any]:
    """The CreateGenericTableRequest that declares a table."""
    wanted = {
        "name": record.path[-1],
        "format": LANCE,
        "base-location": record.location,
        "doc": record.doc or record.properties.get(_DOC),
        "properties": {**record.properties, LANCE_MARKER: LANCE},
    }
    return {key: value for key, value in wanted.items() if value is not None}


def _namespace(source: str, path: Path, properties: Native, location_key: str) -> NamespaceRecord:
    rest = dict(properties)
    location = rest.pop(location_key, None) or None
    return NamespaceRecord(source, path, rest, location)
