"""History of one object: its versions, its writes in the journal, and its ledger entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, or_, select

from federator.store import plans
from federator.store import tables as t
from federator.store.plans import StoredPlan

# The most versions and writes of one object; older ones are left out.
_MAX_ENTRIES = 50


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One state of an object, from ``began_revision`` to the revision ``ended``. Times are seconds since the epoch."""

    row: RowMapping
    began_revision: int
    began_at: float | None
    began_by: str | None
    ended: int | None
    ended_at: float | None
    ended_by: str | None


def list_versions(connection: Connection, source: str, path: str) -> list[ObjectVersion]:
    """List the published versions of the table or namespace at a path, oldest first."""
    r, first, last = t.record.c, t.revision.alias("first"), t.revision.alias("last")
    begun = and_(first.c.source == r.source, first.c.number == r.valid_from)
    ended = and_(last.c.source == r.source, last.c.number == r.valid_to, last.c.published_at.is_not(None))
    joined = t.record.join(first, begun).outerjoin(last, ended)
    columns = [
        first.c.published_at.label("began_at"), first.c.run_id.label("began_by"), last.c.number.label("ended"),
        last.c.published_at.label("ended_at"), last.c.run_id.label("ended_by"),
    ]  # fmt: skip
    query = select(t.record, *columns).select_from(joined)
    query = query.where(r.source == source, r.path == path, first.c.published_at.is_not(None))
    rows = connection.execute(query.order_by(r.valid_from.desc()).limit(_MAX_ENTRIES)).mappings()
    versions = [
        ObjectVersion(row, row["valid_from"], row["began_at"], row["began_by"], row["ended"], row["ended_at"], row["ended_by"])
        for row in rows
    ]
    return versions[::-1]


def list_writes(connection: Connection, source: str, path: str, origin_mirrors: list[str]) -> list[RowMapping]:
    """List the newest journal lines of an object, oldest first: as a target, and as an origin of ``origin_mirrors``."""
    j = t.journal.c
    same_object = or_(
        and_(j.target_source == source, j.target_path == path), and_(j.mirror.in_(origin_mirrors), j.origin_path == path)
    )
    rows = connection.execute(select(t.journal).where(same_object).order_by(j.intent_at.desc()).limit(_MAX_ENTRIES)).mappings()
    return list(rows)[::-1]


def find_outcome(connection: Connection, plan: str, change: Mapping[str, Any]) -> RowMapping | None:
    """Return the newest journal line of a plan's change, with ``state``, ``code`` and ``message``. None if it was never started."""
    j = t.journal.c
    query = select(j.state, j.code, j.message).where(
        j.plan == plan,
        j.action == change["action"],
        j.target_source == change["target_source"],
        j.target_path == change["target_path"],
    )
    return connection.execute(query.order_by(j.intent_at.desc())).mappings().first()


def list_ledger_entries(connection: Connection, source: str, path: str) -> list[RowMapping]:
    """List the ledger entries with an object as origin or target, by mirror."""
    e = t.ledger.c
    same_object = or_(
        and_(e.target_source == source, e.target_path == path), and_(e.origin_source == source, e.origin_path == path)
    )
    return list(connection.execute(select(t.ledger).where(same_object).order_by(e.mirror, e.target_path)).mappings())


def find_newest_plan(connection: Connection, mirror: str) -> tuple[StoredPlan, dict[str, Any]] | None:
    """Return the newest plan of a mirror and its parsed body. None if there is none."""
    newest = plans.list_recent_plans(connection, mirror=mirror, limit=1)
    return (newest[0], newest[0].content) if newest else None


def list_misses(connection: Connection, source: str, path: str) -> list[float]:
    """List the times of an origin's misses, in seconds since the epoch, ascending."""
    query = select(t.absence.c.misses).where(t.absence.c.source == source, t.absence.c.path == path)
    misses = connection.execute(query).scalar()
    return list(json.loads(misses)) if misses else []
