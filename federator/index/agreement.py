"""Whether declarations agree, with each other and with what is stored: pure functions over records.

What one catalog leaves out contradicts nothing: many keep neither columns nor comments, and mirrors may leave properties behind.
Two declarations disagree where both say something, and not the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from federator.model import TableRecord, canonical_location, path_key, stable_properties
from federator.model.drift import Drift, DriftKind
from federator.planning.marks import plain_doc, unmarked


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What declarations say differently: the field (``schema``, ``doc`` or ``property:<key>``) and who says which.

    ``sides`` are the groups of declarations that agree among themselves, each sorted, as paths from the tree's root. The values are
    not in it: a property may hold what not everybody should read.
    """

    field: str
    sides: list[list[str]]


def disagreements(tables: Sequence[TableRecord]) -> list[Disagreement]:
    """Every field on which declarations of one place contradict each other, by name; none for fewer than two."""
    said: dict[str, dict[object, list[str]]] = {}
    for table in tables:
        for name, value in _said(table).items():
            said.setdefault(name, {}).setdefault(value, []).append(path_key((table.source, *table.path)))
    return [
        Disagreement(name, sorted(sorted(ids) for ids in sides.values()))
        for name, sides in sorted(said.items())
        if len(sides) > 1
    ]


def pair_drift(origin: TableRecord, target: TableRecord, wanted: str) -> Iterator[Drift]:
    """Where a mirrored table and its origin have come apart; ``wanted`` is the location that the mirror would write."""
    at, of = (path_key((table.source, *table.path)) for table in (target, origin))
    if target.location and canonical_location(target.location) != canonical_location(wanted):
        yield Drift(DriftKind.LOCATION_DIFFERS, target.source, at, of, f"{target.location}, and not {wanted}")
    # Columns are held against what is stored.
    fields = [found.field for found in disagreements([origin, target]) if found.field != "schema"]
    if fields:
        yield Drift(
            DriftKind.PROPERTIES_DIFFER, target.source, at, of, ", ".join(name.removeprefix("property:") for name in fields)
        )


def schema_drift(source: str, subject: str, location: str, declared: str | None, stored: str | None) -> Drift | None:
    """A catalog's column list against the Lance schema at its location, both as JSON; None where they agree or one is not known.

    Types are compared by what they are about (a whole number, a text, a list): their names differ with every catalog.
    """
    said, found = column_names(declared), column_names(stored)
    if not said or not found:
        return None
    parts = [("not stored", set(said) - set(found)), ("not declared", set(found) - set(said))]
    types, kept = _types(declared), _types(stored)
    other = {name for name in types.keys() & kept.keys() if None not in (a := (types[name], kept[name])) and a[0] != a[1]}
    parts.append(("of another type", other))
    told = "; ".join(f"{what}: {', '.join(sorted(names))}" for what, names in parts if names)
    if not told and said != found:
        told = "the columns are in another order"
    return Drift(DriftKind.SCHEMA_DIFFERS, source, subject, location, told) if told else None


@lru_cache(maxsize=4096)
def column_names(schema: str | None) -> tuple[str, ...]:
    """The names of a column list (canonical JSON), in order, in lower case: Hive keeps no other. Empty where there is none."""
    return tuple(str(column["name"]).lower() for column in json.loads(schema)) if schema else ()


@lru_cache(maxsize=4096)
def _types(schema: str | None) -> Mapping[str, str | None]:
    """What each column is about, by its name in lower case; None where its type is none that several catalogs know."""
    columns = json.loads(schema) if schema else ()
    return {str(column["name"]).lower(): _about(str(column.get("type") or "")) for column in columns}


def _about(kind: str) -> str | None:
    word = _WORD.match(kind.strip().lower())
    return next((about for about, words in _ABOUT.items() if word is not None and word[0] in words), None)


_WORD = re.compile(r"[a-z_]+")
# The first words of types, without the numbers behind them: Arrow's, Hive's and Glue's, Unity's.
_ABOUT = {
    "a whole number": ("tinyint", "smallint", "int", "uint", "integer", "bigint", "long", "short", "byte"),
    "a fraction": ("float", "double", "halffloat", "real"), "a decimal": ("decimal", "numeric"), "a truth": ("bool", "boolean"),
    "a text": ("string", "large_string", "string_view", "varchar", "char", "text", "utf"),
    "bytes": ("binary", "large_binary", "fixed_size_binary", "binary_view", "varbinary"),
    "a day": ("date",), "a moment": ("timestamp", "timestamp_ntz"),
    "a list": ("list", "large_list", "fixed_size_list", "array"), "a map": ("map",), "a struct": ("struct",),
}  # fmt: skip


def _said(table: TableRecord) -> Mapping[str, object]:
    found: dict[str, object] = {
        f"property:{key}": value for key, value in unmarked(stable_properties(table.properties)).items()
    }
    # Types have other names in every catalog; the columns themselves do not.
    if columns := column_names(table.schema):
        found["schema"] = columns
    if doc := plain_doc(table.doc):
        found["doc"] = doc
    return found
