"""What must outlive a worker about each scheduled job: whether it is paused, and when it last began."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from federator.index import tables as t


@dataclass(frozen=True, slots=True)
class JobState:
    """One job's state. ``last_started_at`` is in seconds since the epoch."""

    paused: bool = False
    last_run_id: str | None = None
    last_started_at: float | None = None


def read(connection: Connection) -> dict[str, JobState]:
    """The state of every job that ever ran or was paused, by the job's name."""
    rows = connection.execute(select(t.schedule_state)).mappings()
    return {row["job"]: JobState(bool(row["paused"]), row["last_run_id"], row["last_started_at"]) for row in rows}


def pause(connection: Connection, job: str, paused: bool) -> None:
    """Pauses a job, or lets it go on."""
    _put(connection, job, {"paused": int(paused)})


def started(connection: Connection, job: str, run_id: str) -> None:
    """Notes that a job's run has begun."""
    _put(connection, job, {"last_run_id": run_id, "last_started_at": time.time()})


def _put(connection: Connection, job: str, values: dict[str, Any]) -> None:
    if connection.execute(update(t.schedule_state).where(t.schedule_state.c.job == job).values(values)).rowcount == 0:
        connection.execute(insert(t.schedule_state), [{"job": job, **values}])
