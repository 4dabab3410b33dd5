"""Arrow types of Spark types. The package docstring has the table of types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from federator.connector import InvalidInput
from federator.lance.arrow_text import parse_arrow_type
from federator_connectors._arrow import spark_types

if TYPE_CHECKING:
    import pyarrow as pa

_DECIMAL_DIGITS = 38


def record_to_arrow_schema(schema: str | None) -> pa.Schema:
    """Return the Arrow schema for a record's schema. Raise InvalidInput with the column whose type has no equivalent."""
    import pyarrow as pa

    return pa.schema([_column_to_field(column) for column in (json.loads(schema) if schema else [])])


def spark_to_arrow_type(spark_type: spark_types.SparkType) -> pa.DataType:
    """Return the Arrow type for a Spark type. Raise ValueError for a type without an equivalent in Arrow."""
    import pyarrow as pa

    if isinstance(spark_type, dict):
        return _nested_arrow_type(spark_type)
    decimal = spark_types.decimal_parameters(spark_type)
    if decimal and 1 <= decimal[0] <= _DECIMAL_DIGITS:
        return pa.decimal128(*decimal)
    if spark_type.startswith(("char(", "varchar(")):
        return pa.string()
    if spark_type.startswith("interval"):
        months = {"year", "month"} & set(spark_type.split())
        return pa.month_day_nano_interval() if months else pa.duration("us")
    simple = {
        "void": pa.null, "boolean": pa.bool_, "byte": pa.int8, "short": pa.int16, "integer": pa.int32, "long": pa.int64,
        "float": pa.float32, "double": pa.float64, "string": pa.string, "binary": pa.binary, "date": pa.date32,
        "timestamp": lambda: pa.timestamp("us", "UTC"), "timestamp_ntz": lambda: pa.timestamp("us"),
    }  # fmt: skip
    if spark_type not in simple:
        raise ValueError(f"Arrow has no equivalent of {spark_type!r}")
    return simple[spark_type]()


def _column_to_field(column: Mapping[str, Any]) -> pa.Field:
    import pyarrow as pa

    try:
        kind = _column_type(column)
    except ValueError as error:
        raise InvalidInput(f"the column {column['name']!r}: {error}") from None
    # A catalog may call a column of nulls required. Arrow refuses that.
    nullable = column.get("nullable", True) or pa.types.is_null(kind)
    return pa.field(column["name"], kind, nullable, {"comment": column["doc"]} if "doc" in column else None)


def _column_type(column: Mapping[str, Any]) -> pa.DataType:
    """Return the type of ``arrow``, else of ``type``, which is Spark's text or Arrow's. Raise ValueError."""
    arrow, text = column.get("arrow"), str(column.get("type") or "")
    if isinstance(arrow, str):
        # Another client may have written it: then Spark's type counts.
        with suppress(ValueError):
            return parse_arrow_type(arrow)
    try:
        return spark_to_arrow_type(spark_types.parse_spark_type(text))
    except ValueError:
        with suppress(ValueError):
            return parse_arrow_type(text)
        raise


def _nested_arrow_type(spark_type: dict[str, Any]) -> pa.DataType:
    import pyarrow as pa

    if spark_type["type"] == "array":
        return pa.list_(pa.field("item", spark_to_arrow_type(spark_type["elementType"]), spark_type["containsNull"]))
    if spark_type["type"] == "map":
        value = pa.field("value", spark_to_arrow_type(spark_type["valueType"]), spark_type["valueContainsNull"])
        return pa.map_(pa.field("key", spark_to_arrow_type(spark_type["keyType"]), nullable=False), value)
    return pa.struct(
        [
            pa.field(f["name"], spark_to_arrow_type(f["type"]), f["nullable"], f["metadata"] or None)
            for f in spark_type["fields"]
        ]
    )
