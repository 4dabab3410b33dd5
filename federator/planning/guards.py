"""Guards: pure checks over a finished plan. What one of them objects to is held (``planning.holds``) for a person's approval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from federator.model import TableRecord, parent, parse_key, path_key
from federator.planning.changes import Action, Change, destructive
from federator.planning.holds import Binds, Hold, drops
from federator.planning.rule import MirrorRule

# Below this many deletions a percentage says nothing.
MINIMUM_DELETIONS = 3


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """What the guards weigh.

    The mirror's live tables in the ledger, in all and by target namespace; those whose origin the index has, by origin namespace;
    deletions made in the rolling window, in all and by target namespace; how many tables the mirror selects at the origin now (copies
    of other mirrors do not count); whether the origin hides what its principal may not see.
    """

    live: int
    live_by_namespace: Mapping[str, int]
    there_by_origin: Mapping[str, int]
    deleted_in_window: int
    deleted_by_namespace: Mapping[str, int]
    selected: int
    origin_filters_listings: bool
    #: namespaces dropped at the target in the rolling window
    dropped_in_window: int = 0


Guard = Callable[[MirrorRule, Sequence[Change], GuardFacts], Hold | None]


def shows_effect(change: Change, now: TableRecord | None) -> bool:
    """Whether a destructive change may have been made, by the target's table as it is known now: unless that is the very object, and
    where it was. Whatever somebody did to it later, the change may have come first."""
    before = change.before
    if now is None or before is None:
        return now is None
    if change.moves_location and now.canonical != before.canonical:
        return True
    if before.native_id is not None and now.native_id is not None:
        return before.native_id != now.native_id
    return change.action in (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE) and before.digest != now.digest


def max_changes(rule: MirrorRule, changes: Sequence[Change], _: GuardFacts) -> Hold | None:
    if len(changes) <= rule.max_changes:
        return None
    return Hold("max_changes", f"{len(changes):,} changes, max_changes is {rule.max_changes:,}", Binds.ALL)


def max_delete_percent(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> Hold | None:
    planned = sum(map(destructive, changes))
    total = planned + facts.deleted_in_window
    base = facts.live + facts.deleted_in_window
    if not planned or total < MINIMUM_DELETIONS or total * 100 <= rule.max_delete_percent * base:
        return None
    hours = rule.guard_window / 3600
    detail = f"{total} of {base} tables removed or moved within {hours:g} h, max_delete_percent is {rule.max_delete_percent:g}"
    return Hold("max_delete_percent", detail, Binds.DESTRUCTIVE)


def namespace_delete_percent(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> Hold | None:
    """The same share within each namespace, so that one emptied namespace is not lost in a large mirror."""
    for namespace, planned in sorted(Counter(_above(c.target_path) for c in changes if destructive(c)).items()):
        before = facts.deleted_by_namespace.get(namespace, 0)
        total, base = planned + before, facts.live_by_namespace.get(namespace, 0) + before
        if total >= MINIMUM_DELETIONS and total * 100 > rule.max_delete_percent * base:
            limit = f"max_delete_percent is {rule.max_delete_percent:g}"
            detail = f"{total} of {base} tables of {namespace} removed or moved within {rule.guard_window / 3600:g} h, {limit}"
            return Hold("namespace_delete_percent", detail, Binds.DESTRUCTIVE)
    return None


def never_empty(_: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> Hold | None:
    """An empty source never empties a target."""
    if facts.selected or not any(map(destructive, changes)):
        return None
    detail = "the mirror selects nothing at the origin now; an empty source never empties a target"
    return Hold("never_empty", detail, Binds.DESTRUCTIVE)


def emptied_namespace(_: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> Hold | None:
    """Where a catalog hides what its principal may not see, a namespace of which nothing is left may be a revoked grant."""
    if not facts.origin_filters_listings:
        return None
    # A table that is seen under its new name proves that its namespace is not hidden.
    renamed = {c.pair: _above(c.origin_path) for c in changes if c.pair is not None and c.action is Action.DECLARE_TABLE}
    gone = Counter(_above(c.origin_path) for c in changes if _removes(c) and renamed.get(c.pair or "") != _above(c.origin_path))
    for namespace, planned in sorted(gone.items()):
        if not facts.there_by_origin.get(namespace, 0):
            detail = (
                f"the last {planned} tables of the origin's {namespace} are gone, and it filters its listings by permission"
            )
            return Hold("emptied_namespace", detail, Binds.REMOVALS)
    return None


def dropped_namespaces(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> Hold | None:
    """Namespaces have a limit of their own: they count as no table, and a dropped one may take with it what nobody listed."""
    planned = sum(map(drops, changes))
    total = planned + facts.dropped_in_window
    if not planned or total <= rule.max_dropped_namespaces:
        return None
    limit = f"max_dropped_namespaces is {rule.max_dropped_namespaces}"
    detail = f"{total} namespaces dropped within {rule.guard_window / 3600:g} h, {limit}"
    return Hold("dropped_namespaces", detail, Binds.DROPPED_NAMESPACES)


GUARDS: dict[str, Guard] = {
    "max_changes": max_changes,
    "max_delete_percent": max_delete_percent,
    "namespace_delete_percent": namespace_delete_percent,
    "never_empty": never_empty,
    "emptied_namespace": emptied_namespace,
    "dropped_namespaces": dropped_namespaces,
}


def objections(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> list[Hold]:
    """Each guard's hold; empty where the plan may be applied at once."""
    holds = (guard(rule, changes, facts) for guard in GUARDS.values())
    return [hold for hold in holds if hold is not None]


def _removes(change: Change) -> bool:
    gone = change.action is Action.DEREGISTER_TABLE and change.precondition.get("origin") == "absent"
    return gone and change.before is not None


def _above(key: str) -> str:
    return path_key(parent(parse_key(key)))
