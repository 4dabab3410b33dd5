"""Release: which changes of a plan may go now, and which wait for a person. Pure.

An approval is of a change with its evidence (``evidence``), not of a plan: a plan that is made again finds it, whatever else that plan
holds. It ends after ``KEPT`` seconds, and when the evidence is another: the target has changed, or the origin was seen again, since a
deregistration names the first miss that counts (``absent_since``).

Of a held plan the *guarded set* waits: the changes that its holds bind, less those that an approval lifts. What depends on a waiting
change waits with it: the other half of a rename, what takes the location that it would free, namespaces that only waiting declarations
need, and what lies in a namespace that waits to be made. The rest goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federator.model import ancestors, digest_of, parse_key, path_key
from federator.planning.changes import Action, Change
from federator.planning.holds import Hold, LiftedBy
from federator.planning.plan import Plan, new_location
from federator.planning.reasons import Reason

#: seconds for which an approval holds
KEPT = 7 * 86_400.0

#: the guards that objected when a change was approved, by the change's evidence
Approvals = Mapping[str, frozenset[str]]

# The state of a plan that was made before, and the one that it has by the approvals now: it keeps its row and its decision.
_KEEPS = {
    ("held", "held"), ("approved", "approved"), ("approved", "ready"), ("rejected", "held"), ("rejected", "ready"),
}  # fmt: skip
_REASONS = {Reason.APPROVAL_REQUIRED.value: Reason.APPROVAL_REQUIRED, Reason.OUTSIDE_WINDOW.value: Reason.OUTSIDE_WINDOW}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A change that does not go now. ``hold`` binds it, or a change that it depends on."""

    change: Change
    hold: Hold
    #: position of the change in the plan
    number: int = 0

    def to_json(self) -> dict[str, Any]:
        """The JSON form: ``change`` is the position of the change in the plan, from 0."""
        target = path_key((self.change.target_source, *parse_key(self.change.target_path)))
        about = {"change": self.number, "action": self.change.action.value, "target": target}
        return {**about, "reason": self.reason.value, "held_by": self.hold.guard, "detail": self.hold.detail}

    @property
    def reason(self) -> Reason:
        """``held_by_guard``, ``approval_required`` or ``outside_window``."""
        return _REASONS.get(self.hold.guard, Reason.HELD_BY_GUARD)


@dataclass(frozen=True, slots=True)
class Release:
    """A plan's changes, apart: those that may go now and those that wait, each in the plan's order."""

    changes: tuple[Change, ...]
    waiting: tuple[Waiting, ...]


def evidence(change: Change) -> str:
    """The digest of a change with everything that it was decided from."""
    return digest_of(change.to_json())


def guarded(plan: Plan) -> tuple[Change, ...]:
    """The guarded set: what the plan's holds bind, with the deletions that they count although their look failed."""
    return tuple(change for change in (*plan.changes, *plan.unproven) if any(hold.binds(change) for hold in plan.holds))


def guarded_digest(plan: Plan) -> str | None:
    """The guarded set's digest, over its evidence alone; None where nothing is bound."""
    found = sorted(map(evidence, guarded(plan)))
    return digest_of(found) if found else None


def release(plan: Plan, approvals: Approvals) -> Release:
    """The changes that may go now, by the approvals that hold, and those that wait."""
    waiting: dict[int, Hold] = {}
    for number, change in enumerate(plan.changes):
        hold = _hold(plan, change, approvals)
        if hold is not None:
            waiting[number] = hold
    if waiting:
        _spread(plan.changes, waiting)
    free = (change for number, change in enumerate(plan.changes) if number not in waiting)
    held = (Waiting(change, waiting[number], number) for number, change in enumerate(plan.changes) if number in waiting)
    return Release(tuple(free), tuple(held))


def state_of(plan: Plan, approvals: Approvals) -> str:
    """``held`` where something waits for a decision, ``approved`` where all of the guarded set is approved, else ``ready``."""
    bound = guarded(plan)
    if any(_hold(plan, change, approvals) is not None for change in bound):
        return "held"
    return "approved" if bound else "ready"


def keeps_state(before: str, state: str) -> bool:
    """Whether a plan that is made again keeps the state that it had, with its decision. ``state`` is by the approvals now."""
    return (before, state) in _KEEPS


def objecting_guards(plan: Plan) -> dict[str, frozenset[str]]:
    """What approving a plan approves: the guards that object to each change of its guarded set, by the change's evidence."""
    return {evidence(change): frozenset(hold.guard for hold in plan.holds if hold.binds(change)) for change in guarded(plan)}


def _hold(plan: Plan, change: Change, approvals: Approvals) -> Hold | None:
    """The first hold that keeps a change from going."""
    bound = [hold for hold in plan.holds if hold.binds(change)]
    guards = approvals.get(evidence(change)) if bound and approvals else None
    return next((hold for hold in bound if not _lifted(hold, guards)), None)


def _lifted(hold: Hold, guards: frozenset[str] | None) -> bool:
    if guards is None or hold.lifted_by is LiftedBy.CONFIRMATION:
        return False
    return hold.lifted_by is LiftedBy.APPROVAL or hold.guard in guards


def _spread(changes: tuple[Change, ...], waiting: dict[int, Hold]) -> None:
    """Adds what depends on what waits."""
    dependents = _dependents(changes)
    left = list(waiting)
    while left:
        number = left.pop()
        for other in dependents[number]:
            if other not in waiting:
                waiting[other] = waiting[number]
                left.append(other)
    # A namespace is made for what will be declared in it.
    needed: dict[str, list[int]] = defaultdict(list)
    for number, change in enumerate(changes):
        for above in _above(change) if change.action is Action.DECLARE_TABLE else ():
            needed[above].append(number)
    for number, change in enumerate(changes):
        inside = needed[change.target_path] if change.action is Action.CREATE_NAMESPACE else []
        if inside and all(other in waiting for other in inside):
            waiting.setdefault(number, waiting[inside[0]])


def _dependents(changes: tuple[Change, ...]) -> list[set[int]]:
    """For each change, those that cannot be made before it."""
    pairs: dict[str, list[int]] = defaultdict(list)
    takers: dict[str, list[int]] = defaultdict(list)
    made: dict[str, int] = {}
    dropped: dict[str, int] = {}
    for number, change in enumerate(changes):
        if change.pair is not None:
            pairs[change.pair].append(number)
        if (location := new_location(change)) is not None:
            takers[location].append(number)
        if change.action is Action.CREATE_NAMESPACE:
            made[change.target_path] = number
        if change.action is Action.DROP_NAMESPACE:
            dropped[change.target_path] = number
    found: list[set[int]] = [set() for _ in changes]
    for number, change in enumerate(changes):
        found[number].update(pairs.get(change.pair or "", ()), takers.get(_left(change) or "", ()))
        for above in _above(change):
            if above in made:
                found[made[above]].add(number)
            if above in dropped:
                found[number].add(dropped[above])
    return found


def _left(change: Change) -> str | None:
    """The canonical location that a change frees."""
    if change.before is None or not (change.action is Action.DEREGISTER_TABLE or change.moves_location):
        return None
    return change.before.canonical


def _above(change: Change) -> Iterable[str]:
    return (path_key(above) for above in ancestors(parse_key(change.target_path)) if above)
