"""Unity's columns and the column list of a TableRecord, both ways. Needs nothing but the standard library.

A record's schema is canonical JSON, ``[{"name", "type", "doc"?, "nullable"?, "arrow"?}, ...]``: ``type`` is Spark's text,
``nullable`` stands there where it is false, and ``arrow`` where that text does not say the exact Arrow field (see the package).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from federator.model import canonical_json
from federator_connectors._arrow import spark

#: the key of a column's metadata that holds its exact Arrow field
EXACT = "lance.arrow"

Native = Mapping[str, Any]
Column = dict[str, Any]

_UNITY_NAMES = {
    "boolean": "BOOLEAN", "byte": "BYTE", "short": "SHORT", "integer": "INT", "long": "LONG", "float": "FLOAT", "double": "DOUBLE",
    "string": "STRING", "binary": "BINARY", "date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ",
    "void": "NULL",
}  # fmt: skip
_NESTED = {"array": "ARRAY", "map": "MAP", "struct": "STRUCT"}


def schema_of(columns: Sequence[Native]) -> str | None:
    """The schema of a record from Unity's columns, in their order; None without any."""
    listed = sorted(columns, key=lambda column: int(column.get("position") or 0))
    return canonical_json([_listed(column) for column in listed]) if listed else None


def columns_of(schema: str | None) -> list[Native]:
    """Unity's columns from the schema of a record, of whatever catalog.

    A type that is none of Spark's becomes a USER_DEFINED_TYPE with its text as it is, so that nothing is lost or invented.
    """
    return [_column(position, column) for position, column in enumerate(json.loads(schema) if schema else [])]


def tree_of(column: Native) -> spark.Tree:
    """The type of one of Unity's columns: that of its JSON, else of its text. Raises ValueError for what is no type of Spark's."""
    told = _type_json(column).get("type")
    if isinstance(told, dict):
        return told
    return spark.parse(told or str(column.get("type_text") or ""))


def exact_of(column: Native) -> str | None:
    """The exact Arrow field that goes with one of Unity's columns."""
    metadata = _type_json(column).get("metadata")
    exact = metadata.get(EXACT) if isinstance(metadata, dict) else None
    return exact if isinstance(exact, str) else None


def _listed(column: Native) -> Column:
    told = {
        "name": column.get("name"),
        "type": column.get("type_text"),
        "doc": column.get("comment"),
        "arrow": exact_of(column),
    }
    nullable = {"nullable": False} if column.get("nullable") is False else {}
    return {key: value for key, value in told.items() if value is not None} | nullable


def _column(position: int, listed: Mapping[str, Any]) -> Column:
    text = str(listed.get("type") or "string")
    nullable = listed.get("nullable") is not False
    tree: spark.Tree | None
    try:
        tree = spark.parse(text)
    except ValueError:
        tree = None
    metadata = {
        key: value for key, value in (("comment", listed.get("doc")), (EXACT, listed.get("arrow"))) if value is not None
    }
    told = spark.field(str(listed["name"]), text if tree is None else tree, nullable=nullable, metadata=metadata)
    precision, scale = (tree is not None and spark.decimal_of(tree)) or (0, 0)
    return {
        "name": listed["name"],
        "type_text": text,
        "type_json": json.dumps(told, separators=(",", ":"), ensure_ascii=False),
        "type_name": _unity_name(tree),
        "type_precision": precision,
        "type_scale": scale,
        "type_interval_type": _interval(tree),
        "position": position,
        "comment": listed.get("doc"),
        "nullable": nullable,
    }


def _unity_name(tree: spark.Tree | None) -> str:
    if isinstance(tree, dict):
        return _NESTED[tree["type"]]
    if tree is None:
        return "USER_DEFINED_TYPE"
    if tree.startswith("interval"):
        return "INTERVAL"
    if tree.startswith("char("):
        return "CHAR"
    if tree.startswith("varchar("):
        return "STRING"
    return "DECIMAL" if spark.decimal_of(tree) else _UNITY_NAMES[tree]


def _interval(tree: spark.Tree | None) -> str | None:
    return tree.removeprefix("interval ").upper() if isinstance(tree, str) and tree.startswith("interval") else None


def _type_json(column: Native) -> Mapping[str, Any]:
    """Spark's field; Databricks and older servers write the bare type instead."""
    try:
        told = json.loads(column.get("type_json") or "null")
    except ValueError:
        return {}
    if isinstance(told, dict) and "name" in told:
        return told
    return {"type": told} if told else {}
