"""Apply: what a dead run left, then each plan's changes, with the leases of mirror and target held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from federator.apply import Connections, Executor, Outcome, State
from federator.apply.index_journal import IndexJournal
from federator.apply.outcome import RESTORED
from federator.connector import IdentityChanged
from federator.index import approvals, coverage, deployment, identities, journal, leases, plans
from federator.index.leases import Lease, hold
from federator.index.observed import Observed, publish_observed
from federator.model import parent, parse_key
from federator.planning.changes import Action, Change
from federator.planning.declaring import rule_into
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan, still_proven
from federator.planning.reasons import Reason
from federator.planning.release import Release, release
from federator.planning.rule import MirrorRule
from federator.registry import capabilities
from federator.sync import lineage
from federator.sync.declaring import rule_of
from federator.sync.identities import opened_as_known
from federator.sync.mirroring import decision
from federator.sync.result import Step, counted, is_bad, tally
from federator.sync.work import LEASE_PATIENCE, Work

_OUTDATED = "what proved at the time of the plan that its origin is gone does not hold any more"


def resume(work: Work, rules: Sequence[MirrorRule]) -> None:
    """Settles open intents before anything is planned: a declaration whose record was lost is in no ledger yet."""
    persons = [rule_into(name) for name in work.settings.sources]
    for rule in (*rules, *persons):
        with work.index.read() as connection:
            left = len(journal.open_intents(connection, rule.name))
        if not left:
            continue
        with (
            work.recording(f"mirror {rule.name}"),
            work.step("resume", rule.name) as done,
            _executor(work, rule) as (executor, lease),
        ):
            work.result.outcomes += _settle_left(work, rule, executor, lease)
            done("ok", f"{counted(left, 'call')} without an outcome")


def apply(work: Work) -> None:
    """Carries out the run's plans, but for those that are held or were rejected."""
    for made in work.result.plans:
        if not made.changes:
            continue
        with work.recording(f"mirror {made.mirror}"), work.step("apply", made.mirror) as done:
            _check_confirmed(work, rule_of(work.settings, made.mirror))
            decided = decision(work, made)
            granted = _granted(work, made)
            if decided == "rejected" and not (made.holds and granted.changes):
                done("rejected", "a person rejected this plan")
                continue
            if not granted.changes:
                done("held", str(granted.waiting[0].hold))
                continue
            if made.holds and not granted.waiting:
                work.result.approved.add(made.digest)
            going = replace(made, changes=granted.changes)
            outcomes = lineage.told(work, going, partial(_apply, work, made, granted))
            work.result.outcomes += outcomes
            waits = f"; {counted(len(granted.waiting), 'change')} held" if granted.waiting else ""
            done("failed" if any(map(is_bad, outcomes)) else "ok", tally([outcome.state.value for outcome in outcomes]) + waits)


def _check_confirmed(work: Work, rule: MirrorRule) -> None:
    """Raise IdentityChanged while an identity of the mirror's origin or target waits for a person, whatever was approved."""
    with work.index.read() as connection:
        for name in (rule.origin, rule.target):
            problem = identities.unconfirmed(connection, name)
            if problem is not None:
                raise IdentityChanged(problem)


def _granted(work: Work, made: Plan) -> Release:
    """What of a plan may go now, and what waits."""
    with work.index.read() as connection:
        return release(made, approvals.current(connection, made.mirror))


def _apply(work: Work, made: Plan, granted: Release) -> list[Outcome]:
    rule = rule_of(work.settings, made.mirror)

    def report(outcome: Outcome) -> None:
        change = outcome.change
        subject = f"{change.action.value} {change.target_source}${change.target_path}"
        work.report(Step("change", subject, outcome.state.value, outcome.message or ""))

    with _executor(work, rule, made.changes) as (executor, lease):
        left = _settle_left(work, rule, executor, lease)
        with work.index.read() as connection:
            proven, unproven = still_proven(rule, granted.changes, coverage.absences(connection, rule.origin))
        outdated = [Outcome(change, State.SKIPPED, Reason.NOT_COVERED, _OUTDATED) for change in unproven]
        outcomes = [*left, *outdated, *executor.apply(made.digest, proven, report, any_time=_let_go_at_any_time(made))]
        _publish(work, lease, rule.target, outcomes)
    if not granted.waiting:
        with work.index.write() as connection:
            plans.decide(connection, made.digest, "applied", work.run.actor)
    return outcomes


def _let_go_at_any_time(made: Plan) -> bool:
    """A plan that is held for its windows: what goes of it was approved all the same."""
    return any(hold.guard == Reason.OUTSIDE_WINDOW for hold in made.holds)


def _settle_left(work: Work, rule: MirrorRule, executor: Executor, lease: Lease) -> list[Outcome]:
    settled = executor.resume()
    _publish(work, lease, rule.target, settled)
    # A call that was made, or not made, is as good as any other; one that nobody can tell of, or that was half made and can never be
    # made whole, is this run's failure too.
    lost = (State.NEEDS_ADOPTION, State.UNKNOWN)
    return [outcome for outcome in settled if outcome.state in lost or outcome.code == Reason.NAMESPACE_MISSING]


@contextmanager
def _executor(work: Work, rule: MirrorRule, changes: Sequence[Change] = ()) -> Iterator[tuple[Executor, Lease]]:
    """What makes a mirror's changes, with its leases held; the lease is the target's.

    Raises IdentityChanged unless every connection reaches a catalog that is known, also behind the namespaces of ``changes``.
    """
    deployment.check_original(work.index, work.settings.instance)
    target = work.settings.source(rule.target)
    origins = {parent(parse_key(change.origin_path)) for change in changes if change.origin_path}
    targets = {parent(parse_key(change.target_path)) for change in changes}
    with (
        hold(work.index, f"mirror:{rule.name}", wait=LEASE_PATIENCE) as mirror_lease,
        hold(work.index, f"source:{rule.target}", wait=LEASE_PATIENCE) as lease,
        ExitStack() as opened,
    ):
        first, *more = (
            Connections(
                opened.enter_context(opened_as_known(work.index, work.spec(rule.origin), origins)),
                opened.enter_context(opened_as_known(work.index, target.spec, targets)),
            )
            for _ in range(target.write_concurrency)
        )
        executor = Executor(
            IndexJournal(work.index, work.run, rule, (mirror_lease, lease)),
            rule,
            first.origin,
            first.target,
            keeps_properties=capabilities(target.spec).keeps_properties,
            stop=work.stop,
            deadline=leases.CALL_DEADLINE,
            more=more,
            writes_per_second=target.writes_per_second,
            max_failures=work.max_failures,
            stored=work.run.kind == "apply",
            drop_refusal=None if work.drops_confirmed else drop_refusal(capabilities(target.spec)),
        )
        yield executor, lease


def _publish(work: Work, lease: Lease, target: str, outcomes: Sequence[Outcome]) -> None:
    """What was seen of the target while writing becomes its next revision."""
    of_namespaces = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)
    seen = [
        Observed(parse_key(o.change.target_path), o.record, o.observed_at, o.change.action not in of_namespaces)
        for o in outcomes
        if o.state is State.DONE or o.code == RESTORED
    ]
    publish_observed(work.index, lease, target, work.run.id, seen)
