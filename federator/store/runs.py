"""Runs and their results per source: one row each, readable during the run.

A run holds the lease ``run:<id>`` until its process ends. A run without an end whose lease has expired is interrupted: any process that
finds it records this end, and deletes the lease.
"""

from __future__ import annotations

import getpass
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, RowMapping, exists, func, insert, literal, select, update

from federator.model.audit_kinds import AuditKind
from federator.model.notices import Notice, NoticeEvent
from federator.store import audit_log
from federator.store import notices as outbox
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.failures import UnknownId
from federator.store.field_types import OptionalTimestamp, Timestamp, columns_of
from federator.store.leases import LEASE_TTL_SECONDS, RUN_PREFIX, acquire_lease, delete_lease, list_expired_leases

# Maximum number of writes of one run that are returned.
_MAX_CHANGES = 10_000
_PROCESS_DIED = "the process of the run ended before the run was finished"
_RUN_EVENTS = {"failed": NoticeEvent.RUN_FAILED, "partial": NoticeEvent.RUN_PARTIAL, "interrupted": NoticeEvent.RUN_INTERRUPTED}
_SOURCE_EVENTS = {
    "ok": NoticeEvent.SOURCE_RECOVERED,
    "partial": NoticeEvent.SOURCE_PARTIAL,
    "failed": NoticeEvent.SOURCE_FAILED,
}


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run in progress."""

    id: str
    kind: str
    actor: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run: one recorded execution."""

    id: str
    kind: Annotated[str, Field(examples=["crawl"])]
    state: Annotated[str, Field(examples=["ok"], description="running, ok, partial, failed, held or interrupted")]
    trigger: str
    actor: str
    started_at: Timestamp
    finished_at: OptionalTimestamp
    progress: Annotated[
        str | None, Field(description="progress lines of a running run, one per progress event; null: finished")
    ]
    summary: dict[str, Any] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class RunSource:
    """The result of a run for one source."""

    source: str
    revision: int | None
    state: str
    message: str | None
    tables: int
    namespaces: int
    added: int
    changed: int
    removed: int
    failed_namespaces: int
    carried: Annotated[int, Field(description="namespaces that were not read, because the change feed did not name them")]
    full_because: Annotated[
        str | None, Field(description="reason of a full crawl although the catalog has a change feed; null otherwise")
    ]


@dataclass(frozen=True, slots=True)
class RunChange:
    """A journalled write of a run to a catalog."""

    op_id: str
    mirror: str
    plan: str
    action: str
    target_source: str
    target_path: str
    origin_path: str | None
    state: str
    code: str | None
    message: str | None
    intent_at: Timestamp
    outcome_at: OptionalTimestamp


@contextmanager
def run_lifetime(index: Index, kind: str, *, trigger: str = "cli", actor: str | None = None) -> Iterator[RunHandle]:
    """Record the start of a run and hold its lease. Call ``finish_run`` inside to record its end."""
    run = _new_handle(kind, actor)
    try:
        # Hold the lease before the run's row becomes visible.
        with acquire_lease(index, _lease_name(run.id)):
            yield _insert_row(index, run, trigger)
    finally:
        # The expired lease of a run without an end stays: ``finish_interrupted_runs`` finds the run by it.
        if not is_running(index, run.id):
            delete_lease(index, _lease_name(run.id))


def insert_run(index: Index, kind: str, *, trigger: str = "cli", actor: str | None = None) -> RunHandle:
    """Record the start of a run without a lease, for a run that is finished at once."""
    return _insert_row(index, _new_handle(kind, actor), trigger)


def finish_interrupted_runs(index: Index) -> list[str]:
    """Finish the runs whose process has died as ``interrupted``. Return their ids."""
    r, dead = t.run.c, []
    expired = [lease.removeprefix(RUN_PREFIX) for lease in list_expired_leases(index, RUN_PREFIX)]
    for run_id in [*expired, *_list_runs_without_lease(index)]:
        unfinished = select(r.id, r.kind, r.actor).where(r.id == run_id, r.finished_at.is_(None))
        with index.write() as connection:
            # Another process may find it at the same time.
            row = connection.execute(unfinished.with_for_update()).one_or_none()
            if row is not None:
                _record_end(connection, RunHandle(*row), "interrupted", {}, _PROCESS_DIED, ())
                dead.append(row.id)
        delete_lease(index, _lease_name(run_id))
    return dead


def _list_runs_without_lease(index: Index) -> list[str]:
    """Return the ids of unfinished runs that have no lease and started longer ago than a lease is valid."""
    r = t.run.c
    is_leased = exists().where(t.lease.c.name == literal(RUN_PREFIX) + r.id)
    started_before = time.time() - LEASE_TTL_SECONDS
    with index.read() as connection:
        return list(connection.scalars(select(r.id).where(r.finished_at.is_(None), r.started_at < started_before, ~is_leased)))


def finish_run(
    index: Index,
    run: RunHandle,
    state: str,
    *,
    summary: Mapping[str, Any],
    error: str | None = None,
    notices: Iterable[Notice] = (),
) -> None:
    """Record the end of a run as ``ok``, ``partial``, ``failed``, ``held`` or ``interrupted``. Add ``notices`` of its problems."""
    with index.write() as connection:
        _record_end(connection, run, state, summary, error, notices)


def _record_end(
    connection: Connection, run: RunHandle, state: str, summary: Mapping[str, Any], error: str | None, notices: Iterable[Notice]
) -> None:
    values = {"state": state, "finished_at": time.time(), "summary": json.dumps(summary), "error": error, "progress": None}
    connection.execute(update(t.run).where(t.run.c.id == run.id).values(values))
    detail = {"state": state, "summary": dict(summary), "error": error}
    audit_log.append_event(connection, AuditKind.RUN_FINISHED, actor=run.actor, run_id=run.id, subject=run.kind, detail=detail)
    outbox.add_notices(connection, [*_run_notices(run, state, summary, error), *notices])


def set_progress(index: Index, run: RunHandle, text: str) -> None:
    """Set the progress text of a run. A finished run does not change."""
    unfinished = (t.run.c.id == run.id) & t.run.c.finished_at.is_(None)
    with index.write() as connection:
        connection.execute(update(t.run).where(unfinished).values(progress=text))


def is_running(index: Index, run_id: str) -> bool:
    """Return whether a run has started and not finished."""
    query = select(t.run.c.id).where(t.run.c.id == run_id, t.run.c.finished_at.is_(None))
    with index.read() as connection:
        return connection.execute(query).scalar() is not None


def record_source_result(index: Index, run: RunHandle, source: str, **values: Any) -> None:
    """Record the result of a run for one source. ``values`` are columns of ``run_source``.

    Add a notice if the source's state differs from the one in its last run.
    """
    s = t.run_source.c
    last = select(s.state).where(s.source == source).order_by(s.run_id.desc()).limit(1)
    with index.write() as connection:
        before = connection.execute(last).scalar() or "ok"
        connection.execute(insert(t.run_source), [{"run_id": run.id, "source": source, **values}])
        event = _SOURCE_EVENTS.get(values["state"])
        if event is not None and values["state"] != before:
            message = str(values.get("message") or f"state changed from {before} to {values['state']}")
            outbox.add_notices(connection, [Notice(event, source, message, source=source, run_id=run.id)])


def find_state_begin(connection: Connection, source: str, state: str) -> float | None:
    """Return since when a source is in a state: the start of the first run after the newest one that left another state.

    None if the newest run left another state.
    """
    s = t.run_source.c
    other = select(s.run_id).where(s.source == source, s.state != state).order_by(s.run_id.desc()).limit(1).scalar_subquery()
    first = select(func.min(s.run_id)).where(s.source == source, s.run_id > func.coalesce(other, "")).scalar_subquery()
    return connection.execute(select(t.run.c.started_at).where(t.run.c.id == first)).scalar()


def list_recent_runs(index: Index, *, limit: int = 20, before: str | None = None) -> list[Run]:
    """List runs, newest first. ``before`` is the last id of the previous page."""
    query = select(t.run).order_by(t.run.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(t.run.c.id < before)
    with index.read() as connection:
        return [run_from_row(row) for row in connection.execute(query).mappings()]


def get_run(index: Index, run_id: str) -> tuple[Run, list[RunSource], list[RunChange]]:
    """Return a run, its results per source and its journal lines. ``run_id`` may be an unambiguous prefix.

    Raise UnknownId if no run or several runs match.
    """
    with index.read() as connection:
        rows = list(connection.execute(select(t.run).where(t.run.c.id.startswith(run_id, autoescape=True)).limit(2)).mappings())
        if len(rows) != 1:
            matching = "no run has" if not rows else "several runs have"
            raise UnknownId(f"{matching} the id {run_id!r}", hint="federator runs lists the runs")
        run = run_from_row(rows[0])
        return run, read_run_sources(connection, run.id), read_run_changes(connection, run.id)


def run_from_row(row: RowMapping) -> Run:
    """Build a run from its row."""
    return Run(**{**row, "summary": json.loads(row["summary"]) if row["summary"] else None})


def read_run_sources(connection: Connection, run_id: str, *conditions: ColumnElement[bool]) -> list[RunSource]:
    """Return the results of a run by source."""
    part = t.run_source.c
    query = select(*columns_of(t.run_source, RunSource)).where(part.run_id == run_id, *conditions).order_by(part.source)
    return [RunSource(**row) for row in connection.execute(query).mappings()]


def read_run_changes(connection: Connection, run_id: str, *conditions: ColumnElement[bool]) -> list[RunChange]:
    """Return the first writes of a run, in order."""
    line = t.journal.c
    query = select(*columns_of(t.journal, RunChange)).where(line.run_id == run_id, *conditions)
    rows = connection.execute(query.order_by(line.seq).limit(_MAX_CHANGES)).mappings()
    return [RunChange(**row) for row in rows]


def _run_notices(run: RunHandle, state: str, summary: Mapping[str, Any], error: str | None) -> Iterator[Notice]:
    event = _RUN_EVENTS.get(state)
    if event is not None:
        errors = "; ".join(f"{subject}: {text}" for subject, text in (summary.get("errors") or {}).items())
        yield Notice(event, f"{run.kind} {run.id}", error or errors or f"the run ended as {state}", run_id=run.id)


def _new_handle(kind: str, actor: str | None) -> RunHandle:
    # The id starts with the time in hexadecimal, so ids sort by time.
    return RunHandle(f"{int(time.time() * 1000):011x}-{uuid.uuid4().hex[:8]}", kind, actor or getpass.getuser())


def _insert_row(index: Index, run: RunHandle, trigger: str) -> RunHandle:
    row = {
        "id": run.id, "kind": run.kind, "state": "running", "trigger": trigger, "actor": run.actor, "started_at": time.time(),
    }  # fmt: skip
    with index.write() as connection:
        connection.execute(insert(t.run), [row])
        audit_log.append_event(
            connection, AuditKind.RUN_STARTED, actor=run.actor, run_id=run.id, subject=run.kind, detail={"trigger": trigger}
        )
    return run


def _lease_name(run_id: str) -> str:
    return RUN_PREFIX + run_id
