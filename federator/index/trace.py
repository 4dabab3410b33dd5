"""What the index remembers of one object: its versions, the writes made to it, and the ledger's entries for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, or_, select

from federator.index import tables as t

# Of an object with a longer history the newest is shown.
_NEWEST = 50


@dataclass(frozen=True, slots=True)
class Version:
    """One state of an object, from one published revision to the next. Times are seconds since the epoch."""

    row: RowMapping
    began: int
    began_at: float | None
    began_by: str | None
    ended: int | None
    ended_at: float | None
    ended_by: str | None


def versions(connection: Connection, source: str, path: str) -> list[Version]:
    """The versions of the table or namespace at a path, oldest first; published ones only."""
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
    rows = connection.execute(query.order_by(r.valid_from.desc()).limit(_NEWEST)).mappings()
    found = [
        Version(row, row["valid_from"], row["began_at"], row["began_by"], row["ended"], row["ended_at"], row["ended_by"])
        for row in rows
    ]
    return found[::-1]


def writes(connection: Connection, source: str, path: str, origin_mirrors: list[str]) -> list[RowMapping]:
    """The journal's newest lines about an object, oldest first: as a target, and as an origin of some mirrors."""
    j = t.journal.c
    mine = or_(
        and_(j.target_source == source, j.target_path == path), and_(j.mirror.in_(origin_mirrors), j.origin_path == path)
    )
    rows = connection.execute(select(t.journal).where(mine).order_by(j.intent_at.desc()).limit(_NEWEST)).mappings()
    return list(rows)[::-1]


def entries(connection: Connection, source: str, path: str) -> list[RowMapping]:
    """The ledger's entries in which an object is the origin or the target, by mirror."""
    e = t.ledger.c
    mine = or_(and_(e.target_source == source, e.target_path == path), and_(e.origin_source == source, e.origin_path == path))
    return list(connection.execute(select(t.ledger).where(mine).order_by(e.mirror, e.target_path)).mappings())


def newest_plan(connection: Connection, mirror: str) -> tuple[RowMapping, dict[str, Any]] | None:
    """A mirror's newest plan and its body."""
    query = select(t.plan).where(t.plan.c.mirror == mirror).order_by(t.plan.c.created_at.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return (row, json.loads(row["body"])) if row else None


def misses(connection: Connection, source: str, path: str) -> list[float]:
    """When complete listings did not have an object that some mirror copied; seconds since the epoch, ascending."""
    query = select(t.absence.c.misses).where(t.absence.c.source == source, t.absence.c.path == path)
    found = connection.execute(query).scalar()
    return list(json.loads(found)) if found else []
