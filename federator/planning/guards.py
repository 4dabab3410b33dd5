"""Guards: pure checks of a finished plan. A guard returns what it measured, and a hold (``planning.holds``) if it objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from federator.model import TableRecord, parent_key
from federator.planning.changes import Action, Change, is_destructive
from federator.planning.holds import Binds, Hold, is_namespace_drop
from federator.planning.measurement import Measurement
from federator.planning.rule import MirrorRule

# With fewer deletions a percentage is meaningless.
MINIMUM_DELETIONS = 3


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """The facts that guards evaluate.

    ``live_tables`` and ``live_by_namespace`` count the mirror's tables in the ledger, in all and by target namespace.
    ``existing_by_origin_namespace`` counts those whose origin is in the index, by origin namespace. ``deleted_in_window`` and
    ``deleted_by_namespace`` count deletions in the rolling window, in all and by target namespace. ``selected_count`` is the number
    of origin tables that the mirror selects now, without other mirrors' copies. ``origin_filters_listings`` says whether the origin
    hides objects that its credentials may not see.
    """

    live_tables: int
    live_by_namespace: Mapping[str, int]
    existing_by_origin_namespace: Mapping[str, int]
    deleted_in_window: int
    deleted_by_namespace: Mapping[str, int]
    selected_count: int
    origin_filters_listings: bool
    #: namespaces dropped at the target in the rolling window
    dropped_in_window: int = 0


#: what a guard measured, and its objection
GuardResult = tuple[Measurement, Hold | None]
Guard = Callable[[MirrorRule, Sequence[Change], GuardFacts], GuardResult]


def may_have_taken_effect(change: Change, current: TableRecord | None) -> bool:
    """Tell whether a destructive change may have been made. ``current`` is the target's table as it is known now, if there is one.

    False only if ``current`` is the same object as before the change, at the same location. Who changed it since then does not matter:
    the destructive change may have come first.
    """
    before = change.before
    if current is None:
        return True
    if before is None:
        return False
    if change.moves_location and current.canonical != before.canonical:
        return True
    if before.native_id is not None and current.native_id is not None:
        return before.native_id != current.native_id
    return change.action in (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE) and before.digest != current.digest


def max_changes(rule: MirrorRule, changes: Sequence[Change], _: GuardFacts) -> GuardResult:
    measured = Measurement("max_changes", len(changes), rule.max_changes)
    if len(changes) <= rule.max_changes:
        return measured, None
    return measured, Hold("max_changes", f"{len(changes):,} changes, max_changes is {rule.max_changes:,}", Binds.ALL)


def max_delete_percent(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> GuardResult:
    planned = sum(map(is_destructive, changes))
    total = planned + facts.deleted_in_window
    base = facts.live_tables + facts.deleted_in_window
    measured = Measurement("max_delete_percent", total, rule.max_delete_percent, base)
    if not planned or not _exceeds_percent(rule, total, base):
        return measured, None
    hours = rule.guard_window / 3600
    detail = f"{total} of {base} tables removed or moved within {hours:g} h, max_delete_percent is {rule.max_delete_percent:g}"
    return measured, Hold("max_delete_percent", detail, Binds.DESTRUCTIVE)


def namespace_delete_percent(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> GuardResult:
    """Check the same share within each namespace, so that an emptied namespace does not disappear in a large mirror."""
    # The namespace with the largest share is reported, even if it does not exceed the limit.
    nearest = Measurement("namespace_delete_percent", 0, rule.max_delete_percent, 0)
    for namespace, planned in sorted(Counter(parent_key(c.target_path) for c in changes if is_destructive(c)).items()):
        deleted = facts.deleted_by_namespace.get(namespace, 0)
        total, base = planned + deleted, facts.live_by_namespace.get(namespace, 0) + deleted
        measured = Measurement("namespace_delete_percent", total, rule.max_delete_percent, base, namespace)
        if _exceeds_percent(rule, total, base):
            limit = f"max_delete_percent is {rule.max_delete_percent:g}"
            detail = f"{total} of {base} tables of {namespace} removed or moved within {rule.guard_window / 3600:g} h, {limit}"
            return measured, Hold("namespace_delete_percent", detail, Binds.DESTRUCTIVE)
        # Compares total / base with the nearest share, without a division by zero.
        if nearest.namespace is None or total * (nearest.total or 0) > nearest.measured * base:
            nearest = measured
    return nearest, None


def never_empty(_: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> GuardResult:
    """Check that an empty source never empties a target."""
    measured = Measurement("never_empty", facts.selected_count)
    if facts.selected_count or not any(map(is_destructive, changes)):
        return measured, None
    detail = "the mirror selects no table at the origin now; an empty source never empties a target"
    return measured, Hold("never_empty", detail, Binds.DESTRUCTIVE)


def emptied_namespace(_: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> GuardResult:
    """Hold the removal of a namespace's last tables if the origin hides objects: a revoked grant looks the same."""
    if not facts.origin_filters_listings:
        return Measurement("emptied_namespace", 0), None
    # A table that is listed under its new name proves that its namespace is not hidden.
    renamed = {
        change.pair: parent_key(change.origin_path)
        for change in changes
        if change.pair is not None and change.action is Action.DECLARE_TABLE
    }
    removed = Counter(
        parent_key(change.origin_path)
        for change in changes
        if _is_removal(change) and renamed.get(change.pair or "") != parent_key(change.origin_path)
    )
    for namespace, planned in sorted(removed.items()):
        if not facts.existing_by_origin_namespace.get(namespace, 0):
            detail = f"the last {planned} tables of the origin's {namespace} are absent, and the origin filters listings by permission"
            measured = Measurement("emptied_namespace", planned, namespace=namespace)
            return measured, Hold("emptied_namespace", detail, Binds.REMOVALS)
    return Measurement("emptied_namespace", 0), None


def dropped_namespaces(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> GuardResult:
    """Check the separate limit of namespaces: they do not count as tables, and a drop may delete objects that no listing showed."""
    planned = sum(map(is_namespace_drop, changes))
    total = planned + facts.dropped_in_window
    measured = Measurement("dropped_namespaces", total, rule.max_dropped_namespaces)
    if not planned or total <= rule.max_dropped_namespaces:
        return measured, None
    limit = f"max_dropped_namespaces is {rule.max_dropped_namespaces}"
    detail = f"{total} namespaces dropped within {rule.guard_window / 3600:g} h, {limit}"
    return measured, Hold("dropped_namespaces", detail, Binds.DROPPED_NAMESPACES)


GUARDS: dict[str, Guard] = {
    "max_changes": max_changes,
    "max_delete_percent": max_delete_percent,
    "namespace_delete_percent": namespace_delete_percent,
    "never_empty": never_empty,
    "emptied_namespace": emptied_namespace,
    "dropped_namespaces": dropped_namespaces,
}


def measure_guards(rule: MirrorRule, changes: Sequence[Change], facts: GuardFacts) -> list[GuardResult]:
    """Return what each guard measured, with its hold."""
    return [guard(rule, changes, facts) for guard in GUARDS.values()]


def _exceeds_percent(rule: MirrorRule, total: int, base: int) -> bool:
    return total >= MINIMUM_DELETIONS and total * 100 > rule.max_delete_percent * base


def _is_removal(change: Change) -> bool:
    return change.action is Action.DEREGISTER_TABLE and change.needs_absent_origin and change.before is not None
