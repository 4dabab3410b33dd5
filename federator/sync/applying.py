"""Apply: what a dead run left, then each plan's changes, with the leases of mirror and target held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from federator.apply import Executor, Outcome, State
from federator.index import journal, plans
from federator.index.leases import Lease, hold
from federator.index.observed import Observed, publish_observed
from federator.model import parse_key
from federator.planning.changes import Action
from federator.planning.plan import Plan
from federator.planning.rule import MirrorRule
from federator.registry import connector, open_catalog
from federator.sync.mirroring import decision
from federator.sync.result import Step, counted, is_bad, tally
from federator.sync.work import LEASE_PATIENCE, Work


def resume(work: Work, rules: Sequence[MirrorRule]) -> None:
    """Settles open intents before anything is planned: a declaration whose record was lost is in no ledger yet."""
    for rule in rules:
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
            decided = decision(work, made)
            if decided == "rejected":
                done("rejected", "a person rejected this plan")
                continue
            if made.held and decided != "approved":
                done("held", made.held[0])
                continue
            if made.held:
                work.result.approved.add(made.digest)
            outcomes = _apply(work, made)
            work.result.outcomes += outcomes
            done("failed" if any(map(is_bad, outcomes)) else "ok", tally([outcome.state.value for outcome in outcomes]))


def _apply(work: Work, made: Plan) -> list[Outcome]:
    rule = work.settings.rule(made.mirror)

    def report(outcome: Outcome) -> None:
        change = outcome.change
        subject = f"{change.action.value} {change.target_source}${change.target_path}"
        work.report(Step("change", subject, outcome.state.value, outcome.message or ""))

    with _executor(work, rule) as (executor, lease):
        left = _settle_left(work, rule, executor, lease)
        outcomes = [*left, *executor.apply(made.digest, made.changes, report)]
        _publish(work, lease, rule.target, outcomes)
    with work.index.write() as connection:
        plans.decide(connection, made.digest, "applied", work.run.actor)
    return outcomes


def _settle_left(work: Work, rule: MirrorRule, executor: Executor, lease: Lease) -> list[Outcome]:
    settled = executor.resume()
    _publish(work, lease, rule.target, settled)
    # A call that was made, or not made, is as good as any other; one that nobody can tell of is this run's failure too.
    return [outcome for outcome in settled if outcome.state in (State.NEEDS_ADOPTION, State.UNKNOWN)]


@contextmanager
def _executor(work: Work, rule: MirrorRule) -> Iterator[tuple[Executor, Lease]]:
    """What makes a mirror's changes, with its leases held; the lease is the target's."""
    keeps = connector(work.settings.source(rule.target).impl).capabilities.keeps_properties
    with (
        hold(work.index, f"mirror:{rule.name}", wait=LEASE_PATIENCE) as mirror_lease,
        hold(work.index, f"source:{rule.target}", wait=LEASE_PATIENCE) as lease,
        open_catalog(work.spec(rule.origin)) as origin,
        open_catalog(work.spec(rule.target)) as target,
    ):
        yield Executor(work.index, work.run, rule, origin, target, (mirror_lease, lease), keeps, work.stop), lease


def _publish(work: Work, lease: Lease, target: str, outcomes: Sequence[Outcome]) -> None:
    """What was seen of the target while writing becomes its next revision."""
    done = [outcome for outcome in outcomes if outcome.state is State.DONE]
    seen = [
        Observed(parse_key(o.change.target_path), o.record, o.observed_at, o.change.action is not Action.CREATE_NAMESPACE)
        for o in done
    ]
    publish_observed(work.index, lease, target, work.run.id, seen)
