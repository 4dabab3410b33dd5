"""Stored states of scheduled jobs: whether a job is paused, and its last start. Jobs have names like ``crawl:lake_hive``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from federator.store import tables as t
from federator.store.sql import insert_or_update


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of one job. ``last_started_at`` is in seconds since the epoch; both ``last_*`` are None until the first run.

    The defaults are the state of a job that is not stored.
    """

    paused: bool = False
    last_run_id: str | None = None
    last_started_at: float | None = None


def list_job_states(connection: Connection) -> dict[str, JobState]:
    """Return the state of each job that ever ran or was paused, by job name. The job may no longer be configured."""
    rows = connection.execute(select(t.schedule_state)).mappings()
    return {row["job"]: JobState(bool(row["paused"]), row["last_run_id"], row["last_started_at"]) for row in rows}


def set_paused(connection: Connection, job: str, paused: bool) -> None:
    """Pause a job, or resume it if ``paused`` is false."""
    _upsert(connection, job, {"paused": int(paused)})


def record_job_start(connection: Connection, job: str, run_id: str) -> None:
    """Record a run of a job as its last one, started now by this process's clock."""
    _upsert(connection, job, {"last_run_id": run_id, "last_started_at": time.time()})


def _upsert(connection: Connection, job: str, values: dict[str, Any]) -> None:
    insert = insert_or_update(connection, t.schedule_state).values(job=job, **values)
    connection.execute(insert.on_conflict_do_update(index_elements=["job"], set_=values))
