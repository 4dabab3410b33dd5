"""Release: split a plan into changes that may go now and changes that wait for a decision. Pure.

An approval is of a change with its evidence (``change_evidence``), not of a plan. A new plan with the same change finds the
approval, whatever else that plan contains. An approval ends after ``APPROVAL_SECONDS``, and when the evidence changes: the target
has changed, or the origin was seen again. A deregistration names the first miss that counts (``absent_since``), so a reappearance
of the origin changes it.

Of a held plan the *guarded set* waits: the changes that its holds bind, except those that an approval lifts. Every change that
depends on a waiting change also waits: the other change of a rename, a declaration of the location that would become free, a
namespace that only waiting declarations need, and all objects in a namespace that waits to be created. The other changes go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from federator.connector import StateError
from federator.model import digest_of, iter_ancestors, object_id, parse_path_key, path_key
from federator.planning.changes import Action, Change
from federator.planning.holds import Hold, LiftedBy
from federator.planning.plan import Plan, claimed_location
from federator.planning.reasons import Reason

#: how long an approval is valid, in seconds
APPROVAL_SECONDS = 7 * 86_400.0

#: the guards that held a change when it was approved, by the change's evidence
Approvals = Mapping[str, frozenset[str]]


class Approval(NamedTuple):
    """The approval of one change: its time, and the guards that held the change then."""

    at: float
    guards: frozenset[str]


# Pairs of a stored plan's state and its state by the current approvals, for which the plan keeps its row and its decision.
_KEEPS = {
    ("held", "held"), ("approved", "approved"), ("approved", "ready"), ("rejected", "held"), ("rejected", "ready"),
}  # fmt: skip
_REASONS = {Reason.APPROVAL_REQUIRED.value: Reason.APPROVAL_REQUIRED, Reason.OUTSIDE_WINDOW.value: Reason.OUTSIDE_WINDOW}


@dataclass(frozen=True, slots=True)
class WaitingChange:
    """A change that waits. ``hold`` binds it, or a change that it depends on."""

    change: Change
    hold: Hold
    #: position of the change in the plan
    number: int = 0

    def to_json(self) -> dict[str, Any]:
        """The JSON form: ``change`` is the position of the change in the plan, from 0."""
        target = object_id(self.change.target_source, self.change.target_path)
        subject = {"change": self.number, "action": self.change.action.value, "target": target}
        return {**subject, "reason": self.reason.value, "held_by": self.hold.guard, "detail": self.hold.detail}

    @property
    def reason(self) -> Reason:
        """``held_by_guard``, ``approval_required`` or ``outside_window``."""
        return _REASONS.get(self.hold.guard, Reason.HELD_BY_GUARD)


@dataclass(frozen=True, slots=True)
class Release:
    """A plan's changes, split into those that may go now and those that wait. Both keep the plan's order."""

    changes: tuple[Change, ...]
    waiting: tuple[WaitingChange, ...]


def change_evidence(change: Change) -> str:
    """Return the digest of a change with everything that it was decided from."""
    return digest_of(change.to_json())


def list_guarded_changes(plan: Plan) -> tuple[Change, ...]:
    """Return the guarded set: the changes that the plan's holds bind, including counted deletions whose observation failed."""
    return tuple(change for change in (*plan.changes, *plan.unproven) if any(hold.binds(change) for hold in plan.holds))


def guarded_digest(plan: Plan) -> str | None:
    """Return the digest of the guarded set's evidence. None if no change is bound."""
    evidence = sorted(map(change_evidence, list_guarded_changes(plan)))
    return digest_of(evidence) if evidence else None


def release_changes(plan: Plan, approvals: Approvals) -> Release:
    """Split a plan by the valid approvals into changes that may go now and changes that wait."""
    waiting: dict[int, Hold] = {}
    for number, change in enumerate(plan.changes):
        hold = _find_hold(plan, change, approvals)
        if hold is not None:
            waiting[number] = hold
    if waiting:
        _spread_holds(plan.changes, waiting)
    free = (change for number, change in enumerate(plan.changes) if number not in waiting)
    held = (WaitingChange(change, waiting[number], number) for number, change in enumerate(plan.changes) if number in waiting)
    return Release(tuple(free), tuple(held))


def release_state(plan: Plan, approvals: Approvals) -> str:
    """Return ``held`` if a change waits for a decision, ``approved`` if the whole guarded set is approved, else ``ready``."""
    bound = list_guarded_changes(plan)
    if any(_find_hold(plan, change, approvals) is not None for change in bound):
        return "held"
    return "approved" if bound else "ready"


def keeps_state(before: str, state: str) -> bool:
    """Tell whether a plan that is built again keeps its state and its decision. ``state`` follows from the current approvals."""
    return (before, state) in _KEEPS


def objecting_guards(plan: Plan) -> dict[str, frozenset[str]]:
    """Return what approving a plan approves: the guards that hold each change of its guarded set, by the change's evidence."""
    return {
        change_evidence(change): frozenset(hold.guard for hold in plan.holds if hold.binds(change))
        for change in list_guarded_changes(plan)
    }


def approve(plan: Plan, approvals: Approvals) -> Approvals:
    """Return the approvals of a plan's guarded set after the plan is approved.

    An earlier approval of the same change keeps the guards that it was given for. Raise StateError if only another command can lift
    a hold.
    """
    for hold in plan.holds:
        if hold.lifted_by is LiftedBy.CONFIRMATION:
            raise StateError(f"the plan {plan.digest[:12]} cannot be approved: {hold}", hint=plan.release_command)
    return {key: guards | approvals.get(key, frozenset()) for key, guards in objecting_guards(plan).items()}


def valid_approvals(approvals: Mapping[str, Approval], now: float) -> Approvals:
    """Return the approvals that are valid at a time."""
    return {key: approval.guards for key, approval in approvals.items() if approval.at > now - APPROVAL_SECONDS}


def _find_hold(plan: Plan, change: Change, approvals: Approvals) -> Hold | None:
    """Return the first hold that keeps a change from going."""
    bound = [hold for hold in plan.holds if hold.binds(change)]
    guards = approvals.get(change_evidence(change)) if bound and approvals else None
    return next((hold for hold in bound if not _is_lifted(hold, guards)), None)


def _is_lifted(hold: Hold, guards: frozenset[str] | None) -> bool:
    if guards is None or hold.lifted_by is LiftedBy.CONFIRMATION:
        return False
    return hold.lifted_by is LiftedBy.APPROVAL or hold.guard in guards


def _spread_holds(changes: tuple[Change, ...], waiting: dict[int, Hold]) -> None:
    """Add the changes that depend on waiting changes."""
    dependents = _list_dependents(changes)
    unvisited = list(waiting)
    while unvisited:
        number = unvisited.pop()
        for dependent in dependents[number]:
            if dependent not in waiting:
                waiting[dependent] = waiting[number]
                unvisited.append(dependent)
    # A namespace is created only for the declarations in it.
    needed: dict[str, list[int]] = defaultdict(list)
    for number, change in enumerate(changes):
        for above in _iter_parents(change) if change.action is Action.DECLARE_TABLE else ():
            needed[above].append(number)
    for number, change in enumerate(changes):
        inside = needed[change.target_path] if change.action is Action.CREATE_NAMESPACE else []
        if inside and all(dependent in waiting for dependent in inside):
            waiting.setdefault(number, waiting[inside[0]])


def _list_dependents(changes: tuple[Change, ...]) -> list[set[int]]:
    """Return for each change the changes that cannot be made before it."""
    pairs: dict[str, list[int]] = defaultdict(list)
    claims: dict[str, list[int]] = defaultdict(list)
    created: dict[str, int] = {}
    dropped: dict[str, int] = {}
    for number, change in enumerate(changes):
        if change.pair is not None:
            pairs[change.pair].append(number)
        if (location := claimed_location(change)) is not None:
            claims[location].append(number)
        if change.action is Action.CREATE_NAMESPACE:
            created[change.target_path] = number
        if change.action is Action.DROP_NAMESPACE:
            dropped[change.target_path] = number
    dependents: list[set[int]] = [set() for _ in changes]
    for number, change in enumerate(changes):
        dependents[number].update(pairs.get(change.pair or "", ()), claims.get(_freed_location(change) or "", ()))
        for above in _iter_parents(change):
            if above in created:
                dependents[created[above]].add(number)
            if above in dropped:
                dependents[number].add(dropped[above])
    return dependents


def _freed_location(change: Change) -> str | None:
    """Return the canonical location that a change frees."""
    if change.before is None or not (change.action is Action.DEREGISTER_TABLE or change.moves_location):
        return None
    return change.before.canonical


def _iter_parents(change: Change) -> Iterable[str]:
    return (path_key(above) for above in iter_ancestors(parse_path_key(change.target_path)) if above)
