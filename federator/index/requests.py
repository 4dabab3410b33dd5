"""Requests: what the API, the command line and the schedule ask of the worker, as rows. It claims them in order."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from federator.connector import StateError
from federator.index import tables as t
from federator.model import canonical_json

#: run by the worker one after the other
RUNS = ("crawl", "plan", "sync", "apply", "declare", "prune", "report", "scan")
#: obeyed at once, also while a run is going on
CONTROLS = ("cancel", "pause", "resume")
QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``run_id`` is known once its run has begun; times are seconds since the epoch."""

    id: int
    kind: str
    argument: Mapping[str, Any]
    actor: str
    state: str
    run_id: str | None
    created_at: float


def add(connection: Connection, kind: str, argument: Mapping[str, Any], *, actor: str) -> Request:
    """Queues a request. ``argument`` must hold no secret."""
    row = {"kind": kind, "argument": canonical_json(dict(argument)), "actor": actor, "state": QUEUED, "created_at": time.time()}
    key = connection.execute(insert(t.request).values(row)).inserted_primary_key
    assert key is not None
    return Request(int(key[0]), kind, argument, actor, QUEUED, None, float(str(row["created_at"])))


def add_once(connection: Connection, kind: str, argument: Mapping[str, Any], *, actor: str) -> Request | None:
    """Queues a request, or returns None where the same one still waits or runs: a slow job does not pile up."""
    r = t.request.c
    same = (r.kind == kind) & (r.argument == canonical_json(dict(argument))) & r.state.in_([QUEUED, RUNNING])
    if connection.execute(select(r.id).where(same).limit(1)).scalar() is not None:
        return None
    return add(connection, kind, argument, actor=actor)


def get(connection: Connection, number: int) -> Request:
    """One request. Raises StateError."""
    row = connection.execute(select(t.request).where(t.request.c.id == number)).mappings().first()
    if row is None:
        raise StateError(f"there is no request {number}")
    return _request(row)


def queued(connection: Connection, kinds: Sequence[str], *, limit: int = 100) -> list[Request]:
    """Requests of some kinds that wait, oldest first."""
    r = t.request.c
    query = select(t.request).where(r.state == QUEUED, r.kind.in_(kinds)).order_by(r.id).limit(limit)
    return [_request(row) for row in connection.execute(query).mappings()]


def of_run(connection: Connection, run_id: str) -> Request | None:
    """The unfinished request that a run belongs to."""
    r = t.request.c
    query = select(t.request).where(r.run_id == run_id, r.state.in_([QUEUED, RUNNING])).limit(1)
    row = connection.execute(query).mappings().first()
    return _request(row) if row else None


def set_state(connection: Connection, number: int, state: str, *, run_id: str | None = None) -> None:
    """Says what became of a request; a run id that is known stays."""
    values = {"state": state, **({"run_id": run_id} if run_id else {})}
    connection.execute(update(t.request).where(t.request.c.id == number).values(values))


def claim(connection: Connection, number: int) -> bool:
    """Marks a waiting request as running; False where it was withdrawn meanwhile."""
    r = t.request.c
    return connection.execute(update(t.request).where(r.id == number, r.state == QUEUED).values(state=RUNNING)).rowcount > 0


def withdraw(connection: Connection, number: int) -> bool:
    """Cancels a request that still waits; False where it does not."""
    r = t.request.c
    return connection.execute(update(t.request).where(r.id == number, r.state == QUEUED).values(state=CANCELLED)).rowcount > 0


def again(connection: Connection, request: Request) -> bool:
    """Queues a request again whose worker died with it; False for one that has had its second chance."""
    if request.argument.get("again"):
        return False
    values = {"state": QUEUED, "argument": canonical_json({**request.argument, "again": True})}
    connection.execute(update(t.request).where(t.request.c.id == request.id).values(values))
    return True


def running(connection: Connection) -> list[Request]:
    """Requests that a worker has claimed and not finished."""
    query = select(t.request).where(t.request.c.state == RUNNING).order_by(t.request.c.id)
    return [_request(row) for row in connection.execute(query).mappings()]


def _request(row: RowMapping) -> Request:
    argument = json.loads(row["argument"])
    return Request(row["id"], row["kind"], argument, row["actor"], row["state"], row["run_id"], row["created_at"])
