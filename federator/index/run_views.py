"""Runs as a caller may see them: those that read or wrote something inside its scope, or that it asked for itself.

Of a run that a caller does not see whole, the state is that of what it sees, and there is no summary, progress or error: they speak of
all sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, func, or_, select, true

from federator.connector import StateError
from federator.index import tables as t
from federator.index import visible
from federator.index.engine import Index
from federator.model.scopes import Scopes

_ENDED = ("ok", "partial", "failed", "held")
_LINES = 10_000

run, part, line = t.run.c, t.run_source.c, t.journal.c


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: the name that stands in its own runs, what it may see, and the mirrors that it may be told of.

    ``origins`` are the origin sources of the mirrors both of whose sources it sees at least a part of.
    """

    name: str
    scopes: Scopes
    mirrors: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole_sources(self) -> list[str]:
        """A source's counts speak of all of it, so its row is shown to who may see all of it."""
        return sorted({prefix[0] for prefix in self.scopes.prefixes if len(prefix) == 1})


def recent(index: Index, viewer: Viewer, *, limit: int = 20, before: str | None = None) -> list[dict[str, Any]]:
    """Runs, newest first, as ``get`` has them without their parts; keyset paging with ``before`` = the last id."""
    with index.read() as connection:
        query = select(t.run).where(_seen(connection, viewer)).order_by(run.id.desc()).limit(limit)
        if before is not None:
            query = query.where(run.id < before)
        found = connection.execute(query).mappings().all()
        return [_told(row, viewer, *_parts(connection, viewer, row["id"])) for row in found]


def get(index: Index, viewer: Viewer, run_id: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """One run by its whole id, what it did to each source, and its journal's lines. Raises StateError, also for a run that is not
    the viewer's to see."""
    with index.read() as connection:
        row = connection.execute(select(t.run).where(run.id == run_id, _seen(connection, viewer))).mappings().first()
        if row is None:
            raise StateError(f"no run has the id {run_id!r}", hint="give the whole id")
        sources = _sources(connection, viewer, run_id)
        query = select(t.journal).where(line.run_id == run_id, _written(connection, viewer)).order_by(line.seq).limit(_LINES)
        lines = [_change(found, viewer) for found in connection.execute(query).mappings()]
    return _told(row, viewer, [found["state"] for found in sources], [found["state"] for found in lines]), sources, lines


def progress(index: Index, viewer: Viewer, run_id: str) -> dict[str, Any]:
    """One run with what it did to each source so far, and how many of its writes are in which state. Raises StateError as ``get``."""
    with index.read() as connection:
        row = connection.execute(select(t.run).where(run.id == run_id, _seen(connection, viewer))).mappings().first()
        if row is None:
            raise StateError(f"no run has the id {run_id!r}", hint="give the whole id")
        sources = _sources(connection, viewer, run_id)
        counted = (
            select(line.state, func.count()).where(line.run_id == run_id, _written(connection, viewer)).group_by(line.state)
        )
        writes = dict(connection.execute(counted.order_by(line.state)).tuples().all())
    return {**_told(row, viewer, [found["state"] for found in sources], list(writes)), "sources": sources, "writes": writes}


def touched(index: Index, viewer: Viewer, run_ids: Sequence[str]) -> set[str]:
    """The sources that some runs read or wrote, as far as the viewer sees it."""
    read = select(part.source).where(part.run_id.in_(run_ids))
    if not viewer.scopes.everything:
        read = read.where(part.source.in_(viewer.whole_sources))
    with index.read() as connection:
        wrote = select(line.target_source).where(line.run_id.in_(run_ids), _written(connection, viewer))
        return set(connection.execute(read.union(wrote)).scalars())


def _seen(connection: Connection, viewer: Viewer) -> ColumnElement[bool]:
    if viewer.scopes.everything:
        return true()
    read = exists().where(part.run_id == run.id, part.source.in_(viewer.whole_sources))
    wrote = exists().where(line.run_id == run.id, _written(connection, viewer))
    return or_(run.actor == viewer.name, read, wrote)


def _written(connection: Connection, viewer: Viewer) -> ColumnElement[bool]:
    return visible.inside(connection, viewer.scopes, line.target_source, line.target_path)


def _parts(connection: Connection, viewer: Viewer, run_id: str) -> tuple[Sequence[str], Sequence[str]]:
    """The states of what the viewer sees of a run; only asked where they make the run's."""
    if viewer.scopes.everything:
        return (), ()
    states = select(line.state).where(line.run_id == run_id, _written(connection, viewer)).distinct()
    return [row["state"] for row in _sources(connection, viewer, run_id)], connection.execute(states).scalars().all()


def _sources(connection: Connection, viewer: Viewer, run_id: str) -> list[dict[str, Any]]:
    query = select(t.run_source).where(part.run_id == run_id).order_by(part.source)
    if not viewer.scopes.everything:
        query = query.where(part.source.in_(viewer.whole_sources))
    return [dict(row) for row in connection.execute(query).mappings()]


def _change(row: RowMapping, viewer: Viewer) -> dict[str, Any]:
    told = viewer.scopes.everything or row["mirror"] in viewer.mirrors
    return {**row, "origin_path": row["origin_path"] if told else None}


def _told(row: RowMapping, viewer: Viewer, sources: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    if viewer.scopes.everything:
        return {**row, "summary": json.loads(row["summary"]) if row["summary"] else None}
    state = row["state"]
    if state in _ENDED and (sources or lines):
        fine = [text == "ok" for text in sources] + [text not in ("failed", "needs_adoption") for text in lines]
        state = "ok" if all(fine) else "partial" if any(fine) else "failed"
    return {**row, "state": state, "progress": None, "summary": None, "error": None}
