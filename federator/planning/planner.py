"""The planner: build a mirror's whole plan from decided cells and a few facts. Pure.

``required_facts`` says which facts a set of candidates needs. ``build_plan`` builds the plan from them: direct observations, change
windows, duplicate locations, missing locations, namespaces, renames, guards and order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from federator.model import canonical_location, parse_path_key
from federator.planning import change_windows
from federator.planning.cells import Candidates
from federator.planning.changes import Action, Change, Refusal, is_destructive, refuse_change
from federator.planning.decision import CrawlEvidence
from federator.planning.evidence import is_covered, is_listed_empty
from federator.planning.guards import GuardFacts, GuardResult, measure_guards
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.identity import IDENTITY_CHANGED, confirm_command
from federator.planning.losses import Loss, loss_holds
from federator.planning.mapping import MirrorContext, relocate_to_origin
from federator.planning.namespaces import OwnedNamespace, add_missing_namespaces, drop_empty_namespaces
from federator.planning.plan import Plan, sort_changes
from federator.planning.plan_filters import refuse_duplicate_locations, refuse_missing_locations
from federator.planning.reasons import Reason
from federator.planning.renames import pair_renames
from federator.planning.rule import MirrorRule

_VALID = "valid"


@dataclass(frozen=True, slots=True)
class OriginObservation:
    """A direct observation of an origin. ``existing`` describes the object (empty: proven absent), ``error`` a failed observation."""

    existing: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class FactRequest:
    """The facts that ``build_plan`` needs of its candidates.

    ``origins`` (path keys) are to be observed directly, and ``locations`` (canonical) to be looked up. ``targets`` are the target
    paths of new declarations and of missing copies. Of these, observe the paths in the ledger, which may have become foreign
    objects, and the paths where an earlier declaration found another object.
    """

    origins: tuple[str, ...]
    locations: tuple[str, ...]
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """Everything that ``build_plan`` evaluates besides the candidates. Additional facts do no harm.

    ``paths_by_location`` are the target's paths by canonical location, and ``verification_states`` are by canonical location.
    ``namespaces`` are the target's path keys, and ``owned_namespaces`` those that the mirror created. ``origin_observations`` are
    direct observations by origin path. ``foreign_targets`` describe foreign objects at target paths, which no listing shows.
    ``pending_renames`` are deregistrations of renames whose declaration was never made. ``now`` is in seconds since 1970, for
    ``windows``. ``refused_recreates`` say, by target path, why a recreate would be refused again. ``unconfirmed`` says, by source,
    why another catalog may respond for the origin or the target; only ``sources confirm`` resolves that. ``losses`` are revisions of
    both sources for which no plan of the mirror was approved or applied.
    """

    guards: GuardFacts
    paths_by_location: Mapping[str, Sequence[str]] = field(default_factory=dict)
    verification_states: Mapping[str, str] = field(default_factory=dict)
    namespaces: Collection[str] = ()
    owned_namespaces: Sequence[OwnedNamespace] = ()
    origin_observations: Mapping[str, OriginObservation] = field(default_factory=dict)
    foreign_targets: Mapping[str, str] = field(default_factory=dict)
    refused_recreates: Mapping[str, str] = field(default_factory=dict)
    pending_renames: Sequence[Change] = ()
    now: float = 0.0
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    losses: Sequence[Loss] = ()
    origin_revision: int = 0
    target_revision: int = 0


def required_facts(context: MirrorContext, candidates: Candidates) -> FactRequest:
    """Return the facts that a plan over these candidates needs."""
    changes = candidates.changes
    absent_origins = {change.origin_path for change in changes if change.needs_absent_origin}
    locations = {change.after.canonical for change in changes if change.after is not None and change.after.canonical}
    if context.rule.only_valid:
        locations |= {location for change in changes if (location := _origin_location(context.rule, change))}
    new = {change.target_path for change in changes if change.action is Action.DECLARE_TABLE}
    new |= {refusal.target_path for refusal in candidates.refusals if refusal.reason is Reason.MISSING_AT_TARGET}
    return FactRequest(tuple(sorted(absent_origins)), tuple(sorted(locations)), tuple(sorted(new)))


def build_plan(context: MirrorContext, evidence: CrawlEvidence, candidates: Candidates, facts: PlanFacts) -> Plan:
    """Build the plan of one mirror. Raise KeyError for an origin of ``required_facts`` without an observation."""
    rule = context.rule
    refusals = [_refuse_replaced(refusal, facts.foreign_targets) for refusal in candidates.refusals]

    def filter_changes(changes: Sequence[Change], find_refusal: Callable[[Change], tuple[Reason, str] | None]) -> list[Change]:
        decisions = [(change, find_refusal(change)) for change in changes]
        refusals.extend(refuse_change(change, *refusal) for change, refusal in decisions if refusal is not None)
        return [change for change, refusal in decisions if refusal is None]

    changes = filter_changes(
        candidates.changes,
        lambda change: (
            _refuse_existing_origin(facts.origin_observations[change.origin_path]) if change.needs_absent_origin else None
        ),
    )
    changes = filter_changes(changes, lambda change: _uncovered(change, evidence))
    # Guards count the changes that this run would make if all its observations had succeeded.
    unproven = _unproven(candidates.changes, changes, facts.origin_observations)
    changes = filter_changes(changes, lambda change: _refuse_taken_name(change, facts.foreign_targets))
    changes = filter_changes(changes, lambda change: _refuse_recreate(change, facts.refused_recreates))
    changes = filter_changes(changes, lambda change: _refuse_unverified(rule, change, facts.verification_states))
    changes = filter_changes(changes, lambda change: _refuse_outside_window(rule, change, facts.now))
    # A deregistration frees its location in this plan, or in a later one.
    leaving = {change.target_path for change in changes if change.action is Action.DEREGISTER_TABLE}
    waiting = {refusal.target_path for refusal in refusals if refusal.reason in _TEMPORARY_REASONS}
    changes, duplicates = refuse_duplicate_locations(changes, facts.paths_by_location, leaving, waiting)
    allowed = rule.declare_missing or not context.target.makes_location
    changes, missing = refuse_missing_locations(changes, facts.verification_states, allowed=allowed)
    changes, without_namespace = add_missing_namespaces(context, changes, facts.namespaces)
    changes = pair_renames(changes, facts.pending_renames, keeps_properties=context.target.keeps_properties)
    drops, refused_drops = drop_empty_namespaces(context, evidence, facts.owned_namespaces, changes)
    drops = filter_changes(drops, lambda change: _uncovered(change, evidence))
    changes += filter_changes(drops, lambda change: _refuse_outside_window(rule, change, facts.now))
    refusals += [*duplicates, *missing, *without_namespace, *refused_drops]
    results = _measure(rule, [*changes, *unproven], facts, evidence)
    return Plan(
        mirror=rule.name,
        mirror_digest=rule.digest,
        origin_revision=facts.origin_revision,
        target_revision=facts.target_revision,
        changes=sort_changes(changes),
        refusals=tuple(sorted(refusals, key=lambda r: (r.target_path, r.origin_path, r.reason))),
        holds=tuple(_holds(rule, [*changes, *unproven], facts, results)),
        selected=candidates.selected_count,
        unproven=tuple(unproven),
        guards=tuple(measurement for measurement, _ in results),
    )


_TEMPORARY_REASONS = (Reason.MISSES, Reason.NOT_COVERED, Reason.OUTSIDE_WINDOW)


def _refuse_existing_origin(observation: OriginObservation) -> tuple[Reason, str] | None:
    """Return the refusal by a direct observation of an origin that should be absent.

    An object that is no longer a Lance table is missing in listings but still exists. Apply observes once more before the call; the
    observation here avoids a plan whose change would be skipped on every run.
    """
    if observation.error:
        return Reason.NOT_COVERED, f"a direct observation of the origin failed: {observation.error}"
    return (Reason.STILL_THERE, observation.existing) if observation.existing else None


def _uncovered(change: Change, evidence: CrawlEvidence) -> tuple[Reason, str] | None:
    """Return the refusal of a change that the newest attempted crawl does not support.

    The namespace of its origin or its target was not listed completely, so the index may be outdated there.
    """
    for source, path, coverage in (
        (change.origin_source, change.origin_path, evidence.origin),
        (change.target_source, change.target_path, evidence.target),
    ):
        known = parse_path_key(path)
        inside = (*known, "") if change.action is Action.DROP_NAMESPACE else known
        if not is_covered(inside, coverage):
            return Reason.NOT_COVERED, f"the newest crawl of {source} did not list the namespace of {path} completely"
    return None


def _unproven(
    candidates: Sequence[Change], planned_changes: Sequence[Change], observations: Mapping[str, OriginObservation]
) -> list[Change]:
    """Return the destructive changes that were refused, although no observation found their origin and no declaration takes over
    their location."""
    planned_ids = set(map(id, planned_changes))
    existing = {path for path, observation in observations.items() if observation.existing}
    declared_locations = {
        change.after.canonical for change in candidates if change.action is Action.DECLARE_TABLE and change.after is not None
    }
    refused = (change for change in candidates if id(change) not in planned_ids and is_destructive(change))
    return [
        change for change in refused
        if not (
            change.needs_absent_origin
            and (change.origin_path in existing or (change.before and change.before.canonical in declared_locations))
        )
    ]  # fmt: skip


def _refuse_taken_name(change: Change, foreign_targets: Mapping[str, str]) -> tuple[Reason, str] | None:
    description = foreign_targets.get(change.target_path) if change.action is Action.DECLARE_TABLE else None
    return (Reason.NAME_TAKEN, f"an object that is not a Lance table has the name: {description}") if description else None


def _refuse_recreate(change: Change, refused_recreates: Mapping[str, str]) -> tuple[Reason, str] | None:
    reason = refused_recreates.get(change.target_path) if change.action is Action.RECREATE_TABLE else None
    return (Reason.DRIFTED, f"{change.reason}; a recreate was refused: {reason}") if reason else None


def _refuse_replaced(refusal: Refusal, foreign_targets: Mapping[str, str]) -> Refusal:
    """Correct the reason of a missing copy that is now an object of another format: it was replaced, not removed."""
    foreign = foreign_targets.get(refusal.target_path) if refusal.reason is Reason.MISSING_AT_TARGET else None
    if not foreign:
        return refusal
    return replace(refusal, reason=Reason.NAME_TAKEN, detail=f"the copy became something that is not a Lance table: {foreign}")


def _refuse_unverified(rule: MirrorRule, change: Change, states: Mapping[str, str]) -> tuple[Reason, str] | None:
    """Apply ``only_valid``: it refuses new tables only. Earlier declarations stay and follow their origin."""
    if not rule.only_valid or change.action not in (Action.DECLARE_TABLE, Action.ADOPT):
        return None
    state = states.get(_origin_location(rule, change) or "", "not verified")
    return None if state == _VALID else (Reason.NOT_VALID, f"the dataset is {state.replace('_', ' ')}, and only_valid = true")


def _refuse_outside_window(rule: MirrorRule, change: Change, now: float) -> tuple[Reason, str] | None:
    # If every change is bound to the change windows, the plan is kept complete and held.
    reason = change_windows.closed_reason(rule, change, now) if rule.window_scope == "destructive" else None
    return (Reason.OUTSIDE_WINDOW, reason) if reason else None


def _measure(rule: MirrorRule, changes: Sequence[Change], facts: PlanFacts, evidence: CrawlEvidence) -> list[GuardResult]:
    listed = {
        key: count
        for key, count in facts.guards.existing_by_origin_namespace.items()
        if not is_listed_empty(key, evidence.origin)
    }
    return measure_guards(rule, changes, replace(facts.guards, existing_by_origin_namespace=listed))


def _holds(rule: MirrorRule, changes: Sequence[Change], facts: PlanFacts, results: Sequence[GuardResult]) -> list[Hold]:
    holds = [hold for _, hold in results if hold is not None]
    if changes:
        holds += [
            Hold(IDENTITY_CHANGED, text, Binds.ALL, LiftedBy.CONFIRMATION, confirm_command(source))
            for source, text in facts.unconfirmed.items()
        ]
        holds += loss_holds(facts.losses)
    if changes and rule.window_scope == "all" and not change_windows.is_window_open(rule, facts.now):
        holds.append(Hold(Reason.OUTSIDE_WINDOW.value, change_windows.describe_windows(rule), Binds.ALL, LiftedBy.ITS_APPROVAL))
    if changes and rule.approval == "required":
        holds.append(
            Hold(
                Reason.APPROVAL_REQUIRED.value, 'approval = "required": every plan of this mirror needs an approval', Binds.ALL
            )
        )
    return holds


def _origin_location(rule: MirrorRule, change: Change) -> str | None:
    location = change.after.location if change.after is not None else None
    return canonical_location(relocate_to_origin(rule, location)) if location else None
