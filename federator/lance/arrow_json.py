"""Conversion between Arrow schemas and the protocol's ``JsonArrowSchema``, with the type names of pylance's server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from federator.connector import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

# The protocol's names for types whose names in Arrow differ.
_PROTOCOL_NAMES = {
    "halffloat": "float16", "float": "float32", "double": "float64", "string": "utf8", "large_string": "large_utf8",
    "string_view": "utf8_view", "month_day_nano_interval": "interval",
}  # fmt: skip
# The types without parameters; each is the name of a function of pyarrow.
_PLAIN = {
    "null", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "utf8",
    "large_utf8", "string_view", "binary", "large_binary", "binary_view", "date32", "date64",
}  # fmt: skip
# Other names of plain types that are accepted.
_ACCEPTED_NAMES = {
    "utf8_view": "string_view",
    "string": "utf8",
    "large_string": "large_utf8",
    "float": "float32",
    "double": "float64",
}
# The functions of pyarrow for lists of any length.
_LISTS = {"list": "list_", "large_list": "large_list"}
_UNIT = re.compile(r"(timestamp|duration|time32|time64)\[(s|ms|us|ns)(?:, tz=(.+))?\]")


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as a ``JsonArrowSchema``, with ``metadata`` if the schema has any.

    As in pylance's server, the type name of a time has no unit and no zone: pylance's client refuses any other name.
    """
    metadata = _decode_metadata(schema.metadata)
    return {"fields": [_field_to_json(field) for field in schema]} | ({"metadata": metadata} if metadata else {})


def type_from_json(data_type: Mapping[str, Any]) -> pa.DataType:
    """Return the Arrow type of a ``JsonArrowDataType``. Raise InvalidInput for an unknown type."""
    import pyarrow as pa

    name = str(data_type.get("type", ""))
    name = _ACCEPTED_NAMES.get(name, name)
    fields, length = data_type.get("fields") or [], data_type.get("length")
    if name in _PLAIN:
        return getattr(pa, "bool_" if name == "bool" else name)()
    if match := _UNIT.fullmatch(name):
        kind, unit, zone = match.groups()
        return pa.timestamp(unit, zone) if kind == "timestamp" else getattr(pa, kind)(unit)
    if name == "struct":
        return pa.struct([_field_from_json(field) for field in fields])
    if name in _LISTS and len(fields) == 1:
        return getattr(pa, _LISTS[name])(_field_from_json(fields[0]))
    if name == "fixed_size_list" and len(fields) == 1 and length:
        return pa.list_(_field_from_json(fields[0]), int(length))
    if name == "fixed_size_binary" and length:
        return pa.binary(int(length))
    raise InvalidInput(f"unknown data type {name!r}", hint=f"use one of {', '.join(sorted(_PLAIN))}, or a nested type")


def _field_from_json(field: Mapping[str, Any]) -> pa.Field:
    import pyarrow as pa

    return pa.field(
        str(field.get("name", "item")), type_from_json(field.get("type") or {}), nullable=bool(field.get("nullable", True))
    )


def _field_to_json(field: pa.Field) -> dict[str, Any]:
    import pyarrow as pa

    kind, metadata = field.type, _decode_metadata(field.metadata)
    if isinstance(kind, pa.ExtensionType):
        extension = {b"name": kind.extension_name.encode(), b"metadata": kind.__arrow_ext_serialize__()}
        metadata |= {f"ARROW:extension:{key}": value for key, value in _decode_metadata(extension).items()}
    json_field = {"name": field.name, "nullable": field.nullable, "type": _type_to_json(kind)}
    return json_field | ({"metadata": metadata} if metadata else {})


def _type_to_json(kind: pa.DataType) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.types as t

    if isinstance(kind, pa.BaseExtensionType):
        return _type_to_json(kind.storage_type)
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return _type_to_json(kind.value_type)
    if t.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": [_field_to_json(entries)]}
    if t.is_struct(kind):
        return {"type": "struct", "fields": [_field_to_json(kind.field(number)) for number in range(kind.num_fields)]}
    if t.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "fields": [_field_to_json(kind.value_field)], "length": kind.list_size}
    if t.is_list(kind) or t.is_large_list(kind) or t.is_list_view(kind) or t.is_large_list_view(kind):
        return {"type": str(kind).partition("<")[0], "fields": [_field_to_json(kind.value_field)]}
    if t.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    if t.is_decimal(kind):
        return {"type": str(kind).partition("(")[0], "length": kind.precision * 1000 + kind.scale}
    # Arrow writes units and zones in brackets: timestamp[us, tz=UTC].
    name = str(kind).partition("[")[0]
    return {"type": _PROTOCOL_NAMES.get(name, name)}


def _decode_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode("utf-8", "backslashreplace"): value.decode("utf-8", "backslashreplace")
        for key, value in (metadata or {}).items()
    }
