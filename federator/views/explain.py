"""Explanation of one object: its existence, its evidence, its mirrors and its next change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated

from pydantic import Field

from federator.connector import InvalidInput, TableNotFound
from federator.model import Coverage, CoverageState, Path, iter_ancestors, object_id, parse_path_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.evidence import count_spaced_misses, is_covered
from federator.planning.ledger import OwnedObject
from federator.planning.rule import MirrorRule
from federator.planning.selection import is_selected
from federator.runtime.text import format_utc
from federator.settings import Settings
from federator.store import Connection, Index, coverage, ledger, records
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.misses import list_misses_of
from federator.store.records import IndexedRecord
from federator.views import object_history, verification_history
from federator.views.freshness import Freshness, get_freshness
from federator.views.object_decisions import ObjectDecision, Role, find_object_decision
from federator.views.verification_history import VerifiedState


@dataclass(frozen=True, slots=True)
class ListingEvidence:
    """The nearest listing that shows whether an object exists."""

    namespace: Annotated[str, Field(examples=["sales"])]
    state: Annotated[str, Field(examples=["complete"])]
    reason: str
    proves: Annotated[bool, Field(description="true: the listing proves that the object exists or is absent")]
    crawled_at: Annotated[OptionalTimestamp, Field(description="time of the source's last crawl; a carried listing is older")]


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An event in the history of the object: a difference found by a crawl or by verification, or a write of a mirror."""

    at: Timestamp
    run_id: str
    what: Annotated[str, Field(examples=["declare_table aws$sales$orders: done"])]
    detail: str
    mirror: str | None


@dataclass(frozen=True, slots=True)
class MirrorRole:
    """The role of the object in one mirror. `next` describes what the newest plan, or the next one, would do."""

    mirror: Annotated[str, Field(examples=["hive-to-glue"])]
    role: Role
    other: Annotated[str | None, Field(examples=["aws$sales$orders"], description="object id on the other side of the mirror")]
    in_ledger: bool
    next: Annotated[str, Field(examples=["nothing: the target is in the desired state"])]
    reason: Annotated[str | None, Field(examples=[None], description="reason code, if the mirror refuses to change it")]
    plan: str | None
    plan_state: str | None
    misses: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an object exists or is absent, and what each mirror would do with it next."""

    id: Annotated[str, Field(examples=["aws$sales$orders"])]
    source: str
    kind: Annotated[str | None, Field(examples=["table"], description="null: the object is not in the index")]
    summary: Annotated[str, Field(examples=["aws has it since mirror hive-to-glue declared it from lake_hive$sales$orders"])]
    location: str | None
    verified: str | None
    verified_since: Annotated[OptionalTimestamp, Field(description="first inspection that found this verification state")]
    last_valid: Annotated[
        VerifiedState | None, Field(description="of a table that is not valid: the last state that was, if one is known")
    ]
    evidence: ListingEvidence
    parts: list[MirrorRole]
    history: list[ObjectEvent]
    freshness: Freshness


def explain_object(
    settings: Settings, index: Index, node: Path, scopes: Scopes = EVERYTHING, principal: str = ""
) -> Explanation:
    """Explain ``source$path`` from the index alone. ``principal`` is the name of the principal that asks.

    Mirrors are included if the scopes cover both of their sources, ledger entries if the scopes cover origin and target. Raise
    InvalidInput for a path without an object, NamespaceNotFound for an unknown source, TableNotFound for an object outside the scopes.
    """
    if len(node) < 2:
        raise InvalidInput(
            f"{path_key(node)!r} is not the id of an object", hint="use source$namespace$table; federator search shows the ids"
        )
    source, path = node[0], node[1:]
    key = path_key(path)
    freshness = get_freshness(index, source, scopes)
    if not scopes.covers(node):
        raise TableNotFound(f"there is no table {path_key(node)}", hint=f"federator search {path[-1]}")
    rules = (
        settings.mirror_rules
        if scopes.covers_all
        else {name: settings.mirror_rules[name] for name in settings.visible_mirrors(scopes)}
    )
    with index.read() as connection:
        revision = records.published_revision(connection, source)
        current_record = _find_record(connection, source, path, revision)
        evidence = _find_evidence(
            node, coverage.read_coverage(connection, source, revision, only=_ancestor_keys(path)), freshness.crawled_at, scopes
        )
        versions = object_history.list_versions(connection, source, key)
        origins = [name for name, rule in rules.items() if rule.origin == source]
        writes = object_history.list_writes(connection, source, key, origins, mirrors=None if scopes.covers_all else rules)
        entries = [row for row in ledger.list_entries_of_object(connection, source, key) if _covers_both_ends(row, scopes)]
        parts = list(_mirror_roles(connection, rules, source, path, entries, principal, exists=current_record is not None))
        states = (
            verification_history.list_states_of(connection, source, current_record.canonical)
            if current_record and current_record.canonical
            else []
        )
    current = states[-1] if states else None
    last_valid = next((past_state for past_state in reversed(states) if past_state.state == "valid"), None)
    summary = _summarize(current_record is not None, versions, entries, evidence, source, key)
    events = sorted((*_object_events(versions, writes), *_verification_events(states)), key=lambda event: event.at)
    return Explanation(
        id=path_key(node), source=source, kind=current_record.record.kind.value if current_record else None,
        summary=summary + (_describe_loss(current, last_valid) if current else ""),
        location=current_record.record.location if current_record else None, verified=current.state if current else None,
        verified_since=current.since if current else None, last_valid=last_valid if last_valid is not current else None,
        evidence=evidence, parts=parts, history=events, freshness=freshness,
    )  # fmt: skip


def _covers_both_ends(entry: OwnedObject, scopes: Scopes) -> bool:
    ends = (entry.origin_source, entry.origin_path), (entry.target_source, entry.target_path)
    return all(scopes.covers((source, *parse_path_key(path))) for source, path in ends)


def _find_record(connection: Connection, source: str, path: Path, revision: int) -> IndexedRecord | None:
    indexed = (
        records.find_record(connection, source, path, is_table=is_table, revision=revision) for is_table in (True, False)
    )
    return next(filter(None, indexed), None)


def _ancestor_keys(path: Path) -> list[str]:
    return [path_key(ancestor) for ancestor in iter_ancestors(path)]


def _find_evidence(node: Path, known: Mapping[str, Coverage], crawled_at: float | None, scopes: Scopes) -> ListingEvidence:
    source, path = node[0], node[1:]
    nearest = next((known[key] for key in _ancestor_keys(path) if key in known and known[key].found), None)
    if nearest is None:
        return ListingEvidence("", "unread", "the index has no listing of a namespace above it", False, crawled_at)
    # A message of the catalog about a namespace above a scope may name what is in it.
    reason = nearest.presence.reason if scopes.covers((source, *nearest.namespace)) else ""
    if nearest.presence.revision is not None:
        reason = f"read in revision {nearest.presence.revision}; since then, only what the change feed names was read"
    proves = is_covered(path, {key: row.as_read() for key, row in known.items()})
    return ListingEvidence(nearest.key, nearest.presence.state.value, reason, proves, crawled_at)


def _summarize(
    exists: bool, versions: Sequence[object_history.ObjectVersion], entries: Sequence[OwnedObject], evidence: ListingEvidence,
    source: str, key: str,
) -> str:  # fmt: skip
    if exists:
        owner = next((entry for entry in entries if (entry.target_source, entry.target_path) == (source, key)), None)
        if owner is None:
            return f"{source} has it, and no mirror of this instance declared it"
        return f"{source} has it since mirror {owner.mirror} declared it from {owner.origin_source}${owner.origin_path}"
    listing = f"the listing of {evidence.namespace or 'the root'}"
    if not evidence.proves:
        return f"it is not known whether {source} has it: {listing} is {evidence.state}" + (
            f" ({evidence.reason})" if evidence.reason else ""
        )
    history = "had it before and no longer has it" if versions else "never had it"
    if evidence.state == CoverageState.CARRIED.value:
        return f"{source} {history}: {listing}, {evidence.reason}, does not name it"
    return f"{source} {history}: {listing} is complete and does not name it"


def _mirror_roles(
    connection: Connection,
    rules: Mapping[str, MirrorRule],
    source: str,
    path: Path,
    entries: Sequence[OwnedObject],
    principal: str,
    *,
    exists: bool,
) -> Iterator[MirrorRole]:
    key = path_key(path)
    for name, rule in rules.items():
        sides: tuple[tuple[Role, str], ...] = (("origin", rule.origin), ("target", rule.target))
        for role in [role for role, side in sides if side == source]:
            own = [entry for entry in entries if entry.mirror == name and _end(entry, role) == (source, key)]
            part = _mirror_role(connection, rule, role, path, own, principal, exists=exists)
            if part is not None:
                yield part


def _mirror_role(
    connection: Connection, rule: MirrorRule, role: Role, path: Path, entries: Sequence[OwnedObject], principal: str, *,
    exists: bool,
) -> MirrorRole | None:  # fmt: skip
    key = path_key(path)
    other: Role = "target" if role == "origin" else "origin"
    newest = find_object_decision(connection, rule.name, role, key, principal)
    decision = newest.decision if newest else None
    if not entries and decision is None and (role == "target" or not exists):
        return None
    counterpart = object_id(*_end(entries[0], other)) if entries else _decided_counterpart(rule, other, decision)
    origin_path = entries[0].origin_path if entries else key
    misses = list_misses_of(connection, rule.origin, origin_path) if entries else []
    reason, following = _describe_next(rule, role, path, newest, in_ledger=bool(entries))
    return MirrorRole(
        mirror=rule.name, role=role, other=counterpart, in_ledger=bool(entries), next=following, reason=reason,
        plan=newest.plan.digest if newest else None, plan_state=newest.plan.state if newest else None,
        misses=count_spaced_misses(misses, rule.min_miss_interval),
    )  # fmt: skip


def _end(entry: OwnedObject, role: Role) -> tuple[str, str]:
    """Return source and path key of a ledger entry's origin or target."""
    return (entry.origin_source, entry.origin_path) if role == "origin" else (entry.target_source, entry.target_path)


def _decided_counterpart(rule: MirrorRule, other: Role, decision: Decision | None) -> str | None:
    """Return the object id at the other side of a planned change or refusal. None if it names none."""
    if decision is None:
        return None
    if other == "target":
        return object_id(decision.target_source, decision.target_path) if decision.target_path else None
    source = decision.origin_source if isinstance(decision, Change) else rule.origin
    return object_id(source, decision.origin_path) if decision.origin_path else None


def _describe_next(
    rule: MirrorRule, role: Role, path: Path, newest: ObjectDecision | None, *, in_ledger: bool
) -> tuple[str | None, str]:
    """Return the reason code of a refusal or a hold, if any, and a description of what happens next."""
    if newest is None:
        return None, f"no plan of this mirror was made yet: federator plan {rule.name}"
    plan, decision, waiting, outcome = newest.plan, newest.decision, newest.waiting, newest.outcome
    if decision is None:
        if in_ledger:
            return None, "nothing: the target is in the desired state"
        selected = role == "target" or is_selected(rule, path)
        return None, "the next plan decides" if selected else "nothing: the mirror's include and exclude leave it out"
    if isinstance(decision, Refusal):
        return decision.reason.value, f"left as it is: {decision.detail}"
    planned_change, digest = f"{decision.action.value}: {decision.reason}", plan.digest[:12]
    if outcome is not None and outcome.state == "done":
        return None, f"nothing: {planned_change}, carried out by plan {digest}"
    if plan.state == "applied" or (outcome is not None and waiting is None):
        happened = f"{outcome.state} by plan {digest}: {outcome.message}" if outcome else f"not started by plan {digest}"
        return outcome.code if outcome else None, f"{planned_change}; {happened}; the next sync of {rule.name} decides again"
    if plan.state == "rejected" and (waiting is not None or not newest.has_holds):
        return None, f"{planned_change}; rejected by {plan.decided_by}, until a plan has other evidence"
    if waiting is not None:
        return waiting.reason, f"{planned_change}; waits ({waiting.hold}): {waiting.release_command}"
    return None, f"{planned_change}; the next sync of {rule.name} carries it out"


def _object_events(
    versions: Sequence[object_history.ObjectVersion], writes: Sequence[object_history.ObjectWrite]
) -> Iterator[ObjectEvent]:
    before: object_history.ObjectVersion | None = None
    for version in versions:
        continues = before is not None and before.ended == version.began_revision
        what = "changed" if continues else "appeared"
        detail = f"revision {version.began_revision}"
        if continues and before is not None and before.location != version.location:
            detail += f", location {before.location} → {version.location}"
        yield ObjectEvent(version.began_at or 0.0, version.began_by or "", what, detail, None)
        before = version
    for version, following in zip_longest(versions, versions[1:]):
        if version.ended is not None and (following is None or following.began_revision != version.ended):
            yield ObjectEvent(version.ended_at or 0.0, version.ended_by or "", "gone", f"revision {version.ended}", None)
    for write in writes:
        detail = "; ".join(filter(None, (json.loads(write.change)["reason"], write.message)))
        target = object_id(write.target_source, write.target_path)
        yield ObjectEvent(write.intent_at, write.run_id, f"{write.action} {target}: {write.state}", detail, write.mirror)


# the states of a location that need no note in the summary
_EXPECTED_STATES = ("valid", "declared_only")


def _describe_loss(current: VerifiedState, last_valid: VerifiedState | None) -> str:
    """Return a note for the summary: since when the location is in a bad state, and its last valid version. Empty if it is not."""
    if current.state in _EXPECTED_STATES:
        return ""
    since = f"; its location is {current.state} since {format_utc(current.since)}"
    if last_valid is None:
        return f"{since}, and was not found valid before"
    return f"{since}; it was last valid{_describe_content(last_valid)}"


def _describe_content(verified: VerifiedState) -> str:
    """Return version, rows and time of an inspection, as far as they are known."""
    at = f" at {format_utc(verified.checked_at)}" if verified.checked_at is not None else ""
    version = f", version {verified.version}" if verified.version is not None else ""
    rows = f" with {verified.rows:,} rows" if verified.rows is not None else ""
    return f"{at}{version}{rows}"


def _verification_events(states: Sequence[VerifiedState]) -> Iterator[ObjectEvent]:
    """Yield the changes of the verification state, and of the stored schema. The first inspection is one of them."""
    before: VerifiedState | None = None
    for verified in states:
        what, detail = f"verified: {verified.state.replace('_', ' ')}", verified.message or ""
        if before is not None and before.state == verified.state:
            what, detail = "stored schema changed", f"after version {before.version}" if before.version is not None else ""
        elif before is not None:
            last = f"last {before.state.replace('_', ' ')}{_describe_content(before)}"
            detail = f"{detail}; {last}" if detail else last
        yield ObjectEvent(verified.since, "", what, detail, None)
        before = verified
