"""History of one object: its versions, and its writes in the journal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, and_, or_, select

from federator.store import tables as t
from federator.store.field_types import columns_of

# The most versions and writes of one object; older ones are left out.
_MAX_ENTRIES = 50


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One state of an object, from ``began_revision`` to the revision ``ended``. Times are seconds since the epoch."""

    location: str | None
    began_revision: int
    began_at: float | None
    began_by: str | None
    ended: int | None
    ended_at: float | None
    ended_by: str | None


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """A line of the journal: a write to the object, or to its copy by a mirror. ``change`` is JSON."""

    mirror: str
    run_id: str
    action: str
    target_source: str
    target_path: str
    change: str
    state: str
    message: str | None
    intent_at: float


_WRITE_COLUMNS = columns_of(t.journal, ObjectWrite)


def list_versions(connection: Connection, source: str, path: str) -> list[ObjectVersion]:
    """List the published versions of the table or namespace at a path, oldest first."""
    r, first, last = t.record.c, t.revision.alias("first"), t.revision.alias("last")
    begun = and_(first.c.source == r.source, first.c.number == r.valid_from)
    ended = and_(last.c.source == r.source, last.c.number == r.valid_to, last.c.published_at.is_not(None))
    joined = t.record.join(first, begun).outerjoin(last, ended)
    columns = [
        r.location, first.c.number.label("began_revision"), first.c.published_at.label("began_at"),
        first.c.run_id.label("began_by"), last.c.number.label("ended"),
        last.c.published_at.label("ended_at"), last.c.run_id.label("ended_by"),
    ]  # fmt: skip
    query = select(*columns).select_from(joined)
    query = query.where(r.source == source, r.path == path, first.c.published_at.is_not(None))
    rows = connection.execute(query.order_by(r.valid_from.desc()).limit(_MAX_ENTRIES)).mappings()
    return [ObjectVersion(**row) for row in rows][::-1]


def list_writes(
    connection: Connection, source: str, path: str, origin_mirrors: list[str], *, mirrors: Collection[str] | None
) -> list[ObjectWrite]:
    """List the newest journal lines of an object, oldest first: as a target, and as an origin of ``origin_mirrors``.

    Lines of other mirrors than ``mirrors`` are left out; None: lines of all mirrors.
    """
    j = t.journal.c
    same_object = or_(
        and_(j.target_source == source, j.target_path == path), and_(j.mirror.in_(origin_mirrors), j.origin_path == path)
    )
    query = select(*_WRITE_COLUMNS).where(same_object).order_by(j.intent_at.desc()).limit(_MAX_ENTRIES)
    if mirrors is not None:
        query = query.where(j.mirror.in_(mirrors))
    return [ObjectWrite(**row) for row in connection.execute(query).mappings()][::-1]
