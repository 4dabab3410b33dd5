"""Filters over planned changes: duplicate locations, missing locations, and evidence that no longer holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from federator.planning.changes import Action, Change, Refusal, refuse_change
from federator.planning.evidence import has_enough_misses
from federator.planning.plan import claimed_location
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule


def refuse_duplicate_locations(
    changes: Iterable[Change],
    declared: Mapping[str, Sequence[str]],
    leaving: Collection[str],
    waiting: Collection[str] = (),
) -> tuple[list[Change], list[Refusal]]:
    """Keep one name per location at the target; refuse other declarations.

    ``declared`` are the target's paths by canonical location. ``leaving`` are paths that this plan deregisters. ``waiting`` are
    paths that a later plan may deregister, because their origin is missed but not proven absent yet; a declaration of their
    location is refused as ``rename_pending``. A table that is moved frees its old location, unless its update is refused here: then
    the declaration of the old location is refused too.
    """
    kept = sorted(changes, key=lambda change: change.origin_path)
    refusals: list[Refusal] = []
    while True:
        vacated = {change.target_path for change in kept if change.moves_location} | set(leaving)
        claimed: dict[str, str] = {}
        refused: list[Change] = []
        for change in kept:
            location = claimed_location(change)
            if location is None:
                continue
            other_paths = sorted(
                path for path in declared.get(location, ()) if path != change.target_path and path not in vacated
            )
            holder = other_paths[0] if other_paths else claimed.setdefault(location, change.target_path)
            if holder != change.target_path:
                refused.append(change)
                reason = Reason.LOCATION_DECLARED
                detail = f"{change.target_source}${holder} already points to {change.after and change.after.location}"
                if holder in waiting and change.action is Action.DECLARE_TABLE:
                    reason = Reason.RENAME_PENDING
                    detail = f"waits until its old name, {change.target_source}${holder}, is deregistered"
                refusals.append(refuse_change(change, reason, detail))
        if not refused:
            return kept, refusals
        refused_ids = set(map(id, refused))
        kept = [change for change in kept if id(change) not in refused_ids]


def refuse_missing_locations(
    changes: Iterable[Change], states: Mapping[str, str], *, allowed: bool
) -> tuple[list[Change], list[Refusal]]:
    """Refuse declarations of absent locations, for catalogs that would create the directory. ``states`` are by canonical location."""
    kept: list[Change] = []
    refusals: list[Refusal] = []
    for change in changes:
        location = change.after.canonical if change.action is Action.DECLARE_TABLE and change.after else None
        state = states.get(location, "not verified") if location else "valid"
        if allowed or state in ("valid", "declared_only", "empty", "not_lance", "corrupt"):
            kept.append(change)
        else:
            detail = (
                f"the location is {state.replace('_', ' ')}, and the target would create it; declare_missing = true allows that"
            )
            refusals.append(refuse_change(change, Reason.LOCATION_MISSING, detail))
    return kept, refusals


def split_by_proof(
    rule: MirrorRule, changes: Iterable[Change], misses: Mapping[str, Sequence[float]]
) -> tuple[list[Change], list[Change]]:
    """Split changes into those whose proof still holds and deregistrations whose proof does not.

    A proof no longer holds if the origin was seen since the plan was made, or if its source's configuration changed, and so perhaps
    its permissions. ``misses`` are by origin path.
    """
    proven: list[Change] = []
    unproven: list[Change] = []
    for change in changes:
        needs_proof = change.action is Action.DEREGISTER_TABLE and change.needs_absent_origin
        missed = misses.get(change.origin_path, ())
        holds = not needs_proof or has_enough_misses(missed, rule.misses_before_delete, rule.min_miss_interval)
        (proven if holds else unproven).append(change)
    return proven, unproven
