"""Plan: what each mirror would change, decided on Spark and looked at once more as a whole."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from federator.connector import Catalog, Internal
from federator.index import Connection, approvals, audit_log, coverage, deployment, ledger, plans, records
from federator.index.plan_facts import PlanFacts
from federator.model import ROOT, Coverage, Path, canonical_json, path_key
from federator.model.notices import Event, Notice
from federator.planning import crawls, facts, planner
from federator.planning.cells import LedgerRow
from federator.planning.decide import Knowledge
from federator.planning.declaring import target_of
from federator.planning.mapping import MirrorContext
from federator.planning.plan import Plan
from federator.planning.release import guarded_digest, state_of
from federator.planning.rule import MirrorRule
from federator.registry import capabilities, open_catalog
from federator.sync.identities import opened_as_known
from federator.sync.result import counted
from federator.sync.work import Work


def plan(work: Work, rules: Sequence[MirrorRule]) -> None:
    """Plans each mirror; a mirror that cannot be planned does not stop the others."""
    from federator.pipeline.session import engine_errors

    for rule in rules:
        with work.recording(f"mirror {rule.name}"), work.step("plan", rule.name) as done, engine_errors(f"plan {rule.name}"):
            deployment.check_instance_id(work.index, work.settings.instance)
            made = _plan(work, rule)
            work.result.plans.append(made)
            if made.held and decision(work, made) == "approved":
                work.result.approved.add(made.digest)
            state = "held" if made in work.result.waiting else "ok"
            done(state, f"{counted(len(made.changes), 'change')}, {counted(len(made.refusals), 'refusal')}")


def decision(work: Work, made: Plan) -> str:
    """What became of a plan: ready, held, approved, rejected, applied. Raises StateError for one that this index did not make."""
    with work.index.read() as connection:
        return str(plans.get(connection, made.digest)["state"])


def _plan(work: Work, rule: MirrorRule) -> Plan:
    from federator.pipeline.candidates import candidates

    context = replace(context_of(work, rule), drops_confirmed=work.drops_confirmed)
    with work.index.read() as connection:
        at = {name: records.published(connection, name) for name in (rule.origin, rule.target)}
        # What the mirror declared in another target, before it was pointed at this one, stays there and says nothing of this one.
        entries = [LedgerRow.of(e) for e in ledger.with_origins(connection, rule.name) if e["target_source"] == rule.target]
        knowledge = Knowledge(
            origin=_as_read(work, connection, rule.origin, at[rule.origin]),
            target=_as_read(work, connection, rule.target, at[rule.target]),
            misses=coverage.absences(connection, rule.origin),
        )
    found = candidates(
        work.spark(), work.reader(), context, knowledge, entries,
        origin_revision=at[rule.origin], target_revision=at[rule.target],
    )  # fmt: skip
    known = facts.collect(
        context, capabilities(work.spec(rule.origin)), entries, found, _Sources(work, rule),
        now=time.time(), origin_revision=at[rule.origin], target_revision=at[rule.target],
    )  # fmt: skip
    made = planner.plan(context, knowledge, found, known)
    save(work, made)
    return made


def _as_read(work: Work, connection: Connection, source: str, revision: int) -> dict[str, Coverage]:
    """What a source's listings said: of those that were carried, when they were read. Absence is proven by misses, which only count
    what was read, and every change is preceded by a look at its object. Where this run could not read it, they prove nothing."""
    if error := work.result.errors.get(source):
        return {path_key(ROOT): crawls.unread(source, Internal.code, error)}
    return {key: each.as_read() for key, each in coverage.read(connection, source, revision).items()}


@dataclass(frozen=True)
class _Sources:
    """``FactSources`` of one mirror: the index in SQL, and catalogs as they are configured."""

    work: Work
    rule: MirrorRule

    @contextmanager
    def read(self) -> Iterator[PlanFacts]:
        with self.work.index.read() as connection:
            yield PlanFacts(connection)

    def open_origin(self, namespaces: Collection[Path]) -> AbstractContextManager[Catalog]:
        return opened_as_known(self.work.index, self.work.spec(self.rule.origin), namespaces)

    def open_target(self) -> AbstractContextManager[Catalog]:
        return open_catalog(self.work.spec(self.rule.target))


def context_of(work: Work, rule: MirrorRule) -> MirrorContext:
    """A mirror with what its catalogs can do. Asks the target how it spells a path."""
    origin, target = (capabilities(work.spec(name)) for name in (rule.origin, rule.target))
    # A name that no catalog has: the target is asked where a path goes that leaves its home out.
    shortest = ("-",) * (target.min_depth + 1)
    with open_catalog(work.spec(rule.target)) as catalog:
        home = catalog.canonical_path(shortest)[: -len(shortest)]
    return MirrorContext.of(rule, work.settings.instance.id or "", origin, target, home, work.settings.rules.values())


def save(work: Work, made: Plan) -> None:
    """Keeps a plan in the index, and says so in the audit."""
    counts = {"changes": len(made.changes), "refusals": len(made.refusals), "held": list(made.held), "plan": made.digest}
    with work.index.write() as connection:
        body = canonical_json(made.to_json())
        state = state_of(made, approvals.current(connection, made.mirror))
        notice = _held(work, made) if state == "held" else None
        plans.save(
            connection, digest=made.digest, mirror=made.mirror, run_id=work.run.id, state=state, body=body,
            guarded=guarded_digest(made), notice=notice,
        )  # fmt: skip
        if target_of(made.mirror) is None:
            plans.supersede(connection, made.digest, made.mirror, made.mirror_digest)
        audit_log.append(connection, "plan", actor=work.run.actor, run_id=work.run.id, subject=made.mirror, detail=counts)


def _held(work: Work, made: Plan) -> Notice:
    message = f"{'; '.join(made.held)}. federator plans approve {made.digest[:12]}, or reject"
    return Notice(Event.PLAN_HELD, f"plan {made.digest[:12]}", message, mirror=made.mirror, run_id=work.run.id)
