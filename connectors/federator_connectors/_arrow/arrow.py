"""Arrow fields as Spark's, and back, exactly. See the package for the table of types."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from federator_connectors._arrow import spark

if TYPE_CHECKING:
    import pyarrow as pa

_DECIMAL_DIGITS = 38
_COMMENT = b"comment"


def exact(field: pa.Field) -> str:
    """A field as text: a base64 Arrow IPC schema of it alone."""
    import pyarrow as pa

    return base64.b64encode(pa.schema([field]).serialize()).decode("ascii")


def of_exact(text: str) -> pa.Field:
    """The inverse of ``exact``. Raises ValueError for any other text."""
    import pyarrow as pa

    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True))).field(0)
    except (ValueError, OSError, IndexError, pa.ArrowException) as error:
        raise ValueError(f"no Arrow field: {error}") from None


def tree_of(kind: pa.DataType) -> spark.Tree:
    """Spark's type nearest to one of Arrow's."""
    import pyarrow as pa
    import pyarrow.types as t

    if isinstance(kind, pa.BaseExtensionType):
        return tree_of(kind.storage_type)
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return tree_of(kind.value_type)
    if t.is_map(kind):
        value = kind.item_field
        return {
            "type": "map", "keyType": tree_of(kind.key_type), "valueType": tree_of(value.type),
            "valueContainsNull": value.nullable,
        }  # fmt: skip
    if t.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return {"type": "struct", "fields": [spark.field(f.name, tree_of(f.type), nullable=f.nullable) for f in fields]}
    if (
        t.is_list(kind)
        or t.is_large_list(kind)
        or t.is_fixed_size_list(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
    ):
        value = kind.value_field
        return {"type": "array", "elementType": tree_of(value.type), "containsNull": value.nullable}
    if t.is_decimal(kind):
        fits = kind.precision <= _DECIMAL_DIGITS and 0 <= kind.scale <= kind.precision
        return f"decimal({kind.precision},{kind.scale})" if fits else "string"
    if t.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    # What is left, times, unions and what Arrow may still add, has no like in Spark.
    return next((tree for is_kind, tree in _plain() if is_kind(kind)), "string")


def type_of(tree: spark.Tree) -> pa.DataType:
    """Arrow's type for one of Spark's. Raises ValueError for a type that Arrow has no like of."""
    import pyarrow as pa

    if isinstance(tree, dict):
        return _nested(tree)
    decimal = spark.decimal_of(tree)
    if decimal and 1 <= decimal[0] <= _DECIMAL_DIGITS:
        return pa.decimal128(*decimal)
    if tree.startswith(("char(", "varchar(")):
        return pa.string()
    if tree.startswith("interval"):
        months = {"year", "month"} & set(tree.split())
        return pa.month_day_nano_interval() if months else pa.duration("us")
    simple = {
        "void": pa.null, "boolean": pa.bool_, "byte": pa.int8, "short": pa.int16, "integer": pa.int32, "long": pa.int64,
        "float": pa.float32, "double": pa.float64, "string": pa.string, "binary": pa.binary, "date": pa.date32,
        "timestamp": lambda: pa.timestamp("us", "UTC"), "timestamp_ntz": lambda: pa.timestamp("us"),
    }  # fmt: skip
    if tree not in simple:
        raise ValueError(f"Arrow has no type like {tree!r}")
    return simple[tree]()


def field_of(field: dict[str, Any]) -> pa.Field:
    """The Arrow field of Spark's; a comment is its only metadata."""
    import pyarrow as pa

    comment = (field.get("metadata") or {}).get("comment")
    metadata = {_COMMENT: str(comment).encode()} if comment is not None else None
    return pa.field(field["name"], type_of(field["type"]), field.get("nullable", True), metadata)


def comment_of(field: pa.Field) -> str | None:
    """The comment in a field's metadata, if it is text."""
    try:
        return (field.metadata or {})[_COMMENT].decode()  # type: ignore[no-any-return]
    except (KeyError, UnicodeDecodeError):
        return None


def _nested(tree: dict[str, Any]) -> pa.DataType:
    import pyarrow as pa

    if tree["type"] == "array":
        return pa.list_(pa.field("item", type_of(tree["elementType"]), tree.get("containsNull", True)))
    if tree["type"] == "map":
        value = pa.field("value", type_of(tree["valueType"]), tree.get("valueContainsNull", True))
        return pa.map_(pa.field("key", type_of(tree["keyType"]), nullable=False), value)
    if tree["type"] == "struct":
        return pa.struct([field_of(field) for field in tree["fields"]])
    raise ValueError(f"Arrow has no type like {tree['type']!r}")


def _plain() -> list[tuple[Any, str]]:
    import pyarrow.types as t

    return [
        (t.is_null, "void"), (t.is_boolean, "boolean"),
        (t.is_int8, "byte"), (t.is_int16, "short"), (t.is_int32, "integer"), (t.is_int64, "long"),
        (t.is_uint8, "short"), (t.is_uint16, "integer"), (t.is_uint32, "long"), (t.is_uint64, "decimal(20,0)"),
        (t.is_float16, "float"), (t.is_float32, "float"), (t.is_float64, "double"),
        (t.is_string, "string"), (t.is_large_string, "string"), (t.is_string_view, "string"),
        (t.is_binary, "binary"), (t.is_large_binary, "binary"), (t.is_binary_view, "binary"), (t.is_fixed_size_binary, "binary"),
        (t.is_date, "date"), (t.is_duration, "interval day to second"),
        (lambda kind: str(kind) == "month_day_nano_interval", "interval year to month"),
    ]  # fmt: skip
