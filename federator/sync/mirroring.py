"""Plan: what each mirror would change, decided on Spark and looked at once more as a whole."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federator.connector import Catalog, CatalogError
from federator.index import audit_log, coverage, datasets, journal, ledger, plans, records
from federator.model import canonical_json, parse_key, path_key
from federator.model.identifiers import parent
from federator.planning.changes import Change, Refusal
from federator.planning.decide import Knowledge
from federator.planning.guards import GuardFacts, objections
from federator.planning.mapping import MirrorContext
from federator.planning.plan import Plan, ordered, refuse_missing_locations, refuse_second_names, with_namespaces
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule
from federator.registry import connector, open_catalog
from federator.sync.result import counted
from federator.sync.work import Work


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

    context = _context(work, rule)
    with work.index.read() as connection:
        at = {name: records.published(connection, name) for name in (rule.origin, rule.target)}
        # What the mirror declared in another target, before it was pointed at this one, stays there and says nothing of this one.
        entries = [e for e in ledger.with_origins(connection, rule.name) if e["target_source"] == rule.target]
        knowledge = Knowledge(
            origin=coverage.read(connection, rule.origin, at[rule.origin]),
            target=coverage.read(connection, rule.target, at[rule.target]),
            misses=coverage.absences(connection, rule.origin),
        )
    found = candidates(
        work.spark(), work.reader(), context, knowledge, entries,
        origin_revision=at[rule.origin], target_revision=at[rule.target],
    )  # fmt: skip
    changes, there = _look_again(work, rule, [d for d in found.decisions if isinstance(d, Change)])
    changes, more = _reconsider(work, context, changes)
    refusals = [*(d for d in found.decisions if isinstance(d, Refusal)), *there, *more]
    made = Plan(
        mirror=rule.name,
        mirror_digest=rule.digest,
        origin_revision=at[rule.origin],
        target_revision=at[rule.target],
        changes=ordered(changes),
        refusals=tuple(sorted(refusals, key=lambda r: (r.target_path, r.origin_path, r.reason))),
        held=tuple(objections(rule, changes, _facts(work, rule, entries, found.selected))),
        selected=found.selected,
    )
    _save(work, made)
    return made


def _look_again(work: Work, rule: MirrorRule, changes: list[Change]) -> tuple[list[Change], list[Refusal]]:
    """A direct look at each origin that is to be gone: what stopped being a Lance table is missed by listings and still there.

    Apply looks once more just before the call; this look keeps a plan from announcing what would be skipped on every run.
    """
    kept: list[Change] = []
    refusals: list[Refusal] = []
    if not any(change.precondition.get("origin") == "absent" for change in changes):
        return changes, []
    with open_catalog(work.spec(rule.origin)) as origin:
        for change in changes:
            objection = _still_there(origin, change) if change.precondition.get("origin") == "absent" else None
            if objection is None:
                kept.append(change)
            else:
                refusals.append(
                    Refusal(objection[0], change.target_source, change.target_path, change.origin_path, objection[1])
                )
    return kept, refusals


def _still_there(origin: Catalog, change: Change) -> tuple[Reason, str] | None:
    try:
        seen = origin.observe(parse_key(change.origin_path))
    except CatalogError as error:
        return Reason.NOT_COVERED, f"a direct look at the origin failed: {error.message}"
    return None if seen.absent else (Reason.STILL_THERE, seen.foreign or "a direct look found it")


def _reconsider(work: Work, context: MirrorContext, changes: list[Change]) -> tuple[list[Change], list[Refusal]]:
    """What only the plan as a whole shows: second names, places that do not exist, namespaces that are missing."""
    rule = context.rule
    canonicals = sorted({c.after.canonical for c in changes if c.after is not None and c.after.canonical})
    with work.index.read() as connection:
        declared = records.paths_at(connection, rule.target, canonicals)
        states = {key: str(row["state"]) for key, row in datasets.states(connection, canonicals).items()}
        existing = records.namespaces(connection, rule.target)
    leaving = {c.target_path for c in changes if c.after is None}
    changes, seconds = refuse_second_names(changes, declared, leaving)
    allowed = rule.declare_missing or not context.target.makes_location
    changes, missing = refuse_missing_locations(changes, states, allowed=allowed)
    changes, homeless = with_namespaces(context, changes, existing)
    return changes, [*seconds, *missing, *homeless]


def _facts(work: Work, rule: MirrorRule, entries: Sequence[Mapping[str, Any]], selected: int) -> GuardFacts:
    with work.index.read() as connection:
        deleted = journal.destructive_since(connection, rule.name, time.time() - rule.guard_window)
    return GuardFacts(
        live=len(entries),
        live_by_namespace=_by_namespace(entry["target_path"] for entry in entries),
        live_by_origin=_by_namespace(entry["origin_path"] for entry in entries),
        deleted_in_window=len(deleted),
        deleted_by_namespace=_by_namespace(deleted),
        selected=selected,
        origin_filters_listings=connector(work.settings.source(rule.origin).impl).capabilities.listing_filtered,
    )


def _context(work: Work, rule: MirrorRule) -> MirrorContext:
    origin, target = (connector(work.settings.source(name).impl).capabilities for name in (rule.origin, rule.target))
    # A name that no catalog has: the target is asked where a path goes that leaves its home out.
    shortest = ("-",) * (target.min_depth + 1)
    with open_catalog(work.spec(rule.target)) as catalog:
        home = catalog.canonical_path(shortest)[: -len(shortest)]
    return MirrorContext(rule, work.settings.instance.id or "", origin.levels, target, home)


def _save(work: Work, made: Plan) -> None:
    state = "held" if made.held else "ready"
    counts = {"changes": len(made.changes), "refusals": len(made.refusals), "held": list(made.held), "plan": made.digest}
    with work.index.write() as connection:
        body = canonical_json(made.to_json())
        plans.save(connection, digest=made.digest, mirror=made.mirror, run_id=work.run.id, state=state, body=body)
        audit_log.append(connection, "plan", actor=work.run.actor, run_id=work.run.id, subject=made.mirror, detail=counts)


def _by_namespace(keys: Iterable[str]) -> Counter[str]:
    return Counter(path_key(parent(parse_key(key))) for key in keys)
