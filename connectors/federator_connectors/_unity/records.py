"""Conversions between Unity's objects and records. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from federator.connector import LANCE, TABLE_TYPE_KEY, Internal
from federator.model import Kind, NamespaceRecord, Path, TableRecord, local_path
from federator.runtime.mappings import without_none
from federator_connectors._arrow.unity_columns import columns_to_schema, schema_to_columns

EXTERNAL = "EXTERNAL"
#: Unity has no format for Lance; the Lance spec requires this one instead
DATA_SOURCE_FORMAT = "TEXT"

# Characters besides letters and digits that stay as they are in the path of a URI.
_UNENCODED = "/!$&'()*+,;=:@~"
_FILE_URI = re.compile(r"file:(?:[A-Za-z0-9._/!$&'()*+,;=:@~-]|%[0-9A-Fa-f]{2})*|/[A-Za-z0-9._/!$&'()*+,;=:@~-]*")

Native = Mapping[str, Any]


def table_kind(table: Native) -> Kind | None:
    """Return TABLE for a Lance table, MANAGED_TABLE for a table that is marked as Lance but not external; None for any other."""
    if str((table.get("properties") or {}).get(TABLE_TYPE_KEY, "")).lower() != LANCE:
        return None
    return Kind.TABLE if table.get("table_type") == EXTERNAL else Kind.MANAGED_TABLE


def table_record(source: str, schema: Path, table: Native, kind: Kind = Kind.TABLE) -> TableRecord:
    """Return the record of a table. An ownership marker in its comment becomes properties."""
    doc, marker = split_comment_marker(table.get("comment"))
    properties = {key: value for key, value in (table.get("properties") or {}).items() if key != TABLE_TYPE_KEY}
    return TableRecord(
        source,
        (*schema, require_name(source, table)),
        table.get("storage_location") or None,
        {**marker, **properties},
        doc=doc,
        owner=table.get("owner") or None,
        schema=columns_to_schema(table.get("columns") or []),
        native_id=table.get("table_id") or None,
        kind=kind,
    )


def schema_record(source: str, catalog: str, schema: Native) -> NamespaceRecord:
    """Return the record of a schema. Its location is the one for managed tables."""
    return _namespace_record(source, (catalog, require_name(source, schema)), schema, schema.get("schema_id"))


def catalog_record(source: str, catalog: Native) -> NamespaceRecord:
    """Return the record of a catalog."""
    return _namespace_record(source, (require_name(source, catalog),), catalog, catalog.get("id"))


def build_schema(record: NamespaceRecord) -> dict[str, Any]:
    """Build the CreateSchema body of a record. It has no owner: that is the principal that creates the schema, until it is altered."""
    body = {"name": record.path[-1], "catalog_name": record.path[0], "properties": dict(record.properties)}
    return body | without_none({"comment": record.doc, "storage_root": record.location})


def build_schema_update(before: NamespaceRecord, after: NamespaceRecord) -> dict[str, Any]:
    """Build the UpdateSchema body that sets the properties and doc of ``after``."""
    comment = {"comment": after.doc or ""} if after.doc != before.doc else {}
    return {"properties": dict(after.properties), **comment}


def build_table(record: TableRecord, *, marker_in_comment: bool = False) -> dict[str, Any]:
    """Build the CreateTable body of a record that has a location."""
    catalog, schema, name = record.path
    properties, comment = dict(record.properties), record.doc
    if marker_in_comment and marker_properties(properties):
        marker = marker_properties(properties)
        properties = {key: value for key, value in properties.items() if key not in marker}
        comment = append_comment_marker(record.doc, marker)
    body: dict[str, Any] = {
        "name": name,
        "catalog_name": catalog,
        "schema_name": schema,
        "table_type": EXTERNAL,
        "data_source_format": DATA_SOURCE_FORMAT,
        # The server also requires an empty list.
        "columns": schema_to_columns(record.schema),
        "storage_location": encode_location(record.location) if record.location else None,
        "properties": {**properties, TABLE_TYPE_KEY: LANCE},
    }
    return body | without_none({"comment": comment})


def encode_location(location: str) -> str:
    """Return a location as Unity accepts it: that of a file is percent-encoded if it has characters that a URI cannot have.

    Any other location is returned unchanged, because "%20" is part of a key in an object store.
    """
    path = local_path(location)
    if path is None or _FILE_URI.fullmatch(location):
        return location
    return f"file://{quote(path, _UNENCODED, errors='surrogateescape')}"


def require_name(source: str, native: Native) -> str:
    """Return an object's name. Raise Internal if it has none: the object would look like a missing one."""
    name = native.get("name")
    if not isinstance(name, str) or not name:
        raise Internal(f"{source}: the server returned an object without a name")
    return name


def _namespace_record(source: str, path: Path, native: Native, native_id: str | None) -> NamespaceRecord:
    return NamespaceRecord(
        source,
        path,
        dict(native.get("properties") or {}),
        location=native.get("storage_root") or None,
        doc=native.get("comment") or None,
        owner=native.get("owner") or None,
        native_id=native_id,
    )


_PREFIX = "federator."
_KEY = re.compile(r"federator\.[a-z]+")
# Values are percent-encoded, so that they contain neither spaces nor brackets.
_LINE = re.compile(r"(?:\A|\n)\[federator(?P<pairs>(?: [a-z]+=[^\s\[\]]*)+)\]\Z")
# Characters of values that are not encoded, so that people can read a marker.
_READABLE = "$:,/"


def marker_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that form the ownership marker."""
    return {key: value for key, value in properties.items() if _KEY.fullmatch(key)}


def append_comment_marker(doc: str | None, marker: Mapping[str, str]) -> str:
    """Return a comment with a text and the ownership marker."""
    pairs = [f"{key.removeprefix(_PREFIX)}={quote(value, _READABLE)}" for key, value in marker.items()]
    line = f"[federator {' '.join(pairs)}]"
    return f"{doc}\n{line}" if doc else line


def split_comment_marker(comment: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the text and the ownership marker of a comment; without a marker, the comment and an empty mapping."""
    match = _LINE.search(comment) if comment else None
    if comment is None or match is None:
        return comment or None, {}
    pairs = (pair.partition("=") for pair in match["pairs"].split())
    return comment[: match.start()] or None, {_PREFIX + name: unquote(value) for name, _, value in pairs}
