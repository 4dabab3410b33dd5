"""The planner: what only a mirror's plan as a whole shows, over decided cells and a handful of facts. Pure.

``ask`` says which facts a set of candidates needs; ``plan`` makes the plan from them: direct looks, windows, second names, places
that do not exist, namespaces, renames, guards, order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from federator.model import canonical_location, parse_key
from federator.planning import windows
from federator.planning.cells import Candidates
from federator.planning.changes import Action, Change, Refusal, destructive
from federator.planning.decide import Knowledge
from federator.planning.evidence import covered, shows_nothing
from federator.planning.guards import GuardFacts, objections
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.identity import IDENTITY_CHANGED
from federator.planning.losses import Loss, loss_holds
from federator.planning.mapping import MirrorContext, at_origin
from federator.planning.namespaces import MadeNamespace, with_namespaces, without_empty
from federator.planning.plan import Plan, ordered, refuse_missing_locations, refuse_second_names
from federator.planning.reasons import Reason
from federator.planning.renames import paired
from federator.planning.rule import MirrorRule

_VALID = "valid"


@dataclass(frozen=True, slots=True)
class Look:
    """A direct look at an origin. ``found`` says what is there (empty: proven absent), ``error`` why the look failed."""

    found: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Questions:
    """What ``plan`` needs to know of these candidates: origins (text form) to look at directly, canonical locations to look up, and
    the target paths of new declarations and of missing copies. Of these, observe the paths in the ledger, which may have become
    something other than a Lance table, and those where a declaration met an obstacle before."""

    origins: tuple[str, ...]
    locations: tuple[str, ...]
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that ``plan`` weighs besides the candidates; more than was asked for does no harm.

    ``declared``: the target's paths by canonical location. ``states``: verification by canonical location. ``namespaces``: the
    target's, in text form. ``made``: those that the mirror made. ``looks``: direct looks by origin path. ``taken``: what a direct look
    found at target paths that no listing shows, because it is no Lance table. ``halves``: deregistrations that were the first half of
    a rename and whose second half was never made. ``now``: seconds since 1970, for ``windows``. ``unconfirmed``: why another
    catalog may answer for the origin or the target, which only ``sources confirm`` settles. ``losses``: revisions of the two that no
    plan of the mirror was approved or applied with.
    """

    guards: GuardFacts
    declared: Mapping[str, Sequence[str]] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    namespaces: Collection[str] = ()
    made: Sequence[MadeNamespace] = ()
    looks: Mapping[str, Look] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    halves: Sequence[Change] = ()
    now: float = 0.0
    unconfirmed: Sequence[str] = ()
    losses: Sequence[Loss] = ()
    origin_revision: int = 0
    target_revision: int = 0


def ask(context: MirrorContext, found: Candidates) -> Questions:
    """The facts that a plan over these candidates needs."""
    changes = found.changes
    gone = {change.origin_path for change in changes if _says_gone(change)}
    places = {change.after.canonical for change in changes if change.after is not None and change.after.canonical}
    if context.rule.only_valid:
        places |= {place for change in changes if (place := _place_at_origin(context.rule, change))}
    new = {change.target_path for change in changes if change.action is Action.DECLARE_TABLE}
    new |= {refusal.target_path for refusal in found.refusals if refusal.reason is Reason.MISSING_AT_TARGET}
    return Questions(tuple(sorted(gone)), tuple(sorted(places)), tuple(sorted(new)))


def plan(context: MirrorContext, knowledge: Knowledge, found: Candidates, facts: Facts) -> Plan:
    """The plan of one mirror. Raises KeyError for an origin that should have been looked at (``ask``) and was not."""
    rule = context.rule
    refusals = [_refuse_replaced(refusal, facts.taken) for refusal in found.refusals]

    def kept(changes: Sequence[Change], objection: Callable[[Change], tuple[Reason, str] | None]) -> list[Change]:
        objections = [(change, objection(change)) for change in changes]
        refusals.extend(_refusal(change, *why) for change, why in objections if why is not None)
        return [change for change, why in objections if why is None]

    changes = kept(found.changes, lambda change: _objection(facts.looks[change.origin_path]) if _says_gone(change) else None)
    changes = kept(changes, lambda change: _uncovered(change, knowledge))
    # Guards count what would go if this run had seen all.
    unproven = _unproven(found.changes, changes, facts.looks)
    changes = kept(changes, lambda change: _name_taken(change, facts.taken))
    changes = kept(changes, lambda change: _unverified(rule, change, facts.states))
    changes = kept(changes, lambda change: _outside(rule, change, facts.now))
    # A name frees its place in this plan, or in a later one.
    leaving = {change.target_path for change in changes if change.action is Action.DEREGISTER_TABLE}
    waiting = {refusal.target_path for refusal in refusals if refusal.reason in _WAITING}
    changes, seconds = refuse_second_names(changes, facts.declared, leaving, waiting)
    allowed = rule.declare_missing or not context.target.makes_location
    changes, missing = refuse_missing_locations(changes, facts.states, allowed=allowed)
    changes, homeless = with_namespaces(context, changes, facts.namespaces)
    changes = paired(changes, facts.halves, keeps_properties=context.target.keeps_properties)
    drops, kept_namespaces = without_empty(context, knowledge, facts.made, changes)
    drops = kept(drops, lambda change: _uncovered(change, knowledge))
    changes += kept(drops, lambda change: _outside(rule, change, facts.now))
    refusals += [*seconds, *missing, *homeless, *kept_namespaces]
    return Plan(
        mirror=rule.name,
        mirror_digest=rule.digest,
        origin_revision=facts.origin_revision,
        target_revision=facts.target_revision,
        changes=ordered(changes),
        refusals=tuple(sorted(refusals, key=lambda r: (r.target_path, r.origin_path, r.reason))),
        holds=tuple(_holds(rule, [*changes, *unproven], facts, knowledge)),
        selected=found.selected,
        unproven=tuple(unproven),
    )


_WAITING = (Reason.MISSES, Reason.NOT_COVERED, Reason.OUTSIDE_WINDOW)


def _objection(look: Look) -> tuple[Reason, str] | None:
    """What a direct look at an origin that is to be gone has against it: what stopped being a Lance table is missed by listings and
    still there.

    Apply looks once more just before the call; this look keeps a plan from announcing what would be skipped on every run.
    """
    if look.error:
        return Reason.NOT_COVERED, f"a direct look at the origin failed: {look.error}"
    return (Reason.STILL_THERE, look.found) if look.found else None


def _uncovered(change: Change, knowledge: Knowledge) -> tuple[Reason, str] | None:
    """Why the newest attempted crawl does not support a change: its origin's or its target's namespace was not listed completely, so
    that what the index has of it may be old."""
    for source, path, coverage in (
        (change.origin_source, change.origin_path, knowledge.origin),
        (change.target_source, change.target_path, knowledge.target),
    ):
        known = parse_key(path)
        inside = (*known, "") if change.action is Action.DROP_NAMESPACE else known
        if not covered(inside, coverage):
            return Reason.NOT_COVERED, f"the newest crawl of {source} did not list completely where {path} is"
    return None


def _unproven(found: Sequence[Change], kept: Sequence[Change], looks: Mapping[str, Look]) -> list[Change]:
    """The destructive changes that were not kept, though no look has found their origin and nothing takes their location over."""
    still = set(map(id, kept))
    there = {path for path, look in looks.items() if look.found}
    renamed = {change.after.canonical for change in found if change.action is Action.DECLARE_TABLE and change.after is not None}
    left = (change for change in found if id(change) not in still and destructive(change))
    return [
        change for change in left
        if not (_says_gone(change) and (change.origin_path in there or (change.before and change.before.canonical in renamed)))
    ]  # fmt: skip


def _name_taken(change: Change, taken: Mapping[str, str]) -> tuple[Reason, str] | None:
    what = taken.get(change.target_path) if change.action is Action.DECLARE_TABLE else None
    return (Reason.NAME_TAKEN, f"something that is no Lance table has the name: {what}") if what else None


def _refuse_replaced(refusal: Refusal, taken: Mapping[str, str]) -> Refusal:
    """A copy that a listing of Lance tables does not show was not removed if an object of another format has its name."""
    foreign = taken.get(refusal.target_path) if refusal.reason is Reason.MISSING_AT_TARGET else None
    if not foreign:
        return refusal
    return replace(refusal, reason=Reason.NAME_TAKEN, detail=f"the copy became something that is not a Lance table: {foreign}")


def _unverified(rule: MirrorRule, change: Change, states: Mapping[str, str]) -> tuple[Reason, str] | None:
    """``only_valid`` keeps new tables out; what was declared before stays and follows its origin."""
    if not rule.only_valid or change.action not in (Action.DECLARE_TABLE, Action.ADOPT):
        return None
    state = states.get(_place_at_origin(rule, change) or "", "not verified")
    return None if state == _VALID else (Reason.NOT_VALID, f"the dataset is {state.replace('_', ' ')}, and only_valid = true")


def _outside(rule: MirrorRule, change: Change, now: float) -> tuple[Reason, str] | None:
    # With every change bound to the windows, the plan is kept whole and held.
    late = windows.closed(rule, change, now) if rule.window_scope == "destructive" else None
    return (Reason.OUTSIDE_WINDOW, late) if late else None


def _holds(rule: MirrorRule, changes: Sequence[Change], facts: Facts, knowledge: Knowledge) -> list[Hold]:
    listed = {key: n for key, n in facts.guards.there_by_origin.items() if not shows_nothing(key, knowledge.origin)}
    holds = objections(rule, changes, replace(facts.guards, there_by_origin=listed))
    if changes:
        holds += [Hold(IDENTITY_CHANGED, text, Binds.ALL, LiftedBy.CONFIRMATION) for text in facts.unconfirmed]
        holds += loss_holds(facts.losses)
    if changes and rule.window_scope == "all" and not windows.is_open(rule, facts.now):
        holds.append(Hold(Reason.OUTSIDE_WINDOW.value, windows.told(rule), Binds.ALL, LiftedBy.ITS_APPROVAL))
    if changes and rule.approval == "required":
        holds.append(Hold(Reason.APPROVAL_REQUIRED.value, "the mirror wants a person's word for every plan", Binds.ALL))
    return holds


def _place_at_origin(rule: MirrorRule, change: Change) -> str | None:
    location = change.after.location if change.after is not None else None
    return canonical_location(at_origin(rule, location)) if location else None


def _refusal(change: Change, reason: Reason, detail: str) -> Refusal:
    return Refusal(reason, change.target_source, change.target_path, change.origin_path, detail)


def _says_gone(change: Change) -> bool:
    return change.precondition.get("origin") == "absent"
