"""Apply: resolve what a dead run left open, then make each plan's changes. The leases of mirror and target are held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from federator.apply import Application, CatalogPair, Executor, Outcome
from federator.apply.source_identity import opened_as_known
from federator.apply.store_journal import StoreJournal
from federator.apply.table_locks import TableLocks
from federator.connector import IdentityChanged
from federator.model import parent_path, parse_path_key
from federator.planning.changes import Change
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan
from federator.planning.publication import ObservedObject
from federator.planning.release import Release, release_changes
from federator.planning.rule import MirrorRule
from federator.planning.user_declarations import build_user_rule
from federator.registry import source_capabilities
from federator.runtime.text import format_count
from federator.stages import lineage
from federator.stages.context import LEASE_WAIT_SECONDS, RunContext
from federator.stages.declare import rule_for_plan
from federator.stages.plan import plan_state
from federator.stages.result import ProgressEvent, format_state_counts, is_failure
from federator.store import approvals, deployment, identities, journal, leases, misses, plans, revisions
from federator.store.leases import Lease, acquire_lease
from federator.store.observations import publish_observations


@dataclass(frozen=True)
class _StoreApplicationIndex:
    """``ApplicationIndex`` in SQL, for one run. ``lease`` is the target's."""

    context: RunContext
    lease: Lease

    def list_misses(self, source: str) -> Mapping[str, Sequence[float]]:
        with self.context.index.read() as connection:
            return misses.list_misses(connection, source)

    def publish(self, source: str, observations: Sequence[ObservedObject]) -> None:
        settings = self.context.settings.source(source)
        # A declaration by a user may be the first that the index knows of its source.
        revisions.register_source(self.context.index, source, settings.impl, settings.digest)
        publish_observations(self.context.index, self.lease, source, self.context.run.id, observations)

    def mark_applied(self, digest: str) -> None:
        with self.context.index.write() as connection:
            plans.record_decision(connection, digest, "applied", self.context.run.actor)


def resolve_open_intents(context: RunContext, rules: Sequence[MirrorRule]) -> None:
    """Resolve open intents before plans are made: a declaration whose record was lost is not in the ledger yet."""
    user_rules = [build_user_rule(name) for name in context.settings.sources]
    for rule in (*rules, *user_rules):
        with context.index.read() as connection:
            open_count = len(journal.list_open_intents(connection, rule.name))
        if not open_count:
            continue
        with (
            context.record_errors(f"mirror {rule.name}"),
            context.stage("resume", rule.name) as finish,
            _application(context, rule) as application,
        ):
            context.result.outcomes += application.resume()
            finish("ok", f"{format_count(open_count, 'call')} without an outcome")


def apply_plans(context: RunContext) -> None:
    """Apply the run's plans, except those that are held or were rejected.

    In a clone of the index, a plan without changes fails as well: the first sync there says that no plan will be applied.
    """
    for plan in context.result.plans:
        if not plan.changes:
            with context.record_errors(f"mirror {plan.mirror}"):
                deployment.require_original(context.index, context.settings.instance)
            continue
        with context.record_errors(f"mirror {plan.mirror}"), context.stage("apply", plan.mirror, plan=plan.digest) as finish:
            _check_confirmed(context, rule_for_plan(context.settings, plan.mirror))
            state = plan_state(context, plan)
            release = _get_release(context, plan)
            if state == "rejected" and not (plan.holds and release.changes):
                finish("rejected", "this plan was rejected")
                continue
            if not release.changes:
                finish("held", str(release.waiting[0].hold))
                continue
            if plan.holds and not release.waiting:
                context.result.approved.add(plan.digest)
            released_plan = replace(plan, changes=release.changes)
            outcomes = lineage.apply_with_lineage(context, released_plan, partial(_apply_plan, context, plan, release))
            context.result.outcomes += outcomes
            held_note = f"; {format_count(len(release.waiting), 'change')} held" if release.waiting else ""
            finish(
                "failed" if any(map(is_failure, outcomes)) else "ok",
                format_state_counts([outcome.state.value for outcome in outcomes]) + held_note,
            )


def _check_confirmed(context: RunContext, rule: MirrorRule) -> None:
    """Raise IdentityChanged while an identity of the mirror's origin or target is unconfirmed, even if the plan was approved."""
    with context.index.read() as connection:
        for name in (rule.origin, rule.target):
            problem = identities.find_unconfirmed_problem(connection, name)
            if problem is not None:
                raise IdentityChanged(problem)


def _get_release(context: RunContext, plan: Plan) -> Release:
    """Return a plan's changes that may go now, and those that wait."""
    with context.index.read() as connection:
        return release_changes(plan, approvals.get_valid(connection, plan.mirror))


def _apply_plan(context: RunContext, plan: Plan, release: Release) -> list[Outcome]:
    rule = rule_for_plan(context.settings, plan.mirror)

    def report(outcome: Outcome) -> None:
        change = outcome.change
        subject = f"{change.action.value} {change.target_source}${change.target_path}"
        context.on_progress(ProgressEvent("change", subject, outcome.state.value, outcome.message or ""))

    with _application(context, rule, plan.changes) as application:
        return application.apply(plan, release, report)


@contextmanager
def _application(context: RunContext, rule: MirrorRule, changes: Sequence[Change] = ()) -> Iterator[Application]:
    """Open the application of a mirror's plan, with its leases held.

    Raise IdentityChanged unless every connection reaches a known catalog, also behind the namespaces of ``changes``.
    """
    deployment.require_original(context.index, context.settings.instance)
    target = context.settings.source(rule.target)
    capabilities = source_capabilities(target.spec)
    origins = {parent_path(parse_path_key(change.origin_path)) for change in changes if change.origin_path}
    targets = {parent_path(parse_path_key(change.target_path)) for change in changes}
    # A recreate leaves the name free for a moment, in which a direct write could declare it.
    needs_locks = capabilities.declarations_race_in is not None or rule.update_by_recreate
    with (
        acquire_lease(context.index, f"mirror:{rule.name}", wait=LEASE_WAIT_SECONDS) as mirror_lease,
        acquire_lease(context.index, f"source:{rule.target}", wait=LEASE_WAIT_SECONDS) as lease,
        ExitStack() as opened,
    ):
        # Concurrent writes need a pair of connections each.
        first_pair, *other_pairs = (
            CatalogPair(
                opened.enter_context(opened_as_known(context.index, context.source_spec(rule.origin), origins)),
                opened.enter_context(opened_as_known(context.index, target.spec, targets)),
            )
            for _ in range(target.write_concurrency)
        )
        executor = Executor(
            StoreJournal(context.index, context.run, rule, (mirror_lease, lease)),
            rule,
            first_pair.origin,
            first_pair.target,
            keeps_properties=capabilities.keeps_properties,
            stop=context.stop,
            deadline=leases.CALL_DEADLINE_SECONDS,
            extra_connections=other_pairs,
            writes_per_second=target.writes_per_second,
            max_failures=context.max_failures,
            stored=context.run.kind == "apply",
            drop_refusal=None if context.drops_confirmed else drop_refusal(capabilities),
            locks=TableLocks(context.index, context.settings) if needs_locks else None,
        )
        yield Application(executor, _StoreApplicationIndex(context, lease))
