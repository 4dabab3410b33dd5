"""Plan: what each mirror would change, decided on Spark and looked at once more as a whole."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from federator.connector import Catalog, CatalogError
from federator.index import Connection, audit_log, coverage, datasets, journal, ledger, plans, records
from federator.model import Coverage, ancestors, canonical_json, parent, parse_key, path_key
from federator.model.notices import Event, Notice
from federator.model.rows import namespace_record
from federator.planning import planner
from federator.planning.cells import Candidates, LedgerRow
from federator.planning.changes import Change
from federator.planning.decide import Knowledge
from federator.planning.guards import GuardFacts
from federator.planning.mapping import MirrorContext
from federator.planning.namespaces import MadeNamespace
from federator.planning.plan import Plan
from federator.planning.planner import Facts, Look
from federator.planning.rule import MirrorRule
from federator.registry import capabilities, open_catalog
from federator.sync.result import counted
from federator.sync.work import Work

# A rename of which only the first half was made is completed as it was meant for this long (seconds).
_RENAMES_SINCE = 30 * 86_400.0


def plan(work: Work, rules: Sequence[MirrorRule]) -> None:
    """Plans each mirror; a mirror that cannot be planned does not stop the others."""
    from federator.pipeline.session import engine_errors

    for rule in rules:
        with work.recording(f"mirror {rule.name}"), work.step("plan", rule.name) as done, engine_errors(f"plan {rule.name}"):
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

    context = context_of(work, rule)
    with work.index.read() as connection:
        at = {name: records.published(connection, name) for name in (rule.origin, rule.target)}
        # What the mirror declared in another target, before it was pointed at this one, stays there and says nothing of this one.
        entries = [LedgerRow.of(e) for e in ledger.with_origins(connection, rule.name) if e["target_source"] == rule.target]
        knowledge = Knowledge(
            origin=_as_read(connection, rule.origin, at[rule.origin]),
            target=_as_read(connection, rule.target, at[rule.target]),
            misses=coverage.absences(connection, rule.origin),
        )
    found = candidates(
        work.spark(), work.reader(), context, knowledge, entries,
        origin_revision=at[rule.origin], target_revision=at[rule.target],
    )  # fmt: skip
    made = planner.plan(context, knowledge, found, _facts(work, context, entries, found, at))
    save(work, made)
    return made


def _as_read(connection: Connection, source: str, revision: int) -> dict[str, Coverage]:
    """What a source's listings said: of those that were carried, when they were read. Absence is proven by misses, which only count
    what was read, and every change is preceded by a look at its object."""
    return {key: each.as_read() for key, each in coverage.read(connection, source, revision).items()}


def _facts(work: Work, context: MirrorContext, entries: Sequence[LedgerRow], found: Candidates, at: Mapping[str, int]) -> Facts:
    """What the plan needs to know of its candidates: from the index, and by direct looks at origins that are to be gone."""
    questions = planner.ask(context, found)
    rule, now = context.rule, time.time()
    with work.index.read() as connection:
        deleted = journal.destructive_since(connection, rule.name, now - rule.guard_window)
        states = datasets.states(connection, questions.locations)
        declared = records.paths_at(connection, rule.target, questions.locations)
        namespaces = records.namespaces(connection, rule.target)
        made = _made(connection, rule, entries)
        obstructed = journal.obstructed(connection, rule.name)
        halves = journal.unfinished_renames(connection, rule.name, now - _RENAMES_SINCE)
    return Facts(
        declared=declared,
        states={key: str(row["state"]) for key, row in states.items()},
        namespaces=namespaces,
        made=made,
        halves=[Change.from_json(json.loads(half)) for half in halves],
        now=now,
        looks=_looks(work, rule, questions.origins),
        taken=_taken(work, rule.target, obstructed.intersection(questions.targets)),
        guards=GuardFacts(
            live=len(entries),
            live_by_namespace=_by_namespace(entry.target_path for entry in entries),
            there_by_origin=_by_namespace(entry.origin_path for entry in entries if entry.origin_there),
            deleted_in_window=len(deleted),
            deleted_by_namespace=_by_namespace(deleted),
            selected=found.selected,
            origin_filters_listings=capabilities(work.spec(rule.origin)).listing_filtered,
        ),
        origin_revision=at[rule.origin],
        target_revision=at[rule.target],
    )


def _made(connection: Connection, rule: MirrorRule, entries: Sequence[LedgerRow]) -> list[MadeNamespace]:
    """The namespaces that the mirror made at its target and has nothing in any more: only they can be empty."""
    above = {path_key(namespace) for entry in entries for namespace in ancestors(parse_key(entry.target_path))}
    found = []
    for entry in ledger.of_mirror(connection, rule.name):
        key = entry["target_path"]
        if entry["is_table"] or entry["target_source"] != rule.target or key in above:
            continue
        row = records.get(connection, rule.target, parse_key(key), is_table=False)
        inside = records.children(connection, rule.target, parse_key(key), limit=1)
        record = namespace_record(rule.target, dict(row)) if row is not None else None
        found.append(MadeNamespace(key, entry["origin_path"], entry["native_id"], record, len(inside)))
    return found


def _looks(work: Work, rule: MirrorRule, origins: Sequence[str]) -> dict[str, Look]:
    if not origins:
        return {}
    with open_catalog(work.spec(rule.origin)) as origin:
        return {key: _look(origin, key) for key in origins}


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
    state = "held" if made.held else "ready"
    counts = {"changes": len(made.changes), "refusals": len(made.refusals), "held": list(made.held), "plan": made.digest}
    with work.index.write() as connection:
        body = canonical_json(made.to_json())
        notice = _held(work, made) if made.held else None
        plans.save(
            connection, digest=made.digest, mirror=made.mirror, run_id=work.run.id, state=state, body=body, notice=notice
        )
        audit_log.append(connection, "plan", actor=work.run.actor, run_id=work.run.id, subject=made.mirror, detail=counts)


def _held(work: Work, made: Plan) -> Notice:
    message = f"{'; '.join(made.held)}. federator plans approve {made.digest[:12]}, or reject"
    return Notice(Event.PLAN_HELD, f"plan {made.digest[:12]}", message, mirror=made.mirror, run_id=work.run.id)


def _by_namespace(keys: Iterable[str]) -> Counter[str]:
    return Counter(path_key(parent(parse_key(key))) for key in keys)
