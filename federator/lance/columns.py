"""Columns of a Lance table as a catalog declares them: Spark's types, and Arrow's where Spark's say less.

A column of a record's schema is ``{"name", "type", "nullable"?, "arrow"?}``. ``type`` is Spark's text of the nearest type, or Arrow's
text where Spark has none (times of day, wide decimals). ``arrow`` is present if ``type`` alone does not determine the stored type:
``{"name": "vector", "type": "array<float>", "arrow": "fixed_size_list<item: float>[128]"}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from federator.lance.arrow_text import parse_arrow_type
from federator.model import canonical_json

if TYPE_CHECKING:
    import pyarrow as pa

#: Arrow's text, and the Spark type with the same values
_EXACT = {
    "null": "void", "bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float",
    "double": "double", "string": "string", "binary": "binary", "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz", "duration[us]": "interval day to second",
}  # fmt: skip
#: Arrow's text, and the smallest Spark type that has all its values
_NEAREST = {
    "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)", "halffloat": "float", "large_string": "string",
    "string_view": "string", "large_binary": "binary", "binary_view": "binary", "date64[ms]": "date",
}  # fmt: skip
_SPARK_DIGITS = 38
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def list_columns(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the columns of a stored table as the index keeps them: name, Arrow's text of the type, and whether it is nullable."""
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]


def declared_schema(columns: Iterable[dict[str, Any]]) -> str | None:
    """Return a record's schema for columns of ``list_columns``; None without columns."""
    entries = [_declared_column(column["name"], column["type"], bool(column["nullable"])) for column in columns]
    return canonical_json(entries) if entries else None


def _declared_column(name: str, text: str, nullable: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "type": text}
    try:
        kind = parse_arrow_type(text)
    except ValueError:
        # An extension type with parameters, or unusual names of nested fields. The text is declared as it is.
        kind = None
    spark = spark_type_of(kind) if kind is not None else None
    if spark is not None:
        entry["type"], is_exact = spark
        if not is_exact:
            entry["arrow"] = text
    return entry if nullable else {**entry, "nullable": False}


def spark_type_of(kind: pa.DataType) -> tuple[str, bool] | None:
    """Return Spark's text of the nearest type, and whether it determines the Arrow type. None if Spark has no such type."""
    import pyarrow as pa
    import pyarrow.types as t

    if isinstance(kind, pa.BaseExtensionType):
        storage = spark_type_of(kind.storage_type)
        return storage and (storage[0], False)
    text = str(kind)
    if text in _EXACT:
        return _EXACT[text], True
    if text in _NEAREST:
        return _NEAREST[text], False
    if t.is_timestamp(kind):
        return ("timestamp_ntz" if kind.tz is None else "timestamp"), False
    if t.is_duration(kind):
        return "interval day to second", False
    if t.is_fixed_size_binary(kind):
        return "binary", False
    if t.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision <= _SPARK_DIGITS
        return (f"decimal({kind.precision},{kind.scale})", t.is_decimal128(kind)) if fits else None
    if t.is_dictionary(kind):
        values = spark_type_of(kind.value_type)
        return values and (values[0], False)
    if t.is_map(kind):
        return _spark_map(kind)
    if t.is_struct(kind):
        return _spark_struct(kind)
    if (
        t.is_list(kind)
        or t.is_large_list(kind)
        or t.is_fixed_size_list(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
    ):
        item = spark_type_of(kind.value_type)
        is_plain = t.is_list(kind) and kind.value_field.name == "item" and kind.value_field.nullable
        return item and (f"array<{item[0]}>", item[1] and is_plain)
    return None


def _spark_map(kind: pa.MapType) -> tuple[str, bool] | None:
    key, item = spark_type_of(kind.key_type), spark_type_of(kind.item_type)
    if key is None or item is None:
        return None
    is_plain = (kind.key_field.name, kind.item_field.name, kind.item_field.nullable) == ("key", "value", True)
    return f"map<{key[0]},{item[0]}>", key[1] and item[1] and is_plain and not kind.keys_sorted


def _spark_struct(kind: pa.StructType) -> tuple[str, bool] | None:
    fields = [kind.field(number) for number in range(kind.num_fields)]
    types = [spark_type_of(field.type) for field in fields]
    texts = [f"{_quoted(field.name)}:{spark[0]}" for field, spark in zip(fields, types, strict=True) if spark is not None]
    if len(texts) < len(fields):
        return None
    is_exact = all(field.nullable and spark and spark[1] for field, spark in zip(fields, types, strict=True))
    return f"struct<{','.join(texts)}>", is_exact


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
