"""The queue of requests for the worker, from the API, the CLI and the schedule."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, RowMapping, exists, func, insert, select, update

from federator.connector import StateError
from federator.model import canonical_json
from federator.store import tables as t
from federator.store.field_types import Timestamp

#: kinds that the worker runs one after the other
RUN_KINDS = ("crawl", "plan", "sync", "apply", "declare", "prune", "report", "scan")
#: kinds that the worker runs beside those: they are short, and write to no catalog
SHORT_RUN_KINDS = ("verify",)
#: kinds that take effect at once, also during a run
CONTROL_KINDS = ("cancel", "pause", "resume")
QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the worker. `run_id` is null until its run has started."""

    id: int
    kind: Annotated[str, Field(examples=["crawl"])]
    #: what the run is about (``worker.runner`` reads it by kind), the ``job`` that queued it, and ``again`` if its worker died
    argument: Annotated[Mapping[str, Any], Field(exclude=True)]
    actor: str
    state: Annotated[str, Field(examples=["queued"], description="queued, running, done, failed or cancelled")]
    run_id: str | None
    created_at: Timestamp


def queue_request(connection: Connection, kind: str, argument: Mapping[str, Any], *, actor: str) -> Request:
    """Queue a request. ``argument`` must not contain a secret."""
    # The id is the time in microseconds, not a count: it says nothing about the requests of others.
    created_at_micros = time.time_ns() // 1000
    request = Request(created_at_micros, kind, argument, actor, QUEUED, run_id=None, created_at=created_at_micros / 1e6)
    row = {name: getattr(request, name) for name in ("id", "kind", "actor", "state", "created_at")}
    connection.execute(insert(t.request).values(argument=canonical_json(dict(argument)), **row))
    return request


def queue_unless_pending(connection: Connection, kind: str, argument: Mapping[str, Any], *, actor: str) -> Request | None:
    """Queue a request. Return None if an equal one is queued or running, so that a slow job does not pile up."""
    r = t.request.c
    same = (r.kind == kind) & (r.argument == canonical_json(dict(argument))) & r.state.in_([QUEUED, RUNNING])
    if connection.execute(select(r.id).where(same).limit(1)).scalar() is not None:
        return None
    return queue_request(connection, kind, argument, actor=actor)


def get_request(connection: Connection, number: int) -> Request:
    """Return one request. Raise StateError if it does not exist."""
    row = connection.execute(select(t.request).where(t.request.c.id == number)).mappings().first()
    if row is None:
        raise StateError(f"there is no request {number}")
    return _request_from_row(row)


def list_queued(connection: Connection, kinds: Sequence[str], *, limit: int = 100) -> list[Request]:
    """List the queued requests of some kinds, in the order of their execution.

    First those of the actor whose last run started first, and for each actor the oldest first: nobody's many requests delay another's.
    """
    r = t.request.c
    # The ids of runs begin with the time of their start.
    last_runs = select(r.actor, func.max(r.run_id).label("last")).where(r.run_id.is_not(None)).group_by(r.actor).subquery()
    query = (
        select(t.request)
        .outerjoin(last_runs, last_runs.c.actor == r.actor)
        .where(r.state == QUEUED, r.kind.in_(kinds))
        .order_by(func.coalesce(last_runs.c.last, ""), r.id)
        .limit(limit)
    )
    return [_request_from_row(row) for row in connection.execute(query).mappings()]


def list_unfinished(connection: Connection, kind: str, *, actor: str) -> list[Request]:
    """List the queued and running requests of a kind by an actor, oldest first."""
    r = t.request.c
    query = select(t.request).where(r.kind == kind, r.actor == actor, r.state.in_([QUEUED, RUNNING])).order_by(r.id)
    return [_request_from_row(row) for row in connection.execute(query).mappings()]


def find_application(connection: Connection, digest: str) -> Request | None:
    """Return the request that applies a plan: a queued one, or a running one whose run has not ended. None if there is none.

    A sync applies the plan that it made, as long as the stage lasts.
    """
    r, run, s = t.request.c, t.run.c, t.run_stage.c
    applies = (s.stage == "apply") & s.finished_at.is_(None) & (s.plan == digest)
    is_sync = (r.kind == "sync") & exists().where(s.run_id == r.run_id, applies)
    is_active = (r.state == QUEUED) | ((r.state == RUNNING) & run.finished_at.is_(None))
    query = (
        select(t.request).outerjoin(t.run, run.id == r.run_id).where((r.kind == "apply") | is_sync, is_active).order_by(r.id)
    )
    applications = map(_request_from_row, connection.execute(query).mappings())
    return next((request for request in applications if request.kind == "sync" or digest in request.argument["plans"]), None)


def find_request_of_run(connection: Connection, run_id: str) -> Request | None:
    """Return the unfinished request that a run belongs to. None if there is none."""
    r = t.request.c
    query = select(t.request).where(r.run_id == run_id, r.state.in_([QUEUED, RUNNING])).limit(1)
    row = connection.execute(query).mappings().first()
    return _request_from_row(row) if row else None


def set_request_state(connection: Connection, number: int, state: str, *, run_id: str | None = None) -> None:
    """Set the state of a request, and its run id if one is given."""
    values = {"state": state, **({"run_id": run_id} if run_id else {})}
    connection.execute(update(t.request).where(t.request.c.id == number).values(values))


def claim_request(connection: Connection, number: int) -> bool:
    """Mark a queued request as running. Return False if it is no longer queued."""
    return _move_queued(connection, number, RUNNING)


def cancel_queued(connection: Connection, number: int) -> bool:
    """Cancel a queued request. Return False if it is no longer queued."""
    return _move_queued(connection, number, CANCELLED)


def cancel_all_queued(connection: Connection, *, actor: str) -> None:
    """Cancel the queued requests of an actor."""
    r = t.request.c
    connection.execute(update(t.request).where(r.actor == actor, r.state == QUEUED).values(state=CANCELLED))


def requeue_once(connection: Connection, request: Request) -> bool:
    """Queue a request again whose worker died during its run. Return False if it was queued again before."""
    if request.argument.get("again"):
        return False
    values = {"state": QUEUED, "argument": canonical_json({**request.argument, "again": True})}
    connection.execute(update(t.request).where(t.request.c.id == request.id).values(values))
    return True


def list_running(connection: Connection) -> list[Request]:
    """List the requests that a worker has claimed and not finished."""
    query = select(t.request).where(t.request.c.state == RUNNING).order_by(t.request.c.id)
    return [_request_from_row(row) for row in connection.execute(query).mappings()]


def _move_queued(connection: Connection, number: int, state: str) -> bool:
    r = t.request.c
    return connection.execute(update(t.request).where(r.id == number, r.state == QUEUED).values(state=state)).rowcount > 0


def _request_from_row(row: RowMapping) -> Request:
    argument = json.loads(row["argument"])
    return Request(row["id"], row["kind"], argument, row["actor"], row["state"], row["run_id"], row["created_at"])
