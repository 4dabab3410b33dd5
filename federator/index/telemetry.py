"""What the service's metrics are made of: counts over the index, cheap enough for every scrape."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, union_all

from federator.index import calls, leases, notifications, plans, records
from federator.index import tables as t
from federator.index.calls import Latency
from federator.index.engine import Index

_DAY = 86_400.0
#: what is still to be done of a plan in one of these states
_PENDING = ("ready", "held", "approved")


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """A source: seconds since its last crawl (None: never), namespaces by what their listing proved, and tables."""

    name: str
    state: str
    age: float | None
    namespaces: dict[str, int]
    tables: int


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """A mirror's newest plan: pending changes by action, refusals by reason, and whether it waits for a person."""

    mirror: str
    changes: dict[str, int]
    refusals: dict[str, int]
    held: bool


@dataclass(frozen=True, slots=True)
class Telemetry:
    """All counts at one time. ``runs`` by kind and state and ``outcomes`` by mirror and state are those of the last 24 hours;
    ``unanchored`` are sealed events after the newest published head; ages are seconds. ``drift`` is what is drifted now, by kind,
    severity and source; ``leases`` say whether they are held, and how often they were taken; ``notifications`` are by channel and
    state, ``notices`` those that nobody was told of yet. ``latencies`` and ``errors`` are of all calls that were ever made."""

    sources: list[SourceCounts]
    plans: list[PlanCounts]
    runs: dict[tuple[str, str], int]
    outcomes: dict[tuple[str, str], int]
    queued: int
    queue_age: float
    leading: bool
    sealed: int
    unsealed: int
    unanchored: int
    drift: dict[tuple[str, str, str], int]
    leases: dict[str, tuple[bool, int]]
    notifications: dict[tuple[str, str], int]
    notices: int
    latencies: list[Latency]
    errors: dict[tuple[str, str, str], int]


def read(index: Index) -> Telemetry:
    """Counts what is there now."""
    now = time.time()
    held = leases.states(index)
    with index.read() as connection:
        queued = t.request.c.state == "queued"
        length, oldest = connection.execute(select(func.count(), func.min(t.request.c.created_at)).where(queued)).one()
        sealed = connection.execute(select(func.max(t.audit_event.c.seq))).scalar() or 0
        heads = select(func.max(t.audit_head.c.seq)).where(t.audit_head.c.anchored_at.is_not(None))
        anchored = connection.execute(heads).scalar() or 0
        recent_runs = select(t.run.c.kind, t.run.c.state, func.count()).where(t.run.c.started_at >= now - _DAY)
        outcomes = select(t.journal.c.mirror, t.journal.c.state, func.count()).where(t.journal.c.intent_at >= now - _DAY)
        return Telemetry(
            sources=_sources(connection, now),
            plans=_plans(connection),
            runs={(kind, state): n for kind, state, n in connection.execute(recent_runs.group_by(t.run.c.kind, t.run.c.state))},
            outcomes={
                (mirror, state): n
                for mirror, state, n in connection.execute(outcomes.group_by(t.journal.c.mirror, t.journal.c.state))
            },
            queued=length,
            queue_age=max(0.0, now - oldest) if oldest is not None else 0.0,
            leading=held.get("scheduler", (False, 0))[0],
            sealed=sealed,
            unsealed=connection.execute(select(func.count()).select_from(t.audit_outbox)).scalar_one(),
            unanchored=sealed - anchored,
            drift=_drift(connection),
            leases=held,
            notifications=notifications.counts(connection),
            notices=connection.execute(select(func.count()).select_from(t.notice)).scalar_one(),
            latencies=calls.latencies(connection),
            errors=calls.errors(connection),
        )


def _sources(connection: Connection, now: float) -> list[SourceCounts]:
    found = []
    for row in connection.execute(select(t.source).order_by(t.source.c.name)).mappings().all():
        age = max(0.0, now - row["crawled_at"]) if row["crawled_at"] is not None else None
        _, tables = records.counts(connection, row["name"])
        found.append(SourceCounts(row["name"], row["state"], age, _coverage(connection, row["name"], row["revision"]), tables))
    return found


def _coverage(connection: Connection, source: str, revision: int) -> dict[str, int]:
    c = t.coverage.c
    # Two branches, as in ``coverage.read``: each reads a partial index.
    begun = select(c.presence, c.detail, func.count().label("n")).where(c.source == source, c.valid_from + 0 <= revision)
    begun = begun.group_by(c.presence, c.detail)
    counted: Counter[str] = Counter()
    for presence, detail, n in connection.execute(
        union_all(begun.where(c.valid_to.is_(None)), begun.where(c.valid_to > revision))
    ):
        counted[presence if presence != "complete" else detail] += n
    return dict(counted)


def _drift(connection: Connection) -> dict[tuple[str, str, str], int]:
    x = t.drift.c
    query = select(x.kind, x.severity, x.source, func.count()).where(x.resolved_at.is_(None))
    return {tuple(row[:3]): row[3] for row in connection.execute(query.group_by(x.kind, x.severity, x.source))}


def _plans(connection: Connection) -> list[PlanCounts]:
    p = t.plan.c
    newest = select(p.mirror, func.max(p.created_at).label("at")).group_by(p.mirror).subquery()
    same = (p.mirror == newest.c.mirror) & (p.created_at == newest.c.at)
    query = select(p.mirror, p.digest, p.state).select_from(t.plan.join(newest, same)).order_by(p.mirror)
    found = []
    for mirror, digest, state in connection.execute(query).all():
        changes, refusals = plans.counts(connection, digest)
        found.append(PlanCounts(mirror, changes if state in _PENDING else {}, refusals, state == "held"))
    return found
