"""Retention: closed rows that no moment worth keeping needs are removed, source by source, in chunks, under the source's lease.

What a source's revision shows, and what changed since, is told by the rows that were open then or later. So a row that was closed by
the oldest revision to keep, its *horizon*, is in no answer about that revision or a later one. The horizon is set first: who asks for
something older is told so, also while rows are being removed. Revisions, runs, journal and audit are never touched.

How places had been found is of no source: it goes by time alone, and what is not kept is shown as not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Table, delete, func, select, update

from federator.index import audit_log, looks, runs
from federator.index import tables as t
from federator.index.engine import Index
from federator.index.leases import Lease
from federator.index.moments import ASIDE

CHUNK = 20_000

v = t.revision.c


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed of one source; ``horizon`` is the oldest revision that is left, ``since`` when it was published."""

    source: str
    horizon: int
    since: float | None
    records: int
    coverage: int


def cutoff(index: Index, now: float, *, keep_seconds: float | None, keep_runs: int) -> float | None:
    """The time from which on everything is kept: so long ago, and no later than the beginning of the last ``keep_runs`` runs that
    looked at catalogs. None: nothing may go."""
    if keep_seconds is None and not keep_runs:
        return None
    at = now if keep_seconds is None else now - keep_seconds
    if not keep_runs:
        return at
    query = select(t.run.c.started_at).where(t.run.c.kind.not_in(ASIDE)).order_by(t.run.c.id.desc()).limit(keep_runs)
    with index.read() as connection:
        began = list(connection.execute(query).scalars())
    return min(at, *began) if len(began) == keep_runs else None


def sources(index: Index) -> list[str]:
    """Every source in the index, by name."""
    with index.read() as connection:
        return list(connection.execute(select(t.source.c.name).order_by(t.source.c.name)).scalars())


def prune(index: Index, lease: Lease, source: str, before: float, run: runs.RunHandle) -> Pruned:
    """Removes what only states of a source older than ``before`` had; ``lease`` is the source's."""
    with index.write() as connection:
        lease.check(connection)
        horizon = _horizon(connection, source, before)
        connection.execute(update(t.source).where(t.source.c.name == source).values(horizon=horizon))
        since = connection.execute(select(v.published_at).where(v.source == source, v.number == horizon)).scalar()
    removed = [_remove(index, lease, table, source, horizon) for table in (t.record, t.coverage)]
    found = Pruned(source, horizon, since, *removed)
    if any(removed):
        detail = {"horizon": horizon, "since": since, "records": removed[0], "coverage": removed[1]}
        with index.write() as connection:
            audit_log.append(connection, "history_pruned", actor=run.actor, run_id=run.id, subject=source, detail=detail)
    return found


def prune_looks(index: Index, before: float, run: runs.RunHandle) -> int:
    """Removes how places had been found, where they were found otherwise before a time; returns how many such rows."""
    with index.write() as connection:
        looks.keep_from(connection, before)
    removed = 0
    while number := _remove_looks(index, before):
        removed += number
    if removed:
        with index.write() as connection:
            detail = {"since": before, "looks": removed}
            audit_log.append(connection, "history_pruned", actor=run.actor, run_id=run.id, subject="datasets", detail=detail)
    return removed


def _remove_looks(index: Index, before: float) -> int:
    """One chunk, by time: the first rows, with all of the last one's."""
    p = t.dataset_past.c
    first = select(p.until).where(p.until <= before).order_by(p.until).limit(CHUNK).subquery()
    with index.write() as connection:
        end = connection.execute(select(func.max(first.c.until))).scalar()
        return 0 if end is None else connection.execute(delete(t.dataset_past).where(p.until <= end)).rowcount


def _horizon(connection: Connection, source: str, before: float) -> int:
    """The revision that was current at a time, or the horizon of a longer cut; never one that is not published."""
    then = select(func.max(v.number)).where(v.source == source, v.state == "published", v.published_at <= before)
    now: int = connection.execute(select(t.source.c.horizon).where(t.source.c.name == source)).scalar_one()
    return max(now, connection.execute(then).scalar() or 0)


def _remove(index: Index, lease: Lease, table: Table, source: str, horizon: int) -> int:
    c = table.c
    some = select(c.id).where(c.source == source, c.valid_to <= horizon).limit(CHUNK)
    removed, number = 0, CHUNK
    while number == CHUNK:
        with index.write() as connection:
            lease.check(connection)
            number = connection.execute(delete(table).where(c.id.in_(some))).rowcount
        removed += number
    return removed
