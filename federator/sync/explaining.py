"""Explain: why an object is here or not, who put it there on what evidence, and what would happen to it next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

from federator.connector import InvalidInput, TableNotFound
from federator.index import Connection, Index, RowMapping, approvals, coverage, datasets, records, trace
from federator.index.freshness import of_source
from federator.model import Coverage, CoverageState, Path, ancestors, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.evidence import counted_misses, covered
from federator.planning.release import Waiting
from federator.planning.rule import MirrorRule
from federator.planning.selection import selected
from federator.settings import Settings


@dataclass(frozen=True, slots=True)
class Evidence:
    """The nearest listing that says whether the object exists: of which namespace, what it proves, and when it was made; or, of one
    that was carried, when the source's feed of changes last had nothing to say of it."""

    namespace: str
    state: str
    reason: str
    proves: bool
    crawled_at: float | None


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to the object: seen by a crawl, or written by a mirror. ``at`` is seconds since the epoch."""

    at: float
    run_id: str
    what: str
    detail: str = ""
    mirror: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The object's part in one mirror. ``next`` says what the newest plan, or the next one, would do."""

    mirror: str
    role: str
    other: str | None
    in_ledger: bool
    next: str
    reason: str | None = None
    plan: str | None = None
    plan_state: str | None = None
    misses: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole story of one object. ``kind`` is None where nothing of that name is in the index."""

    id: str
    source: str
    kind: str | None
    summary: str
    location: str | None
    verified: str | None
    evidence: Evidence
    parts: list[Part] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(settings: Settings, index: Index, node: Path, scopes: Scopes = EVERYTHING) -> Explanation:
    """Explains ``source$path``, by the index alone. Raises InvalidInput, NamespaceNotFound for a source that is not in the index,
    TableNotFound for an object that the scope does not cover, whether it is there or not.

    Of mirrors it tells those both of whose sources are inside the scope, of the ledger and the journal what is at both ends.
    """
    if len(node) < 2:
        raise InvalidInput(f"{path_key(node)!r} names no object", hint="source$namespace$table, as federator tree shows it")
    source, path = node[0], node[1:]
    key = path_key(path)
    crawled_at = of_source(index, source, scopes).crawled_at
    if not scopes.covers(node):
        raise TableNotFound(f"there is no table {path_key(node)}", hint=f"federator search {path[-1]}")
    rules = settings.rules if scopes.everything else {name: settings.rules[name] for name in settings.mirrors_in(scopes)}
    with index.read() as connection:
        at = records.published(connection, source)
        row = _row(connection, source, path, at)
        evidence = _evidence(path, coverage.read(connection, source, at, only=_above(path)), crawled_at)
        versions = trace.versions(connection, source, key)
        origins = [name for name, rule in rules.items() if rule.origin == source]
        writes = [row for row in trace.writes(connection, source, key, origins) if scopes.everything or row["mirror"] in rules]
        entries = [row for row in trace.entries(connection, source, key) if _both_ends(row, scopes)]
        parts = list(_parts(connection, rules, source, path, entries, there=row is not None))
        verified = _verified(connection, row)
    return Explanation(
        id=path_key(node), source=source, kind=row["kind"] if row else None,
        summary=_summary(row, versions, entries, evidence, source, key), location=row["location"] if row else None,
        verified=verified, evidence=evidence, parts=parts, history=sorted(_history(versions, writes), key=lambda event: event.at),
    )  # fmt: skip


def _both_ends(entry: RowMapping, scopes: Scopes) -> bool:
    return all(scopes.covers((entry[f"{end}_source"], *parse_key(entry[f"{end}_path"]))) for end in ("origin", "target"))


def _row(connection: Connection, source: str, path: Path, at: int) -> RowMapping | None:
    for is_table in (True, False):
        row = records.get(connection, source, path, is_table=is_table, revision=at)
        if row is not None:
            return row
    return None


def _verified(connection: Connection, row: RowMapping | None) -> str | None:
    if row is None or not row["canonical"]:
        return None
    found = datasets.states(connection, [row["canonical"]]).get(row["canonical"])
    return str(found["state"]) if found else None


def _above(path: Path) -> list[str]:
    return [path_key(above) for above in ancestors(path)]


def _evidence(path: Path, known: Mapping[str, Coverage], crawled_at: float | None) -> Evidence:
    near = next((known[key] for key in _above(path) if key in known and known[key].found), None)
    if near is None:
        return Evidence("", "unread", "no listing of anything above it is in the index", False, crawled_at)
    reason = near.presence.reason
    if near.presence.revision is not None:
        reason = f"read in revision {near.presence.revision}, and the feed of changes has named nothing in it since"
    proves = covered(path, {key: each.as_read() for key, each in known.items()})
    return Evidence(near.key, near.presence.state.value, reason, proves, crawled_at)


def _summary(
    row: RowMapping | None, versions: Sequence[trace.Version], entries: Sequence[RowMapping], evidence: Evidence,
    source: str, key: str,
) -> str:  # fmt: skip
    if row is not None:
        maker = next((e for e in entries if e["target_source"] == source and e["target_path"] == key), None)
        if maker is None:
            return f"{source} has it, and no mirror of ours put it there"
        return (
            f"{source} has it since mirror {maker['mirror']} declared it from {maker['origin_source']}${maker['origin_path']}"
        )
    where = f"the listing of {evidence.namespace or 'the root'}"
    if not evidence.proves:
        return f"it is not known whether {source} has it: {where} is {evidence.state}" + (
            f" ({evidence.reason})" if evidence.reason else ""
        )
    before = "had it and has it no more" if versions else "never had it"
    if evidence.state == CoverageState.CARRIED.value:
        return f"{source} {before}: {where}, {evidence.reason}, does not name it"
    return f"{source} {before}: {where} is complete and does not name it"


def _parts(
    connection: Connection,
    rules: Mapping[str, MirrorRule],
    source: str,
    path: Path,
    entries: Sequence[RowMapping],
    *,
    there: bool,
) -> Iterator[Part]:
    key = path_key(path)
    for name, rule in rules.items():
        roles = [role for role, at in (("origin", rule.origin), ("target", rule.target)) if at == source]
        for role in roles:
            mine = [e for e in entries if e["mirror"] == name and e[f"{role}_source"] == source and e[f"{role}_path"] == key]
            part = _part(connection, rule, role, path, mine, there=there)
            if part is not None:
                yield part


def _part(
    connection: Connection, rule: MirrorRule, role: str, path: Path, mine: Sequence[RowMapping], *, there: bool
) -> Part | None:
    key, other = path_key(path), "target" if role == "origin" else "origin"
    newest = trace.newest_plan(connection, rule.name)
    planned = _planned(newest, role, key)
    if not mine and planned is None and (role == "target" or not there):
        return None
    far = _far(rule, other, mine[0] if mine else planned)
    origin_path = mine[0]["origin_path"] if mine else key
    seen = trace.misses(connection, rule.origin, origin_path) if mine else []
    waiting = _waiting(connection, newest, planned)
    reason, following = _next(rule, role, path, newest, planned, waiting, bool(mine))
    return Part(
        mirror=rule.name, role=role, other=far, in_ledger=bool(mine), next=following, reason=reason,
        plan=newest[0]["digest"] if newest else None, plan_state=newest[0]["state"] if newest else None,
        misses=counted_misses(seen, rule.min_miss_interval),
    )  # fmt: skip


def _far(rule: MirrorRule, other: str, counterpart: Mapping[str, Any] | RowMapping | None) -> str | None:
    """The object at the mirror's other end; a refusal may name none."""
    if counterpart is None or not counterpart[f"{other}_path"]:
        return None
    source = counterpart.get(f"{other}_source") or rule.origin
    return f"{source}${counterpart[f'{other}_path']}"


def _planned(newest: tuple[RowMapping, dict[str, Any]] | None, role: str, key: str) -> dict[str, Any] | None:
    """What the newest plan says of the object: a change, else a refusal."""
    if newest is None:
        return None
    body = newest[1]
    return next((item for item in (*body["changes"], *body["refusals"]) if item[f"{role}_path"] == key), None)


def _waiting(
    connection: Connection, newest: tuple[RowMapping, dict[str, Any]] | None, planned: Mapping[str, Any] | None
) -> Waiting | None:
    """What keeps the planned change from going now."""
    if newest is None or planned is None or "action" not in planned:
        return None
    number = next(number for number, each in enumerate(newest[1]["changes"]) if each is planned)
    return next((each for each in approvals.released(connection, newest[0]).waiting if each.number == number), None)


def _next(
    rule: MirrorRule, role: str, path: Path, newest: tuple[RowMapping, dict[str, Any]] | None,
    planned: Mapping[str, Any] | None, waiting: Waiting | None, in_ledger: bool,
) -> tuple[str | None, str]:  # fmt: skip
    """The reason code, if it was refused, and what happens next."""
    if newest is None:
        return None, f"no plan of this mirror was made yet: federator plan {rule.name}"
    if planned is None:
        if in_ledger:
            return None, "nothing: both ends are as the mirror wants them"
        taken = role == "target" or selected(rule, path)
        return None, "the next plan decides" if taken else "nothing: the mirror's include and exclude leave it out"
    if "action" not in planned:
        return planned["reason"], f"left as it is: {planned['detail']}"
    what = f"{planned['action']}: {planned['reason']}"
    state, digest = newest[0]["state"], newest[0]["digest"][:12]
    if state == "applied":
        return None, f"nothing: {what}, carried out by plan {digest}"
    if state == "rejected" and (waiting is not None or not newest[1].get("holds")):
        return None, f"{what}; rejected by {newest[0]['decided_by']}, until a plan reads something else"
    if waiting is not None:
        return waiting.reason, f"{what}; waits for approval ({waiting.hold}): federator plans approve {digest}"
    return None, f"{what}; the next sync of {rule.name} carries it out"


def _history(versions: Sequence[trace.Version], writes: Sequence[RowMapping]) -> Iterator[Event]:
    before: trace.Version | None = None
    for version in versions:
        again = before is not None and before.ended == version.began
        what = "changed" if again else "appeared"
        detail = f"revision {version.began}"
        if again and before is not None and before.row["location"] != version.row["location"]:
            detail += f", location {before.row['location']} → {version.row['location']}"
        yield Event(version.began_at or 0.0, version.began_by or "", what, detail)
        before = version
    for one, following in zip_longest(versions, versions[1:]):
        if one.ended is not None and (following is None or following.began != one.ended):
            yield Event(one.ended_at or 0.0, one.ended_by or "", "gone", f"revision {one.ended}")
    for row in writes:
        change = json.loads(row["change"])
        detail = "; ".join(filter(None, (change["reason"], row["message"])))
        target = path_key((row["target_source"], *parse_key(row["target_path"])))
        yield Event(row["intent_at"], row["run_id"], f"{row['action']} {target}: {row['state']}", detail, row["mirror"])
