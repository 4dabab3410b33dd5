"""Counts over the index for the service's metrics, cheap enough for every scrape."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, union_all

from federator.store import call_metrics, leases, notifications, plans, records
from federator.store import tables as t
from federator.store.call_metrics import OperationLatency
from federator.store.engine import Index
from federator.store.leases import LeaseState
from federator.store.sql import unindexed
from federator.views import plan_outcomes

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """Counts of a source. ``age`` is the time since its last crawl in seconds, None if there was none.

    ``namespaces`` are counted by the state of their coverage.
    """

    name: str
    state: str
    age: float | None
    namespaces: dict[str, int]
    tables: int


@dataclass(frozen=True, slots=True)
class PendingPlan:
    """The newest plan of a mirror: pending changes by action, refusals by reason, and whether it is held."""

    mirror: str
    changes: dict[str, int]
    refusals: dict[str, int]
    held: bool


@dataclass(frozen=True, slots=True)
class ServiceMetrics:
    """All counts at one time. Ages are in seconds.

    ``runs`` (by kind and state) and ``outcomes`` (by mirror and state) are those of the last 24 hours. ``unanchored`` counts the sealed
    events after the newest published head. ``drift`` counts open drift by kind, severity and source. ``leases`` are by name.
    ``notifications`` counts by channel and state; ``notices`` counts the pending notices. ``latencies`` and ``errors`` cover all
    calls that were ever made.
    """

    sources: list[SourceMetrics]
    plans: list[PendingPlan]
    runs: dict[tuple[str, str], int]
    outcomes: dict[tuple[str, str], int]
    queued: int
    queue_age: float
    leading: bool
    sealed: int
    unsealed: int
    unanchored: int
    drift: dict[tuple[str, str, str], int]
    leases: dict[str, LeaseState]
    notifications: dict[tuple[str, str], int]
    notices: int
    latencies: list[OperationLatency]
    errors: dict[tuple[str, str, str], int]


def read_metrics(index: Index) -> ServiceMetrics:
    """Return the current counts."""
    now = time.time()
    lease_states = leases.list_lease_states(index)
    with index.read() as connection:
        queued = t.request.c.state == "queued"
        length, oldest = connection.execute(select(func.count(), func.min(t.request.c.created_at)).where(queued)).one()
        sealed = connection.execute(select(func.max(t.audit_event.c.seq))).scalar() or 0
        heads = select(func.max(t.audit_head.c.seq)).where(t.audit_head.c.anchored_at.is_not(None))
        anchored = connection.execute(heads).scalar() or 0
        recent_runs = select(t.run.c.kind, t.run.c.state, func.count()).where(t.run.c.started_at >= now - _DAY_SECONDS)
        outcomes = select(t.journal.c.mirror, t.journal.c.state, func.count()).where(
            t.journal.c.intent_at >= now - _DAY_SECONDS
        )
        return ServiceMetrics(
            sources=_source_metrics(connection, now),
            plans=_pending_plans(connection),
            runs={(kind, state): n for kind, state, n in connection.execute(recent_runs.group_by(t.run.c.kind, t.run.c.state))},
            outcomes={
                (mirror, state): n
                for mirror, state, n in connection.execute(outcomes.group_by(t.journal.c.mirror, t.journal.c.state))
            },
            queued=length,
            queue_age=max(0.0, now - oldest) if oldest is not None else 0.0,
            leading="scheduler" in lease_states and lease_states["scheduler"].is_held,
            sealed=sealed,
            unsealed=connection.execute(select(func.count()).select_from(t.audit_outbox)).scalar_one(),
            unanchored=sealed - anchored,
            drift=_count_drift(connection),
            leases=lease_states,
            notifications=notifications.count_by_channel(connection),
            notices=connection.execute(select(func.count()).select_from(t.notice)).scalar_one(),
            latencies=call_metrics.list_latencies(connection),
            errors=call_metrics.count_errors(connection),
        )


def _source_metrics(connection: Connection, now: float) -> list[SourceMetrics]:
    metrics = []
    for row in connection.execute(select(t.source).order_by(t.source.c.name)).mappings().all():
        age = max(0.0, now - row["crawled_at"]) if row["crawled_at"] is not None else None
        _, tables = records.count_objects(connection, row["name"])
        metrics.append(
            SourceMetrics(row["name"], row["state"], age, _count_coverage(connection, row["name"], row["revision"]), tables)
        )
    return metrics


def _count_coverage(connection: Connection, source: str, revision: int) -> dict[str, int]:
    c = t.coverage.c
    begun = select(c.presence, c.detail, func.count().label("n")).where(c.source == source, unindexed(c.valid_from) <= revision)
    begun = begun.group_by(c.presence, c.detail)
    # Two branches, as in ``coverage.read_coverage``: each reads a partial index.
    valid = union_all(begun.where(c.valid_to.is_(None)), begun.where(c.valid_to > revision))
    counted: Counter[str] = Counter()
    for presence, detail, n in connection.execute(valid):
        # The worse of the two states: a listing that is not complete, or else the state of the children.
        counted[presence if presence != "complete" else detail] += n
    return dict(counted)


def _count_drift(connection: Connection) -> dict[tuple[str, str, str], int]:
    x = t.drift.c
    query = select(x.kind, x.severity, x.source, func.count()).where(x.resolved_at.is_(None))
    return {tuple(row[:3]): row[3] for row in connection.execute(query.group_by(x.kind, x.severity, x.source))}


def _pending_plans(connection: Connection) -> list[PendingPlan]:
    p = t.plan.c
    newest = select(p.mirror, func.max(p.created_at).label("at")).group_by(p.mirror).subquery()
    same = (p.mirror == newest.c.mirror) & (p.created_at == newest.c.at)
    query = select(p.mirror, p.digest, p.state).select_from(t.plan.join(newest, same)).order_by(p.mirror)
    rows = connection.execute(query).all()
    done = plan_outcomes.count_done(connection, [digest for _, digest, state in rows if state in plans.OPEN_STATES])
    pending = []
    for mirror, digest, state in rows:
        counts = plans.count_plan(connection, digest)
        left = dict(Counter(counts.changes) - Counter(done.get(digest, {}))) if state in plans.OPEN_STATES else {}
        pending.append(PendingPlan(mirror, left, counts.refusals, state == "held"))
    return pending
