"""Apply: what a dead run left, then each plan's changes, with the leases of mirror and target held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from federator.apply import Application, Connections, Executor, Outcome
from federator.apply.index_journal import IndexJournal
from federator.connector import IdentityChanged
from federator.index import approvals, coverage, deployment, identities, journal, leases, plans
from federator.index.leases import Lease, hold
from federator.index.observed import Observed, publish_observed
from federator.model import parent, parse_key
from federator.planning.changes import Change
from federator.planning.declaring import rule_into
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan
from federator.planning.release import Release, release
from federator.planning.rule import MirrorRule
from federator.registry import capabilities
from federator.sync import lineage
from federator.sync.declaring import rule_of
from federator.sync.identities import opened_as_known
from federator.sync.mirroring import decision
from federator.sync.result import Step, counted, is_bad, tally
from federator.sync.work import LEASE_PATIENCE, Work


@dataclass(frozen=True)
class _Index:
    """``ApplicationIndex`` in SQL, for one run. ``lease`` is the target's."""

    work: Work
    lease: Lease

    def absences(self, source: str) -> Mapping[str, Sequence[float]]:
        with self.work.index.read() as connection:
            return coverage.absences(connection, source)

    def publish(self, source: str, seen: Sequence[Observed]) -> None:
        publish_observed(self.work.index, self.lease, source, self.work.run.id, seen)

    def mark_applied(self, plan: str) -> None:
        with self.work.index.write() as connection:
            plans.decide(connection, plan, "applied", self.work.run.actor)


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
            _application(work, rule) as application,
        ):
            work.result.outcomes += application.resume()
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

    with _application(work, rule, made.changes) as application:
        return application.apply(made, granted, report)


@contextmanager
def _application(work: Work, rule: MirrorRule, changes: Sequence[Change] = ()) -> Iterator[Application]:
    """What makes a mirror's changes, with its leases held.

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
        yield Application(executor, _Index(work, lease))
