"""The order of changes: what frees a name or a location precedes what takes it, and a namespace precedes its objects.

Changes that depend on each other get different ranks. Changes of one rank may be applied at once. The two changes of a rename are
one group, and so are changes of one target path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from federator.model import iter_ancestors, parse_path_key, path_key
from federator.planning.changes import Action, Change


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Changes with their numbers in the plan, which one thread applies in order. After a failed one the rest is skipped."""

    steps: tuple[tuple[int, Change], ...]


def group_changes(changes: Sequence[Change]) -> list[ChangeGroup]:
    """Return the plan's groups in an order in which they can be applied one by one: the plan's order, except for chains of renames."""
    numbered = list(enumerate(changes))
    grouped = groupby(numbered, key=lambda step: step[1].pair or step[0])
    return _order_rename_chains([ChangeGroup(tuple(steps)) for _, steps in grouped])


def rank_groups(ordered: Sequence[ChangeGroup]) -> list[list[ChangeGroup]]:
    """Return the groups by rank: the length of the longest chain of groups that must precede them."""
    groups_by_rank: dict[int, list[ChangeGroup]] = defaultdict(list)
    rank_by_key: dict[tuple[str, str], int] = {}
    for group in ordered:
        rank = 1 + max((rank_by_key.get(key, -1) for key in _required_keys(group)), default=-1)
        groups_by_rank[rank].append(group)
        for key in _keys(group, above="inside"):
            rank_by_key[key] = max(rank, rank_by_key.get(key, -1))
    return [groups_by_rank[rank] for rank in sorted(groups_by_rank)]


def _order_rename_chains(groups: Sequence[ChangeGroup]) -> list[ChangeGroup]:
    """Order renames that take each other's names from the end of their chain. Keep the order of all other groups, and of a cycle."""
    freed_by = {
        change.target_path: group for group in groups for _, change in group.steps if change.pair and change.after is None
    }
    placed: dict[int, ChangeGroup] = {}

    def visit(group: ChangeGroup, ancestors: frozenset[int]) -> None:
        if id(group) in placed or id(group) in ancestors:
            return
        for _, change in group.steps:
            earlier = freed_by.get(change.target_path) if change.after is not None else None
            if earlier is not None and earlier is not group:
                visit(earlier, ancestors | {id(group)})
        placed[id(group)] = group

    for group in groups:
        visit(group, frozenset())
    return list(placed.values())


def _required_keys(group: ChangeGroup) -> Iterator[tuple[str, str]]:
    """Yield what earlier groups must have provided: free paths and locations, existing ancestors, and an empty namespace to drop."""
    yield from _keys(group, above="path")
    yield from (("inside", change.target_path) for _, change in group.steps if change.action is Action.DROP_NAMESPACE)


def _keys(group: ChangeGroup, *, above: str) -> Iterator[tuple[str, str]]:
    """Yield the paths and locations that a group affects, and the ancestors of its paths under the kind ``above``.

    A key is a kind with a path key or a canonical location: ``path`` (something is made or removed there), ``inside`` (something in
    this namespace is), ``location`` (it is taken or freed).
    """
    for _, change in group.steps:
        yield "path", change.target_path
        for ancestor in iter_ancestors(parse_path_key(change.target_path)):
            yield above, path_key(ancestor)
        for location in _affected_locations(change):
            yield "location", location


def _affected_locations(change: Change) -> set[str]:
    """Return the canonical locations that a change frees or takes."""
    if change.action in (Action.UPDATE_TABLE, Action.ADOPT) and not change.moves_location:
        return set()
    return {record.canonical for record in (change.before, change.after) if record is not None and record.canonical}
