"""Plan: decide each mirror's changes on Spark, then check the plan as a whole."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace

from federator.apply.source_identity import opened_as_known
from federator.connector import Catalog, CatalogError, Internal
from federator.model import ROOT, Coverage, Path, canonical_json, path_key
from federator.model.audit_kinds import AuditKind
from federator.model.notices import Notice, NoticeEvent
from federator.planning import crawls, facts, planner
from federator.planning.decision import CrawlEvidence
from federator.planning.mapping import MirrorContext
from federator.planning.plan import Plan
from federator.planning.release import guarded_digest, release_state
from federator.planning.rule import MirrorRule
from federator.planning.user_declarations import user_plan_target
from federator.registry import open_catalog, source_capabilities
from federator.runtime.text import format_count
from federator.stages.context import RunContext
from federator.store import Connection, approvals, audit_log, coverage, deployment, journal, misses, plans, records
from federator.store.plan_facts import PlanFacts

# For this long (seconds), a name that a server refused is not tried again: the server may be upgraded or configured otherwise.
_REFUSED_SECONDS = 30 * 86_400.0


def plan_mirrors(context: RunContext, rules: Sequence[MirrorRule]) -> None:
    """Plan each mirror. A mirror that cannot be planned does not stop the others."""
    from federator.pipeline.spark_errors import translate_spark_errors

    for rule in rules:
        with (
            context.record_errors(f"mirror {rule.name}"),
            context.stage("plan", rule.name) as finish,
            translate_spark_errors(f"plan {rule.name}"),
        ):
            deployment.check_instance_id(context.index, context.settings.instance)
            plan = _plan_mirror(context, rule)
            context.result.plans.append(plan)
            if plan.held and plan_state(context, plan) == "approved":
                context.result.approved.add(plan.digest)
            state = "held" if plan in context.result.held_plans else "ok"
            finish(state, f"{format_count(len(plan.changes), 'change')}, {format_count(len(plan.refusals), 'refusal')}")


def plan_state(context: RunContext, plan: Plan) -> str:
    """Return the state of a plan (``PlanRecord.state``). Raise UnknownId if the plan is not in this index."""
    with context.index.read() as connection:
        return plans.get_plan(connection, plan.digest).state


def _plan_mirror(context: RunContext, rule: MirrorRule) -> Plan:
    from federator.pipeline.candidates import decide_candidates

    mirror = replace(mirror_context(context, rule), drops_confirmed=context.drops_confirmed)
    with context.index.read() as connection:
        revisions = {name: records.published_revision(connection, name) for name in (rule.origin, rule.target)}
        evidence = CrawlEvidence(
            origin=_coverage_as_read(context, connection, rule.origin, revisions[rule.origin]),
            target=_coverage_as_read(context, connection, rule.target, revisions[rule.target]),
            misses=misses.list_misses(connection, rule.origin),
        )
    candidates = decide_candidates(
        context.spark_session(), context.index_reader(), mirror, evidence,
        origin_revision=revisions[rule.origin], target_revision=revisions[rule.target],
    )  # fmt: skip
    plan_facts = facts.collect_facts(
        mirror, source_capabilities(context.source_spec(rule.origin)), candidates, _Sources(context, rule),
        now=time.time(), origin_revision=revisions[rule.origin], target_revision=revisions[rule.target],
    )  # fmt: skip
    plan = planner.build_plan(mirror, evidence, candidates, plan_facts)
    save_plan(context, plan)
    return plan


def _coverage_as_read(context: RunContext, connection: Connection, source: str, revision: int) -> dict[str, Coverage]:
    """Return a source's coverage, with carried listings as when they were read. If this run could not read the source, it proves
    nothing.

    Carried listings are safe here: absence is proven by misses, which count only listings that were read. Also, each change is
    preceded by an observation of its object.
    """
    if error := context.result.errors.get(source):
        return {path_key(ROOT): crawls.unread_coverage(source, Internal.code, error)}
    return {
        key: namespace_coverage.as_read()
        for key, namespace_coverage in coverage.read_coverage(connection, source, revision).items()
    }


@dataclass(frozen=True)
class _Sources:
    """``FactSources`` of one mirror: the index in SQL, and the configured catalogs."""

    context: RunContext
    rule: MirrorRule

    @contextmanager
    def read(self) -> Iterator[PlanFacts]:
        with self.context.index.read() as connection:
            yield PlanFacts(connection, self.rule.origin)

    def open_origin(self, namespaces: Collection[Path]) -> AbstractContextManager[Catalog]:
        return opened_as_known(self.context.index, self.context.source_spec(self.rule.origin), namespaces)

    def open_target(self) -> AbstractContextManager[Catalog]:
        return open_catalog(self.context.source_spec(self.rule.target))


def mirror_context(context: RunContext, rule: MirrorRule) -> MirrorContext:
    """Build the context of a mirror from its catalogs' capabilities, the names that the target refused, and its path prefix."""
    origin, target = (source_capabilities(context.source_spec(name)) for name in (rule.origin, rule.target))
    with context.index.read() as connection:
        target = target.restricted_by(*journal.list_refused_names(connection, rule.target, time.time() - _REFUSED_SECONDS))
    # The shortest path, with names that no catalog has: the target completes it with its prefix.
    shortest = ("-",) * (target.min_depth + 1)
    with open_catalog(context.source_spec(rule.target)) as catalog:
        target_prefix = catalog.canonical_path(shortest)[: -len(shortest)]
        # A target that does not respond is no obstacle for a plan: apply finds out.
        with suppress(CatalogError):
            obstacle = catalog.find_declaration_obstacle()
            target = replace(target, locations=replace(target.locations, obstacle=obstacle))
    return MirrorContext.from_rule(
        rule, context.settings.instance.id or "", origin, target, target_prefix, context.settings.mirror_rules.values()
    )


def save_plan(context: RunContext, plan: Plan) -> None:
    """Store a plan in the index, and record it in the audit log."""
    counts = {"changes": len(plan.changes), "refusals": len(plan.refusals), "held": list(plan.held), "plan": plan.digest}
    with context.index.write() as connection:
        body = canonical_json(plan.to_json())
        state = release_state(plan, approvals.get_valid(connection, plan.mirror))
        notice = _held_notice(context, plan) if state == "held" else None
        plans.save_plan(
            connection, digest=plan.digest, mirror=plan.mirror, run_id=context.run.id, state=state, body=body,
            guarded=guarded_digest(plan), notice=notice,
        )  # fmt: skip
        if user_plan_target(plan.mirror) is None:
            plans.outdate_held_plans(connection, plan.digest, plan.mirror, plan.mirror_digest)
        audit_log.append_event(
            connection, AuditKind.PLAN, actor=context.run.actor, run_id=context.run.id, subject=plan.mirror, detail=counts
        )


def _held_notice(context: RunContext, plan: Plan) -> Notice:
    message = "; ".join(plan.held)
    if not any(hold.command for hold in plan.holds):
        message = f"{message}. {plan.release_command}, or reject"
    return Notice(NoticeEvent.PLAN_HELD, f"plan {plan.digest[:12]}", message, mirror=plan.mirror, run_id=context.run.id)
