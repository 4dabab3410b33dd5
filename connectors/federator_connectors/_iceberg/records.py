"""Conversions between companion tables and records. A companion is an Iceberg table that stands for a Lance table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from federator.connector import LANCE, TABLE_TYPE_KEY, InvalidInput
from federator.model import Path, TableRecord
from federator_connectors._iceberg.client import IcebergTable

_COMMENT = "comment"
#: Iceberg's property for the directory of a table's metadata files
METADATA_PATH = "write.metadata.path"
#: properties that belong to the companion, not to the Lance table: the second one is added by Iceberg's library
_COMPANION = frozenset({TABLE_TYPE_KEY, METADATA_PATH, "write.parquet.compression-codec"})
# Nessie adds the newest commit of its branch to each table that it returns.
_NESSIE_PREFIX = "nessie."
#: the directory beside tables that has the metadata of their companions
_METADATA_DIRECTORY = "_iceberg"
_UNUSABLE = frozenset({_METADATA_DIRECTORY, ".", ".."})
#: name of the Iceberg table of a test of the server, and the property that identifies it
DROP_TEST = "federator_drop_test"
_DROP_TEST_MARKER = "federator.drop-test"
_DROP_TEST_COMMENT = "Lance Federator tests with this table where the server keeps files. It can be dropped."
_NO_SNAPSHOT = (None, -1)
_SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "dummy", "required": False, "type": "string"}]}


def is_lance(table: IcebergTable) -> bool:
    """Return whether the property ``table_type`` is ``lance``, in any case."""
    return table.properties.get(TABLE_TYPE_KEY, "").lower() == LANCE


def table_record(source: str, path: Path, table: IcebergTable) -> TableRecord:
    """Return the record of a companion. Its doc is the property ``comment``, its native id the UUID of the Iceberg table."""
    properties = {key: value for key, value in table.properties.items() if not _is_companions(key)}
    doc = properties.pop(_COMMENT, None)
    return TableRecord(
        source, path, table.metadata["location"], properties, doc=doc, native_id=table.metadata.get("table-uuid") or None
    )


def build_create_request(record: TableRecord) -> dict[str, Any]:
    """Build the CreateTableRequest of a companion: one column that is never read. Raise InvalidInput."""
    return _build_request(record.path[-1], record.location or "", _native_properties(record))


def build_test_request(name: str, location: str, metadata_path: str | None) -> dict[str, Any]:
    """Build the CreateTableRequest of an Iceberg table that is no companion. By default, its metadata is inside its location."""
    properties = {_DROP_TEST_MARKER: "true", _COMMENT: _DROP_TEST_COMMENT}
    if metadata_path is not None:
        properties[METADATA_PATH] = metadata_path
    return _build_request(name, location, properties)


def is_drop_test(table: IcebergTable) -> bool:
    """Return whether this is the table of a drop test, and nobody has written to it."""
    return table.properties.get(_DROP_TEST_MARKER) == "true" and not has_rows(table)


def has_rows(table: IcebergTable) -> bool:
    """Return whether an Iceberg client has written to a table: it has a current snapshot."""
    return table.metadata.get("current-snapshot-id") not in _NO_SNAPSHOT


def build_updates(table: IcebergTable, before: TableRecord, after: TableRecord) -> list[dict[str, Any]]:
    """Build the updates of a commit that makes ``before`` to ``after``. Properties of the companion are kept. Raise InvalidInput."""
    old, new = table.properties, _native_properties(after)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    removed = sorted(key for key in old if key not in new and not _is_companions(key))
    updates: list[dict[str, Any]] = []
    if before.canonical != after.canonical:
        updates.append({"action": "set-location", "location": after.location})
    if changed:
        updates.append({"action": "set-properties", "updates": changed})
    if removed:
        updates.append({"action": "remove-properties", "removals": removed})
    return updates


def metadata_directory(location: str) -> str:
    """Return the directory of a companion's metadata files: ``_iceberg/<name>`` beside the Lance directory, never inside.

    Directories whose names start with an underscore are not tables of a Lance directory. Raise InvalidInput for a whole bucket, and for
    a location that is or leads to a directory of metadata files.
    """
    if _UNUSABLE & set(unquote(location).split("/")):
        raise InvalidInput(
            f"{location}: an Iceberg catalog cannot declare a location with a level named {', '.join(sorted(_UNUSABLE))}"
        )
    parent, separator, name = location.rstrip("/").rpartition("/")
    if not separator or parent.endswith(":/"):
        raise InvalidInput(f"{location}: an Iceberg catalog needs a directory beside the table for its metadata files")
    return f"{parent}/{_METADATA_DIRECTORY}/{name.removesuffix('.lance')}"


def _build_request(name: str, location: str, properties: Mapping[str, str]) -> dict[str, Any]:
    # Nessie requires ``stage-create``, which is optional in Iceberg's specification.
    return {"name": name, "location": location, "schema": _SCHEMA, "properties": properties, "stage-create": False}


def _is_companions(key: str) -> bool:
    """Return whether a property belongs to the companion, not to the Lance table."""
    return key in _COMPANION or key.startswith(_NESSIE_PREFIX)


def _native_properties(record: TableRecord) -> Mapping[str, str]:
    """Return the properties of a record's companion, as far as the federator sets them."""
    own = {TABLE_TYPE_KEY: LANCE, METADATA_PATH: metadata_directory(record.location or "")}
    return {**record.properties, **({_COMMENT: record.doc} if record.doc else {}), **own}
