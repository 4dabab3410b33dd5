"""Conversion between records and rows. Staging and the index share the column order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from federator.model.coverage import Coverage
from federator.model.digests import canonical_json
from federator.model.identifiers import parent_path, parse_path_key, path_key
from federator.model.records import Kind, NamespaceRecord, Record, TableRecord

RECORD_COLUMNS = (
    "is_table", "kind", "path", "parent", "name", "location", "canonical", "properties", "doc", "owner", "schema", "native_id",
    "version", "problem", "digest",
)  # fmt: skip


def record_to_row(record: Record) -> dict[str, Any]:
    """Return the columns of a record, without its source and validity interval."""
    is_table = isinstance(record, TableRecord)
    return {
        "is_table": int(is_table),
        "kind": record.kind.value,
        "path": record.key,
        "parent": path_key(parent_path(record.path)),
        "name": record.path[-1] if record.path else "",
        "location": record.location,
        "canonical": record.canonical if isinstance(record, TableRecord) else None,
        "properties": canonical_json(dict(record.properties)),
        "doc": record.doc,
        "owner": record.owner,
        "schema": record.schema if isinstance(record, TableRecord) else None,
        "native_id": record.native_id,
        "version": record.version if isinstance(record, TableRecord) else None,
        "problem": record.problem if isinstance(record, TableRecord) else None,
        "digest": record.digest,
    }


def table_from_row(source: str, row: Mapping[str, Any]) -> TableRecord:
    """Return the record of a table's row."""
    return TableRecord(
        source=source,
        path=parse_path_key(row["path"]),
        location=row["location"],
        properties=json.loads(row["properties"]),
        doc=row["doc"],
        owner=row["owner"],
        schema=row["schema"],
        native_id=row["native_id"],
        version=row["version"],
        kind=Kind(row["kind"]),
        problem=row["problem"],
    )


def namespace_from_row(source: str, row: Mapping[str, Any]) -> NamespaceRecord:
    """Return the record of a namespace's row."""
    return NamespaceRecord(
        source=source,
        path=parse_path_key(row["path"]),
        properties=json.loads(row["properties"]),
        location=row["location"],
        doc=row["doc"],
        owner=row["owner"],
        native_id=row["native_id"],
    )


def coverage_to_row(coverage: Coverage) -> dict[str, Any]:
    """Return the columns of a coverage, without its source, validity interval and digest."""
    return {
        "namespace": coverage.key,
        "presence": coverage.presence.state.value,
        "presence_code": coverage.presence.code,
        "presence_reason": coverage.presence.reason,
        "detail": coverage.detail.state.value,
        "detail_code": coverage.detail.code,
        "detail_reason": coverage.detail.reason,
        "records": coverage.records,
        "carried_from": coverage.presence.revision,
    }
