"""Rename detection: pair a deregistration with a declaration of the same location.

The two changes of a pair are applied one directly after the other, the old name first, so that a location never has two names.
Properties that the target itself added move to the new name. If a run dies between the two, the next one finds the deregistration
in the journal and completes the rename.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.ownership import (
    append_comment_marker,
    find_bound_marker,
    has_comment_marker,
    strip_comment_marker,
    strip_marker_properties,
)


def pair_renames(changes: Sequence[Change], pending_renames: Sequence[Change], *, keeps_properties: bool) -> list[Change]:
    """Return the changes with renames paired.

    ``pending_renames`` are deregistrations of a pair that an earlier run carried out without the declaration.
    """
    leaving: dict[str, Change] = {}
    for change in sorted(changes, key=attrgetter("target_path")):
        if (location := _freed_location(change)) is not None:
            # Of several deregistrations of one location, the first by path is paired.
            leaving.setdefault(location, change)
    # The pairs of the deregistrations in ``changes``, by target path.
    pairs: dict[str, str] = {}
    paired: list[Change] = []
    for change in changes:
        new_location = change.after.canonical if change.action is Action.DECLARE_TABLE and change.after else None
        old = None
        if new_location is not None:
            old = leaving.get(new_location) or _find_pending_rename(pending_renames, change, new_location)
        if old is None:
            paired.append(change)
            continue
        pair = old.pair or _pair_id(old, change)
        if old.pair is None:
            pairs[old.target_path] = pair
        paired.append(_rename_change(change, old, pair, keeps_properties=keeps_properties))
    return [
        replace(change, pair=pairs[change.target_path], reason="renamed at the origin")
        if change.action is Action.DEREGISTER_TABLE and change.target_path in pairs
        else change
        for change in paired
    ]


def _rename_change(change: Change, old: Change, pair: str, *, keeps_properties: bool) -> Change:
    assert change.after is not None
    assert old.before is not None
    after = _merge_target_extras(change.after, old.before, old.declared, keeps_properties=keeps_properties)
    return replace(change, after=after, pair=pair, reason=f"renamed at the origin, {old.target_path} before")


def _merge_target_extras(
    after: TableRecord, before: TableRecord, declared: str | None, *, keeps_properties: bool
) -> TableRecord:
    """Return the new declaration with the properties and the comment that the target had added to the old object."""
    declaration = json.loads(declared or "{}")
    names = declaration.get("properties") or {}
    extras = (
        {key: value for key, value in strip_marker_properties(before.properties).items() if key not in names}
        if keeps_properties
        else {}
    )
    merged = replace(after, properties={**extras, **after.properties})
    own_doc = strip_comment_marker(before.doc)
    if strip_comment_marker(after.doc) is not None or own_doc is None or declaration.get("doc"):
        return merged
    marker = find_bound_marker(after) if has_comment_marker(after) else None
    return replace(merged, doc=own_doc if marker is None else append_comment_marker(own_doc, marker, after.path))


def _freed_location(change: Change) -> str | None:
    """Return the canonical location that a deregistration frees."""
    removed = change.before if change.action is Action.DEREGISTER_TABLE else None
    return removed.canonical if removed is not None else None


def _find_pending_rename(pending_renames: Sequence[Change], change: Change, location: str) -> Change | None:
    matches = (
        pending
        for pending in pending_renames
        if _freed_location(pending) == location and pending.pair == _pair_id(pending, change)
    )
    return next(matches, None)


def _pair_id(old: Change, new: Change) -> str:
    return f"{old.target_path} -> {new.target_path}"
