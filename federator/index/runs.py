"""Runs and their Outcomes per source: one row each, readable while the run is going."""

from __future__ import annotations

import getpass
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, insert, select, update

from federator.connector import StateError
from federator.index import audit_log
from federator.index import tables as t
from federator.index.engine import Index


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run in progress."""

    id: str
    kind: str
    actor: str


def start(index: Index, kind: str, *, trigger: str = "cli", actor: str | None = None) -> RunHandle:
    """Records the beginning of a run. The id sorts by time."""
    now = time.time()
    run = RunHandle(f"{int(now * 1000):011x}-{uuid.uuid4().hex[:8]}", kind, actor or getpass.getuser())
    row = {"id": run.id, "kind": kind, "state": "running", "trigger": trigger, "actor": run.actor, "started_at": now}
    with index.write() as connection:
        connection.execute(insert(t.run), [row])
        audit_log.append(connection, "run_started", actor=run.actor, run_id=run.id, subject=kind, detail={"trigger": trigger})
    return run


def finish(index: Index, run: RunHandle, state: str, *, summary: Mapping[str, Any], error: str | None = None) -> None:
    """Records the end: ``ok``, ``partial``, ``failed``, ``held`` or ``interrupted``."""
    values = {"state": state, "finished_at": time.time(), "summary": json.dumps(summary), "error": error, "progress": None}
    with index.write() as connection:
        connection.execute(update(t.run).where(t.run.c.id == run.id).values(values))
        detail = {"state": state, "summary": dict(summary), "error": error}
        audit_log.append(connection, "run_finished", actor=run.actor, run_id=run.id, subject=run.kind, detail=detail)


def progress(index: Index, run: RunHandle, text: str) -> None:
    """Says what the run is doing, for those who watch the row. A run that has ended stays as it is."""
    going = (t.run.c.id == run.id) & t.run.c.finished_at.is_(None)
    with index.write() as connection:
        connection.execute(update(t.run).where(going).values(progress=text))


def going(index: Index, run_id: str) -> bool:
    """Whether a run has begun and not ended."""
    query = select(t.run.c.id).where(t.run.c.id == run_id, t.run.c.finished_at.is_(None))
    with index.read() as connection:
        return connection.execute(query).scalar() is not None


def source_outcome(index: Index, run: RunHandle, source: str, **values: Any) -> None:
    """Records what the run did with one source (columns of ``run_source``)."""
    with index.write() as connection:
        connection.execute(insert(t.run_source), [{"run_id": run.id, "source": source, **values}])


def recent(index: Index, *, limit: int = 20, before: str | None = None) -> list[RowMapping]:
    """Runs, newest first; keyset paging with ``before`` = the last id."""
    query = select(t.run).order_by(t.run.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(t.run.c.id < before)
    with index.read() as connection:
        return list(connection.execute(query).mappings())


def get(index: Index, run_id: str) -> tuple[RowMapping, list[RowMapping], list[RowMapping]]:
    """One run with its sources and its journal lines; an unambiguous prefix of the id is enough. Raises StateError."""
    with index.read() as connection:
        found = list(
            connection.execute(select(t.run).where(t.run.c.id.startswith(run_id, autoescape=True)).limit(2)).mappings()
        )
        if len(found) != 1:
            what = "no run has" if not found else "several runs have"
            raise StateError(f"{what} the id {run_id!r}", hint="federator runs lists them")
        run_sources = select(t.run_source).where(t.run_source.c.run_id == found[0]["id"]).order_by(t.run_source.c.source)
        lines = select(t.journal).where(t.journal.c.run_id == found[0]["id"]).order_by(t.journal.c.seq).limit(10_000)
        return found[0], list(connection.execute(run_sources).mappings()), list(connection.execute(lines).mappings())
