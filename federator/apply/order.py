"""Which Changes must wait for which: what frees a name or a location goes before what takes it, a namespace before what is in it.

Changes that depend on each other get different ranks; those of one rank may be carried out at once. The halves of a rename are one
unit, and so are Changes of one target path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from federator.model import ancestors, parse_key, path_key
from federator.planning.changes import Action, Change


@dataclass(frozen=True, slots=True)
class Unit:
    """Changes with their numbers in the plan that one thread carries out in order; after a failed one the rest is left out."""

    steps: tuple[tuple[int, Change], ...]


def units(changes: Sequence[Change]) -> list[Unit]:
    """The plan's units in an order in which they may be carried out one by one: the plan's, but for renames that form a chain."""
    numbered = list(enumerate(changes))
    grouped = groupby(numbered, key=lambda step: step[1].pair or step[0])
    return _chained([Unit(tuple(steps)) for _, steps in grouped])


def ranks(ordered: Sequence[Unit]) -> list[list[Unit]]:
    """The units by how much must be done before them."""
    ranked: dict[int, list[Unit]] = defaultdict(list)
    seen: dict[tuple[str, str], int] = {}
    for unit in ordered:
        rank = 1 + max((seen.get(thing, -1) for thing in _waits_for(unit)), default=-1)
        ranked[rank].append(unit)
        for thing in _decides(unit):
            seen[thing] = max(rank, seen.get(thing, -1))
    return [ranked[rank] for rank in sorted(ranked)]


def _chained(ordered: Sequence[Unit]) -> list[Unit]:
    """Renames that take each other's names, from the end of their chain; everything else as it stands. A ring stays as it is."""
    frees = {change.target_path: unit for unit in ordered for _, change in unit.steps if change.pair and change.after is None}
    made: dict[int, Unit] = {}

    def visit(unit: Unit, above: frozenset[int]) -> None:
        if id(unit) in made or id(unit) in above:
            return
        for _, change in unit.steps:
            before = frees.get(change.target_path) if change.after is not None else None
            if before is not None and before is not unit:
                visit(before, above | {id(unit)})
        made[id(unit)] = unit

    for unit in ordered:
        visit(unit, frozenset())
    return list(made.values())


def _waits_for(unit: Unit) -> Iterable[tuple[str, str]]:
    for _, change in unit.steps:
        path = parse_key(change.target_path)
        yield "path", change.target_path
        for above in ancestors(path):
            yield "path", path_key(above)
        if change.action is Action.DROP_NAMESPACE:
            yield "inside", change.target_path
        for canonical in _places(change):
            yield "place", canonical


def _decides(unit: Unit) -> Iterable[tuple[str, str]]:
    for _, change in unit.steps:
        yield "path", change.target_path
        for above in ancestors(parse_key(change.target_path)):
            yield "inside", path_key(above)
        for canonical in _places(change):
            yield "place", canonical


def _places(change: Change) -> set[str]:
    """The locations (canonical) that a Change frees or takes."""
    if change.action in (Action.UPDATE_TABLE, Action.ADOPT) and not change.moves_location:
        return set()
    return {record.canonical for record in (change.before, change.after) if record is not None and record.canonical}
