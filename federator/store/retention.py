"""Retention: delete closed rows that no kept snapshot needs.

Rows are deleted source by source, in chunks, under the source's lease. A kept snapshot, and a difference between two of them, needs
only rows that were open at the oldest kept revision or later. This revision is the source's *horizon*. The horizon is set before rows
are deleted, so a query of an older state fails also during the deletion. Revisions, runs, the journal and the audit log are never
deleted.

Earlier verification states belong to no source. They are deleted by time only, and deleted states are shown as unknown. The present
state of a location is deleted if no kept row declares the location in a source with the access through which it was verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, delete, except_, func, select, tuple_, update

from federator.model.audit_kinds import AuditKind
from federator.store import audit_log, runs, verifications
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.leases import Lease
from federator.store.snapshots import MAINTENANCE_RUN_KINDS
from federator.store.stores import select_access

#: the most rows that one transaction deletes
CHUNK = 20_000

v = t.revision.c


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The numbers of deleted rows of one source. ``horizon`` is the oldest kept revision, ``since`` its time of publication."""

    source: str
    horizon: int
    since: float | None
    records: int
    coverage: int


def retention_cutoff(index: Index, now: float, *, keep_seconds: float | None, keep_runs: int) -> float | None:
    """Return the time from which everything is kept. None if nothing may be deleted.

    Everything of the last ``keep_seconds`` is kept, and everything since the start of the last ``keep_runs`` runs that read or changed
    catalogs.
    """
    if keep_seconds is None and not keep_runs:
        return None
    cutoff = now if keep_seconds is None else now - keep_seconds
    if not keep_runs:
        return cutoff
    query = (
        select(t.run.c.started_at)
        .where(t.run.c.kind.not_in(MAINTENANCE_RUN_KINDS))
        .order_by(t.run.c.id.desc())
        .limit(keep_runs)
    )
    with index.read() as connection:
        starts = list(connection.execute(query).scalars())
    return min(cutoff, *starts) if len(starts) == keep_runs else None


def list_source_names(index: Index) -> list[str]:
    """List the names of all sources in the index, sorted."""
    with index.read() as connection:
        return list(connection.execute(select(t.source.c.name).order_by(t.source.c.name)).scalars())


def prune_source(index: Index, lease: Lease, source: str, before: float, run: runs.RunHandle) -> PruneResult:
    """Delete the rows that only states of a source older than ``before`` need. ``lease`` is the source's."""
    with index.write() as connection:
        lease.require_held(connection)
        horizon = _horizon_revision(connection, source, before)
        connection.execute(update(t.source).where(t.source.c.name == source).values(horizon=horizon))
        since = connection.execute(select(v.published_at).where(v.source == source, v.number == horizon)).scalar()
    removed = [_delete_closed_rows(index, lease, table, source, horizon) for table in (t.record, t.coverage)]
    result = PruneResult(source, horizon, since, *removed)
    _record_removed(
        index, run, source, sum(removed), {"horizon": horizon, "since": since, "records": removed[0], "coverage": removed[1]}
    )
    return result


def prune_verification_history(index: Index, before: float, run: runs.RunHandle) -> int:
    """Delete the verification states that ended before a time. Return their number."""
    with index.write() as connection:
        verifications.set_horizon(connection, before)
    removed = 0
    while deleted := _delete_verification_chunk(index, before):
        removed += deleted
    return _record_removed(index, run, "datasets", removed, {"since": before, "looks": removed})


def _record_removed(index: Index, run: runs.RunHandle, subject: str, removed: int, detail: Mapping[str, Any]) -> int:
    """Record in the audit log that rows were removed, if any were. Return their number."""
    if removed:
        with index.write() as connection:
            audit_log.append_event(
                connection, AuditKind.HISTORY_PRUNED, actor=run.actor, run_id=run.id, subject=subject, detail=detail
            )
    return removed


def _delete_verification_chunk(index: Index, before: float) -> int:
    """Delete the oldest rows: one chunk, and further rows with the time of its last row. Return their number."""
    p = t.dataset_past.c
    first = select(p.until).where(p.until <= before).order_by(p.until).limit(CHUNK).subquery()
    with index.write() as connection:
        end = connection.execute(select(func.max(first.c.until))).scalar()
        return 0 if end is None else connection.execute(delete(t.dataset_past).where(p.until <= end)).rowcount


def prune_unused_verifications(index: Index, before: float, run: runs.RunHandle) -> int:
    """Delete the present verification states that are older than a time and that no kept row of any source shows. Return their number.

    Call it after ``prune_source``, which deletes rows that declare such locations.
    """
    removed = 0
    while deleted := _delete_unused_chunk(index, before):
        removed += deleted
    return _record_removed(index, run, "datasets", removed, {"before": before, "unused": removed})


def _delete_unused_chunk(index: Index, before: float) -> int:
    d, r = t.dataset.c, t.record.c
    declared = select(r.canonical, select_access(r.source, r.canonical)).where(r.canonical.is_not(None))
    unused = except_(select(d.canonical, d.access).where(d.checked_at < before), declared).limit(CHUNK)
    with index.write() as connection:
        return connection.execute(
            delete(t.dataset).where(tuple_(d.canonical, d.access).in_(unused), d.checked_at < before)
        ).rowcount


def _horizon_revision(connection: Connection, source: str, before: float) -> int:
    """Return the revision that was published at a time, or the present horizon if that is newer."""
    newest = select(func.max(v.number)).where(v.source == source, v.state == "published", v.published_at <= before)
    horizon: int = connection.execute(select(t.source.c.horizon).where(t.source.c.name == source)).scalar_one()
    return max(horizon, connection.execute(newest).scalar() or 0)


def _delete_closed_rows(index: Index, lease: Lease, table: Table, source: str, horizon: int) -> int:
    c = table.c
    chunk = select(c.id).where(c.source == source, c.valid_to <= horizon).limit(CHUNK)
    removed, deleted = 0, CHUNK
    while deleted == CHUNK:
        with index.write() as connection:
            lease.require_held(connection)
            deleted = connection.execute(delete(table).where(c.id.in_(chunk))).rowcount
        removed += deleted
    return removed
