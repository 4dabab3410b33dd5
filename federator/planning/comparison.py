"""Comparison of declarations with each other and with the stored schema: pure functions over records.

A field that one catalog omits contradicts nothing: many catalogs store neither columns nor comments, and a mirror may omit
properties. Two declarations disagree only if both state a field with different values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from federator.model import TableRecord, canonical_location, path_key, stable_properties
from federator.model.drift import Drift, DriftKind
from federator.planning.ownership import strip_comment_marker, strip_marker_properties


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A field in which declarations of one dataset contradict each other, and the declarations on each side.

    The sides are groups of declarations that agree among themselves, each a sorted list of object ids. The values are omitted,
    because a property may contain text that not every principal should read.
    """

    field: str
    sides: list[list[str]]


class ColumnDifference(StrEnum):
    """How a declared and a stored column differ."""

    NOT_STORED = "not_stored"
    NOT_DECLARED = "not_declared"
    OTHER_TYPE = "other_type"


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """A column as its catalog declares it and as it is stored. The type of a side without the column is None."""

    name: str
    declared: str | None
    stored: str | None
    difference: ColumnDifference | None


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """The columns of both sides. ``is_reordered``: both have the same columns in another order."""

    columns: list[ColumnPair]
    is_reordered: bool


def find_disagreements(tables: Sequence[TableRecord]) -> list[Disagreement]:
    """Return every field on which declarations of one dataset contradict each other, sorted by name. Empty for fewer than two."""
    values_by_field: dict[str, dict[object, list[str]]] = {}
    for table in tables:
        for name, value in _comparable_fields(table).items():
            values_by_field.setdefault(name, {}).setdefault(value, []).append(path_key((table.source, *table.path)))
    return [
        Disagreement(name, sorted(sorted(ids) for ids in sides.values()))
        for name, sides in sorted(values_by_field.items())
        if len(sides) > 1
    ]


def compare_mirrored_pair(origin: TableRecord, target: TableRecord, desired_location: str) -> Iterator[Drift]:
    """Return the drift between a mirrored table and its origin. ``desired_location`` is the location that the mirror would write."""
    target_id, origin_id = (path_key((table.source, *table.path)) for table in (target, origin))
    if target.location and canonical_location(target.location) != canonical_location(desired_location):
        yield Drift(
            DriftKind.LOCATION_DIFFERS, target.source, target_id, origin_id, f"{target.location}, and not {desired_location}"
        )
    # Columns are compared with the stored schema instead.
    fields = [disagreement.field for disagreement in find_disagreements([origin, target]) if disagreement.field != "schema"]
    if fields:
        yield Drift(
            DriftKind.PROPERTIES_DIFFER,
            target.source,
            target_id,
            origin_id,
            ", ".join(name.removeprefix("property:") for name in fields),
        )


def compare_schema(source: str, subject: str, location: str, declared: str | None, stored: str | None) -> Drift | None:
    """Compare a catalog's column list with the Lance schema at its location, both as JSON. None if they agree or one is unknown.

    Types are compared by their group (whole number, text, list), because type names differ between catalogs.
    """
    comparison = compare_columns(declared, stored)
    labels = ((ColumnDifference.NOT_STORED, "not stored"), (ColumnDifference.NOT_DECLARED, "not declared"),
              (ColumnDifference.OTHER_TYPE, "of another type"))  # fmt: skip
    named = {
        label: sorted({pair.name.lower() for pair in comparison.columns if pair.difference is difference})
        for difference, label in labels
    }
    detail = "; ".join(f"{label}: {', '.join(names)}" for label, names in named.items() if names)
    if not detail and comparison.is_reordered:
        detail = "the columns are in another order"
    return Drift(DriftKind.SCHEMA_DIFFERS, source, subject, location, detail) if detail else None


def compare_columns(declared: str | None, stored: str | None) -> ColumnComparison:
    """Pair a catalog's column list with the Lance schema, both as JSON.

    The pairs of declared columns come first, in their order, then those of columns that are only stored. Names are compared without
    case. Nothing differs if one side is unknown.
    """
    left, right = _parse_columns(declared), _parse_columns(stored)
    is_compared = bool(left and right)
    declared_names, stored_names = column_names(declared), column_names(stored)
    unpaired: dict[str, list[_Column]] = {}
    for column in right:
        unpaired.setdefault(column.name.lower(), []).append(column)
    declared_set, stored_set = frozenset(declared_names), frozenset(stored_names)
    pairs: list[ColumnPair] = []
    for column in left:
        same_name = unpaired.get(column.name.lower(), [])
        match = next((other for other in same_name if other.name == column.name), same_name[0] if same_name else None)
        if match is not None:
            same_name.remove(match)
        difference = _column_difference(column, match, stored_set) if is_compared else None
        pairs.append(ColumnPair(column.name, column.type, match.type if match else None, difference))
    for column in right:
        if column in unpaired[column.name.lower()]:
            is_new = is_compared and column.name.lower() not in declared_set
            pairs.append(ColumnPair(column.name, None, column.type, ColumnDifference.NOT_DECLARED if is_new else None))
    is_reordered = is_compared and declared_names != stored_names and declared_set == stored_set
    return ColumnComparison(pairs, is_reordered)


def _column_difference(declared: _Column, stored: _Column | None, stored_names: Collection[str]) -> ColumnDifference | None:
    if stored is None:
        return ColumnDifference.NOT_STORED if declared.name.lower() not in stored_names else None
    groups = _type_group(declared.type), _type_group(stored.type)
    return ColumnDifference.OTHER_TYPE if None not in groups and groups[0] != groups[1] else None


@lru_cache(maxsize=4096)
def column_names(schema: str | None) -> tuple[str, ...]:
    """Return the names of a column list (canonical JSON), in order and in lower case, because Hive lowers them. Empty for None."""
    return tuple(str(column["name"]).lower() for column in json.loads(schema)) if schema else ()


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a catalog or of a Lance schema, with the type as text."""

    name: str
    type: str


@lru_cache(maxsize=4096)
def _parse_columns(schema: str | None) -> tuple[_Column, ...]:
    columns = json.loads(schema) if schema else ()
    return tuple(_Column(str(column["name"]), _type_text(column.get("arrow") or column.get("type"))) for column in columns)


def _type_text(column_type: object) -> str:
    if column_type is None:
        return ""
    return column_type if isinstance(column_type, str) else json.dumps(column_type)


def _type_group(type_text: str) -> str | None:
    match = _WORD.match(type_text.strip().lower())
    return next((group for group, type_names in _TYPE_GROUPS.items() if match is not None and match[0] in type_names), None)


_WORD = re.compile(r"[a-z_]+")
# The first words of type names, without parameters: those of Arrow, Hive, Glue and Unity.
_TYPE_GROUPS = {
    "a whole number": ("tinyint", "smallint", "int", "uint", "integer", "bigint", "long", "short", "byte"),
    "a fraction": ("float", "double", "halffloat", "real"), "a decimal": ("decimal", "numeric"), "a truth": ("bool", "boolean"),
    "a text": ("string", "large_string", "string_view", "varchar", "char", "text", "utf"),
    "bytes": ("binary", "large_binary", "fixed_size_binary", "binary_view", "varbinary"),
    "a day": ("date",), "a moment": ("timestamp", "timestamp_ntz"),
    "a list": ("list", "large_list", "fixed_size_list", "array"), "a map": ("map",), "a struct": ("struct",),
}  # fmt: skip


def _comparable_fields(table: TableRecord) -> Mapping[str, object]:
    values: dict[str, object] = {
        f"property:{key}": value for key, value in strip_marker_properties(stable_properties(table.properties)).items()
    }
    # Type names differ between catalogs; column names do not.
    if columns := column_names(table.schema):
        values["schema"] = columns
    if doc := strip_comment_marker(table.doc):
        values["doc"] = doc
    return values
