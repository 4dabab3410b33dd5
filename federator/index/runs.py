"""Runs and their Outcomes per source: one row each, readable while the run is going.

A run holds the lease ``run:<id>`` for its life, which ends with its process: whoever gets that lease knows that the process is gone.
"""

from __future__ import annotations

import getpass
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, insert, select, update

from federator.connector import StateError
from federator.index import audit_log
from federator.index import notices as outbox
from federator.index import tables as t
from federator.index.engine import Index
from federator.index.leases import LeaseHeld, forget, hold
from federator.model.notices import Event, Notice

_DIED = "its process ended before it did"
_OF_RUN = {"failed": Event.RUN_FAILED, "partial": Event.RUN_PARTIAL, "interrupted": Event.RUN_INTERRUPTED}
_OF_SOURCE = {"ok": Event.SOURCE_RECOVERED, "partial": Event.SOURCE_PARTIAL, "failed": Event.SOURCE_FAILED}


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run in progress."""

    id: str
    kind: str
    actor: str


@contextmanager
def begun(index: Index, kind: str, *, trigger: str = "cli", actor: str | None = None) -> Iterator[RunHandle]:
    """A run from its beginning to its process's end; within, ``finish`` says how it went."""
    run = _new(kind, actor)
    try:
        # Held before anybody can read of the run.
        with hold(index, _lease(run.id)):
            yield _record(index, run, trigger)
    finally:
        forget(index, _lease(run.id))


def start(index: Index, kind: str, *, trigger: str = "cli", actor: str | None = None) -> RunHandle:
    """Records the beginning of a run that nothing holds: one that is finished at once."""
    return _record(index, _new(kind, actor), trigger)


def finish_dead(index: Index) -> list[str]:
    """Finishes, as ``interrupted``, the runs whose process is gone; returns their ids."""
    columns = (t.run.c.id, t.run.c.kind, t.run.c.actor)
    with index.read() as connection:
        unfinished = connection.execute(select(*columns).where(t.run.c.finished_at.is_(None)).order_by(t.run.c.id)).all()
    dead = []
    for run in (RunHandle(*row) for row in unfinished):
        with suppress(LeaseHeld):
            with hold(index, _lease(run.id)):
                # It may have ended by itself since the row was read.
                if going(index, run.id):
                    finish(index, run, "interrupted", summary={}, error=_DIED)
                    dead.append(run.id)
            forget(index, _lease(run.id))
    return dead


def finish(
    index: Index,
    run: RunHandle,
    state: str,
    *,
    summary: Mapping[str, Any],
    error: str | None = None,
    notices: Iterable[Notice] = (),
) -> None:
    """Records the end: ``ok``, ``partial``, ``failed``, ``held`` or ``interrupted``; with it, ``notices`` of what went wrong within."""
    values = {"state": state, "finished_at": time.time(), "summary": json.dumps(summary), "error": error, "progress": None}
    with index.write() as connection:
        connection.execute(update(t.run).where(t.run.c.id == run.id).values(values))
        detail = {"state": state, "summary": dict(summary), "error": error}
        audit_log.append(connection, "run_finished", actor=run.actor, run_id=run.id, subject=run.kind, detail=detail)
        outbox.add(connection, [*_told(run, state, summary, error), *notices])


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
    """Records what the run did with one source (columns of ``run_source``). A source that fails, or does no more, is a notice."""
    s = t.run_source.c
    last = select(s.state).where(s.source == source).order_by(s.run_id.desc()).limit(1)
    with index.write() as connection:
        before = connection.execute(last).scalar() or "ok"
        connection.execute(insert(t.run_source), [{"run_id": run.id, "source": source, **values}])
        event = _OF_SOURCE.get(values["state"])
        if event is not None and values["state"] != before:
            message = str(values.get("message") or f"it was {before}, and is {values['state']}")
            outbox.add(connection, [Notice(event, source, message, source=source, run_id=run.id)])


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


def _told(run: RunHandle, state: str, summary: Mapping[str, Any], error: str | None) -> Iterator[Notice]:
    event = _OF_RUN.get(state)
    if event is not None:
        errors = "; ".join(f"{subject}: {text}" for subject, text in (summary.get("errors") or {}).items())
        yield Notice(event, f"{run.kind} {run.id}", error or errors or f"it ended as {state}", run_id=run.id)


def _new(kind: str, actor: str | None) -> RunHandle:
    """The id sorts by time."""
    return RunHandle(f"{int(time.time() * 1000):011x}-{uuid.uuid4().hex[:8]}", kind, actor or getpass.getuser())


def _record(index: Index, run: RunHandle, trigger: str) -> RunHandle:
    row = {
        "id": run.id, "kind": run.kind, "state": "running", "trigger": trigger, "actor": run.actor, "started_at": time.time(),
    }  # fmt: skip
    with index.write() as connection:
        connection.execute(insert(t.run), [row])
        audit_log.append(
            connection, "run_started", actor=run.actor, run_id=run.id, subject=run.kind, detail={"trigger": trigger}
        )
    return run


def _lease(run_id: str) -> str:
    return f"run:{run_id}"
