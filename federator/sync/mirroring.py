"""Plan: what each mirror would change, decided on Spark and looked at once more as a whole."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from federator.connector import Catalog, CatalogError, Internal
from federator.index import (
    Connection,
    approvals,
    audit_log,
    coverage,
    datasets,
    deployment,
    identities,
    journal,
    ledger,
    losses,
    plans,
    records,
)
from federator.model import ROOT, Coverage, canonical_json, failed, parent, parse_key, path_key
from federator.model.notices import Event, Notice
from federator.model.rows import namespace_record
from federator.planning import planner
from federator.planning.cells import Candidates, LedgerRow
from federator.planning.decide import Knowledge
from federator.planning.declaring import target_of
from federator.planning.guards import GuardFacts
from federator.planning.mapping import MirrorContext
from federator.planning.namespaces import MadeNamespace, without_tables
from federator.planning.plan import Plan
from federator.planning.planner import Facts, Look
from federator.planning.release import guarded_digest, state_of
from federator.planning.rule import MirrorRule
from federator.registry import capabilities, open_catalog
from federator.sync.identities import opened_as_known
from federator.sync.result import counted
from federator.sync.work import Work

# A rename of which only the first half was made is completed as it was meant for this long (seconds).
_RENAMES_SINCE = 30 * 86_400.0


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
    made = planner.plan(context, knowledge, found, _facts(work, context, entries, found, at))
    save(work, made)
    return made


def _as_read(work: Work, connection: Connection, source: str, revision: int) -> dict[str, Coverage]:
    """What a source's listings said: of those that were carried, when they were read. Absence is proven by misses, which only count
    what was read, and every change is preceded by a look at its object. Where this run could not read it, they prove nothing."""
    if error := work.result.errors.get(source):
        evidence = failed(Internal.code, error)
        return {path_key(ROOT): Coverage(source, ROOT, evidence, evidence)}
    return {key: each.as_read() for key, each in coverage.read(connection, source, revision).items()}


def _facts(work: Work, context: MirrorContext, entries: Sequence[LedgerRow], found: Candidates, at: Mapping[str, int]) -> Facts:
    """What the plan needs to know of its candidates: from the index, and by direct looks at origins that are to be gone."""
    questions = planner.ask(context, found)
    rule, now = context.rule, time.time()
    with work.index.read() as connection:
        deleted = journal.destructive_since(connection, rule.name, now - rule.guard_window)
        dropped = journal.dropped_since(connection, rule.name, now - rule.guard_window)
        states = datasets.states(connection, questions.locations)
        declared = records.paths_at(connection, rule.target, questions.locations)
        namespaces = records.namespaces(connection, rule.target)
        made = _made(connection, rule, entries)
        suspect = journal.obstructed(connection, rule.name) | {entry.target_path for entry in entries}
        unconfirmed = [text for name in at if (text := identities.unconfirmed(connection, name)) is not None]
        lost = losses.unapproved(connection, rule.name, rule.origin, rule.target)
        halves = journal.unfinished_renames(connection, rule.name, now - _RENAMES_SINCE)
    return Facts(
        declared=declared,
        states={key: str(row["state"]) for key, row in states.items()},
        namespaces=namespaces,
        made=made,
        halves=halves,
        now=now,
        unconfirmed=unconfirmed,
        losses=lost,
        looks=_looks(work, rule, questions.origins),
        taken=_taken(work, rule.target, suspect.intersection(questions.targets)),
        guards=GuardFacts(
            live=len(entries),
            live_by_namespace=_by_namespace(entry.target_path for entry in entries),
            there_by_origin=_by_namespace(entry.origin_path for entry in entries if entry.origin_there),
            deleted_in_window=len(deleted),
            deleted_by_namespace=_by_namespace(deleted),
            selected=found.selected,
            origin_filters_listings=capabilities(work.spec(rule.origin)).listing_filtered,
            dropped_in_window=dropped,
        ),
        origin_revision=at[rule.origin],
        target_revision=at[rule.target],
    )


def _made(connection: Connection, rule: MirrorRule, entries: Sequence[LedgerRow]) -> list[MadeNamespace]:
    """The namespaces that the mirror made at its target and has nothing in any more: only they can be empty."""
    rows = [e for e in ledger.of_mirror(connection, rule.name) if not e["is_table"] and e["target_source"] == rule.target]
    made = (MadeNamespace(row["target_path"], row["origin_path"], row["native_id"]) for row in rows)
    found = []
    for namespace in without_tables(made, (entry.target_path for entry in entries)):
        path = parse_key(namespace.path)
        row = records.get(connection, rule.target, path, is_table=False)
        inside = records.children(connection, rule.target, path, limit=1)
        record = namespace_record(rule.target, dict(row)) if row is not None else None
        found.append(replace(namespace, record=record, inside=len(inside)))
    return found


def _looks(work: Work, rule: MirrorRule, origins: Sequence[str]) -> dict[str, Look]:
    if not origins:
        return {}
    namespaces = {parent(parse_key(key)) for key in origins}
    try:
        with opened_as_known(work.index, work.spec(rule.origin), namespaces) as origin:
            return {key: _look(origin, key) for key in origins}
    except CatalogError as error:
        return {key: Look(error=error.message) for key in origins}


def _taken(work: Work, target: str, paths: Collection[str]) -> dict[str, str]:
    """What is at these paths of the target and is no Lance table; a path that cannot be looked at is left to apply."""
    found: dict[str, str] = {}
    if paths:
        with open_catalog(work.spec(target)) as catalog:
            for key in sorted(paths):
                with suppress(CatalogError):
                    found[key] = catalog.observe(parse_key(key)).foreign or ""
    return found


def _look(origin: Catalog, key: str) -> Look:
    try:
        seen = origin.observe(parse_key(key))
    except CatalogError as error:
        return Look(error=error.message)
    return Look() if seen.absent else Look(found=seen.foreign or "a direct look found it")


def context_of(work: Work, rule: MirrorRule) -> MirrorContext:
    """A mirror with what its catalogs can do. Asks the target how it spells a path."""
    origin, target = (capabilities(work.spec(name)) for name in (rule.origin, rule.target))
    # A name that no catalog has: the target is asked where a path goes that leaves its home out.
    shortest = ("-",) * (target.min_depth + 1)
    with open_catalog(work.spec(rule.target)) as catalog:
        home = catalog.canonical_path(shortest)[: -len(shortest)]
    mirrors = work.settings.mirrors.items()
    rivals = {name: other.origin for name, other in mirrors if other.target == rule.target and name != rule.name}
    return MirrorContext(rule, work.settings.instance.id or "", origin.levels, target, home, origin.nested, rivals)


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


def _by_namespace(keys: Iterable[str]) -> Counter[str]:
    return Counter(path_key(parent(parse_key(key))) for key in keys)
