"""Renames: a table that has a new name and the old place is one table, not one that went and one that came.

Deregistration and declaration become a pair. They are carried out one right after the other, the old name first, so that a place
never has two names; what the target had added of its own goes along. If a run dies between the two, the next one finds the first
half in the journal and completes the second as it was meant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.marks import bound_mark, marked_in_comment, plain_doc, unmarked, with_comment


def paired(changes: Sequence[Change], halves: Sequence[Change], *, keeps_properties: bool) -> list[Change]:
    """The changes with renames joined. ``halves`` are deregistrations of a pair that an earlier run made and never completed."""
    leaving = {place: change for change in sorted(changes, key=_path, reverse=True) if (place := _freed(change)) is not None}
    pairs: dict[str, str] = {}
    made: list[Change] = []
    for change in changes:
        place = change.after.canonical if change.action is Action.DECLARE_TABLE and change.after else None
        old = None if place is None else leaving.get(place) or _half(halves, change, place)
        if old is None:
            made.append(change)
            continue
        pair = old.pair or _pair(old, change)
        if old.pair is None:
            pairs[old.target_path] = pair
        made.append(_renamed(change, old, pair, keeps_properties=keeps_properties))
    return [
        replace(change, pair=pairs[change.target_path], reason="renamed at the origin")
        if change.action is Action.DEREGISTER_TABLE and change.target_path in pairs
        else change
        for change in made
    ]


def _renamed(change: Change, old: Change, pair: str, *, keeps_properties: bool) -> Change:
    assert change.after is not None
    assert old.before is not None
    after = _with_extras(change.after, old.before, old.declared, keeps_properties=keeps_properties)
    return replace(change, after=after, pair=pair, reason=f"renamed at the origin, {old.target_path} before")


def _with_extras(after: TableRecord, before: TableRecord, declared: str | None, *, keeps_properties: bool) -> TableRecord:
    """The new declaration with what the old object had beyond ours."""
    ours = json.loads(declared or "{}")
    names = ours.get("properties") or {}
    extras = {key: value for key, value in unmarked(before.properties).items() if key not in names} if keeps_properties else {}
    carried = replace(after, properties={**extras, **after.properties})
    own_doc = plain_doc(before.doc)
    if plain_doc(after.doc) is not None or own_doc is None or ours.get("doc"):
        return carried
    mark = bound_mark(after)
    in_comment = mark is not None and marked_in_comment(after)
    return replace(carried, doc=with_comment(own_doc, mark, after.path) if in_comment and mark else own_doc)


def _freed(change: Change) -> str | None:
    """The place (canonical) that a deregistration frees."""
    gone = change.before if change.action is Action.DEREGISTER_TABLE else None
    return gone.canonical if gone is not None else None


def _half(halves: Sequence[Change], change: Change, place: str) -> Change | None:
    meant = (half for half in halves if _freed(half) == place and half.pair == _pair(half, change))
    return next(meant, None)


def _pair(old: Change, new: Change) -> str:
    return f"{old.target_path} -> {new.target_path}"


def _path(change: Change) -> str:
    return change.target_path
