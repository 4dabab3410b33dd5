"""Arrow schemas as the protocol writes them (``JsonArrowSchema``), there and back, with the names that pylance's own server has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from federator.connector import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {
    "halffloat": "float16", "float": "float32", "double": "float64", "string": "utf8", "large_string": "large_utf8",
    "string_view": "utf8_view", "date32[day]": "date32", "date64[ms]": "date64",
}  # fmt: skip
_PLAIN = {
    "null", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "utf8",
    "large_utf8", "string_view", "binary", "large_binary", "binary_view", "date32", "date64",
}  # fmt: skip
_ARROW = {"utf8_view": "string_view", "string": "utf8", "large_string": "large_utf8", "float": "float32", "double": "float64"}
_UNIT = re.compile(r"(timestamp|duration|time32|time64)\[(s|ms|us|ns)(?:, tz=(.+))?\]")


def schema_json(schema: pa.Schema) -> dict[str, Any]:
    """A ``JsonArrowSchema``; ``metadata`` where the schema has some."""
    metadata = _metadata(schema.metadata)
    return {"fields": [_field(field) for field in schema]} | ({"metadata": metadata} if metadata else {})


def data_type(told: Mapping[str, Any]) -> pa.DataType:
    """The Arrow type of a ``JsonArrowDataType``. Raises InvalidInput for one that is not known."""
    import pyarrow as pa

    name = str(told.get("type", ""))
    name = _ARROW.get(name, name)
    fields, length = told.get("fields") or [], told.get("length")
    if name in _PLAIN:
        return getattr(pa, "bool_" if name == "bool" else name)()
    if match := _UNIT.fullmatch(name):
        kind, unit, zone = match.groups()
        return pa.timestamp(unit, zone) if kind == "timestamp" else getattr(pa, kind)(unit)
    if name == "struct":
        return pa.struct([_arrow_field(field) for field in fields])
    if name in _LISTS and len(fields) == 1:
        return getattr(pa, _LISTS[name])(_arrow_field(fields[0]))
    if name == "fixed_size_list" and len(fields) == 1 and length:
        return pa.list_(_arrow_field(fields[0]), int(length))
    if name == "fixed_size_binary" and length:
        return pa.binary(int(length))
    raise InvalidInput(f"the data type {name!r} is not known", hint=f"one of {', '.join(sorted(_PLAIN))}, or a nested one")


_LISTS = {"list": "list_", "large_list": "large_list"}


def _arrow_field(told: Mapping[str, Any]) -> pa.Field:
    import pyarrow as pa

    return pa.field(str(told.get("name", "item")), data_type(told.get("type") or {}), nullable=bool(told.get("nullable", True)))


def _field(field: pa.Field) -> dict[str, Any]:
    metadata = _metadata(field.metadata)
    told = {"name": field.name, "nullable": field.nullable, "type": _type(field.type)}
    return told | ({"metadata": metadata} if metadata else {})


def _type(kind: pa.DataType) -> dict[str, Any]:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(i)) for i in range(kind.num_fields)]}
    if pa.types.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": [_field(entries)]}
    if pa.types.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "fields": [_field(kind.value_field)], "length": kind.list_size}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": str(kind).partition("<")[0], "fields": [_field(kind.value_field)]}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    return {"type": _NAMES.get(str(kind), str(kind))}


def _metadata(found: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in (found or {}).items()}
