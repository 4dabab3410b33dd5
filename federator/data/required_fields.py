"""Check rows against the fields that allow no nulls, before Lance writes them.

Lance itself refuses most of such rows, with messages of Arrow. But a merge of rows with nested fields ends as an internal error, and
nulls are written into vectors whose elements allow none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def find_null(rows: Any, schema: Any) -> str | None:
    """Return the path of a field (``a.b``) that allows no nulls and has one in a record batch. None if there is none.

    ``schema`` is that of the batch or of the table. Fields that the batch lacks are not checked.
    """
    return next((path for field in schema for path in _null_fields(_child(rows, field.name), field, field.name)), None)


def _null_fields(values: Any, field: Any, path: str) -> Iterator[str]:
    import pyarrow as pa

    if values is None:
        return
    if not field.nullable and values.null_count:
        yield path
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if not _has_required(kind):
        return
    # A null contains no nested value, whatever Arrow stores below it.
    values = values.drop_null()
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        for child in kind:
            yield from _null_fields(_child(values, child.name), child, f"{path}.{child.name}")
    elif pa.types.is_map(kind) and pa.types.is_map(values.type):
        yield from _null_fields(values.items, kind.item_field, f"{path}.{kind.item_field.name}")
    elif _is_list(kind) and _is_list(values.type):
        yield from _null_fields(values.flatten(), kind.value_field, f"{path}.{kind.value_field.name}")


def _has_required(kind: Any) -> bool:
    return any(not child.nullable or _has_required(child.type) for child in map(kind.field, range(kind.num_fields)))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return any(is_kind(kind) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def _child(values: Any, name: str) -> Any | None:
    """Return a column of a batch or a field of a struct array. None if it has none, or several, of this name."""
    schema = values.schema if hasattr(values, "schema") else values.type
    position = schema.get_field_index(name)
    if position < 0:
        return None
    return values.column(position) if hasattr(values, "schema") else values.field(position)
