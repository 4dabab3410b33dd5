"""Arrow schemas as Lance's namespaces write them in JSON (``JsonArrowSchema``), with the names that pylance's own have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {
    "halffloat": "float16", "float": "float32", "double": "float64", "string": "utf8", "large_string": "large_utf8",
    "string_view": "utf8_view", "month_day_nano_interval": "interval",
}  # fmt: skip


def json_schema(schema: pa.Schema) -> dict[str, Any]:
    """The fields of a ``JsonArrowSchema``. Its form has no place for the unit and the zone of a timestamp."""
    return {"fields": [_field(field) for field in schema]}


def _field(field: pa.Field) -> dict[str, Any]:
    import pyarrow as pa

    kind, metadata = field.type, {_text(key): _text(value) for key, value in (field.metadata or {}).items()}
    if isinstance(kind, pa.ExtensionType):
        told = {"name": kind.extension_name, "metadata": _text(kind.__arrow_ext_serialize__())}
        metadata |= {f"ARROW:extension:{key}": value for key, value in told.items()}
    written = {"name": field.name, "nullable": field.nullable, "type": _type(kind)}
    return written | ({"metadata": metadata} if metadata else {})


def _type(kind: pa.DataType) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.types as t

    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return _type(kind.value_type)
    if t.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": [_field(entries)]}
    if t.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(number)) for number in range(kind.num_fields)]}
    if t.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "fields": [_field(kind.value_field)], "length": kind.list_size}
    if t.is_list(kind) or t.is_large_list(kind) or t.is_list_view(kind) or t.is_large_list_view(kind):
        return {"type": str(kind).partition("<")[0], "fields": [_field(kind.value_field)]}
    if t.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    if t.is_decimal(kind):
        return {"type": str(kind).partition("(")[0], "length": kind.precision * 1000 + kind.scale}
    # Units and zones stand in brackets: timestamp[us, tz=UTC].
    name = str(kind).partition("[")[0]
    return {"type": _NAMES.get(name, name)}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
