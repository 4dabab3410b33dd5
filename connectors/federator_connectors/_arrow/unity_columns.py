"""Conversions between Unity's columns and the schema of a TableRecord.

A record's schema is canonical JSON, ``[{"name", "type", "arrow"?, "doc"?, "nullable"?}, ...]``. ``type`` is Spark's text, and ``arrow``
is Arrow's, where Spark's type says less (``federator.lance.columns``). Unity keeps ``arrow`` in the metadata of ``type_json``.
``nullable`` is present if it is false. This module needs only the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from federator.connector import PLACEHOLDER_COLUMN
from federator.model import canonical_json
from federator_connectors._arrow import spark_types

Native = Mapping[str, Any]
Column = dict[str, Any]

_UNITY_NAMES = {
    "boolean": "BOOLEAN", "byte": "BYTE", "short": "SHORT", "integer": "INT", "long": "LONG", "float": "FLOAT", "double": "DOUBLE",
    "string": "STRING", "binary": "BINARY", "date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ",
    "void": "NULL",
}  # fmt: skip
#: key of Arrow's type in the metadata of a column's ``type_json``
ARROW_TYPE = "federator.arrow"
_NESTED = {"array": "ARRAY", "map": "MAP", "struct": "STRUCT"}


def columns_to_schema(columns: Sequence[Native]) -> str | None:
    """Return a record's schema for Unity's columns, ordered by position; None without columns, or for another client's placeholder."""
    if [column.get("name") for column in columns] in ([], [PLACEHOLDER_COLUMN]):
        return None
    ordered = sorted(columns, key=lambda column: int(column.get("position") or 0))
    return canonical_json([_column_to_schema_entry(column) for column in ordered])


def schema_to_columns(schema: str | None) -> list[Native]:
    """Return Unity's columns for the schema of a record from any catalog.

    A type that is not a Spark type becomes a USER_DEFINED_TYPE with its text unchanged.
    """
    return [_schema_entry_to_column(position, column) for position, column in enumerate(json.loads(schema) if schema else [])]


def _column_to_schema_entry(column: Native) -> Column:
    entry = {
        "name": column.get("name"), "type": column.get("type_text"), "arrow": _arrow_text(column.get("type_json")),
        "doc": column.get("comment"),
    }  # fmt: skip
    nullable = {"nullable": False} if column.get("nullable") is False else {}
    return {key: value for key, value in entry.items() if value is not None} | nullable


def _arrow_text(type_json: object) -> str | None:
    """Return Arrow's type in the metadata of a ``type_json``. None if another client wrote it."""
    if not isinstance(type_json, str) or ARROW_TYPE not in type_json:
        return None
    try:
        text = json.loads(type_json)["metadata"][ARROW_TYPE]
    except (ValueError, KeyError, TypeError):
        return None
    return text if isinstance(text, str) else None


def _schema_entry_to_column(position: int, entry: Mapping[str, Any]) -> Column:
    text = str(entry.get("type") or "string")
    nullable = entry.get("nullable") is not False
    spark_type: spark_types.SparkType | None
    try:
        spark_type = spark_types.parse_spark_type(text)
    except ValueError:
        spark_type = None
    doc = entry.get("doc")
    metadata = ({"comment": doc} if doc is not None else {}) | ({ARROW_TYPE: entry["arrow"]} if entry.get("arrow") else {})
    spark_field = spark_types.spark_field(
        str(entry["name"]), text if spark_type is None else spark_type, nullable=nullable, metadata=metadata
    )
    decimal = spark_types.decimal_parameters(spark_type) if spark_type is not None else None
    precision, scale = decimal or (0, 0)
    return {
        "name": entry["name"],
        "type_text": text,
        "type_json": json.dumps(spark_field, separators=(",", ":"), ensure_ascii=False),
        "type_name": _unity_name(spark_type),
        "type_precision": precision,
        "type_scale": scale,
        "type_interval_type": _interval(spark_type),
        "position": position,
        "comment": doc,
        "nullable": nullable,
    }


def _unity_name(spark_type: spark_types.SparkType | None) -> str:
    if isinstance(spark_type, dict):
        return _NESTED[spark_type["type"]]
    if spark_type is None:
        return "USER_DEFINED_TYPE"
    if spark_type.startswith("interval"):
        return "INTERVAL"
    if spark_type.startswith("char("):
        return "CHAR"
    if spark_type.startswith("varchar("):
        return "STRING"
    return "DECIMAL" if spark_types.decimal_parameters(spark_type) else _UNITY_NAMES[spark_type]


def _interval(spark_type: spark_types.SparkType | None) -> str | None:
    return (
        spark_type.removeprefix("interval ").upper()
        if isinstance(spark_type, str) and spark_type.startswith("interval")
        else None
    )
