"""Whole Arrow schemas: as the schema of a TableRecord, as Unity's columns, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from federator.connector import InvalidInput
from federator.model import canonical_json
from federator_connectors._arrow import arrow, columns, spark

if TYPE_CHECKING:
    import pyarrow as pa


def record_schema(schema: pa.Schema) -> str | None:
    """The schema of a record from Arrow's; None without fields. The schema's own metadata has no place in a catalog."""
    return canonical_json([_listed(field) for field in schema]) if len(schema) else None


def arrow_schema(schema: str | None) -> pa.Schema:
    """The Arrow schema of a record's. Raises InvalidInput that names a column whose type has none."""
    import pyarrow as pa

    return pa.schema([_arrow_field(column) for column in (json.loads(schema) if schema else [])])


def unity_columns(schema: pa.Schema) -> list[Mapping[str, Any]]:
    """Unity's columns for an Arrow schema."""
    return columns.columns_of(record_schema(schema))


def of_unity_columns(found: Sequence[Mapping[str, Any]]) -> pa.Schema:
    """The Arrow schema of Unity's columns. Raises InvalidInput that names a column whose type has none."""
    import pyarrow as pa

    ordered = sorted(found, key=lambda column: int(column.get("position") or 0))
    return pa.schema([_of_unity_column(column) for column in ordered])


def _listed(field: pa.Field) -> dict[str, Any]:
    tree = arrow.tree_of(field.type)
    listed: dict[str, Any] = {"name": field.name, "type": spark.text_of(tree)}
    comment = arrow.comment_of(field)
    if comment is not None:
        listed["doc"] = comment
    if not field.nullable:
        listed["nullable"] = False
    # The text says less than the tree: nothing of what is nullable inside.
    if not _plain_field(listed).equals(field, check_metadata=True):
        listed["arrow"] = arrow.exact(field)
    return listed


def _arrow_field(listed: Mapping[str, Any]) -> pa.Field:
    try:
        exact = arrow.of_exact(listed["arrow"]) if "arrow" in listed else None
        # Whoever changed the column's type since then is believed, and not what went along with the old one.
        if exact is not None and _says(exact, listed):
            return exact
        return _plain_field(listed)
    except ValueError as error:
        raise InvalidInput(f"the column {listed['name']!r}: {error}") from None


def _of_unity_column(column: Mapping[str, Any]) -> pa.Field:
    try:
        tree = columns.tree_of(column)
        listed = {"name": column["name"], "type": spark.text_of(tree), "nullable": column.get("nullable", True)}
        exact = columns.exact_of(column)
        if exact is not None and _says(found := arrow.of_exact(exact), listed):
            return found
        comment = column.get("comment")
        metadata = {"comment": comment} if comment is not None else {}
        return arrow.field_of(
            spark.field(column["name"], tree, nullable=column.get("nullable") is not False, metadata=metadata)
        )
    except ValueError as error:
        raise InvalidInput(f"the column {column['name']!r}: {error}") from None


def _plain_field(listed: Mapping[str, Any]) -> pa.Field:
    metadata = {"comment": listed["doc"]} if "doc" in listed else {}
    nullable = listed.get("nullable", True)
    return arrow.field_of(spark.field(listed["name"], spark.parse(listed["type"]), nullable=nullable, metadata=metadata))


def _says(exact: pa.Field, listed: Mapping[str, Any]) -> bool:
    return bool(exact.name == listed["name"] and spark.text_of(arrow.tree_of(exact.type)) == listed["type"])
