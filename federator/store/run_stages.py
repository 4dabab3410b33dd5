"""Stages of runs: one row for each stage and subject of a run, written when the stage starts and when it ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated

from pydantic import ConfigDict, Field
from sqlalchemy import ColumnElement, Connection, select, update

from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.sql import insert_or_update

s = t.run_stage.c


@dataclass(frozen=True, slots=True)
class RunStage:
    """A stage of a run for one subject: a source, a mirror or a storage root."""

    # In the API's schema, a field with a default is in every response.
    __pydantic_config__ = ConfigDict(json_schema_serialization_defaults_required=True)

    stage: Annotated[
        str, Field(examples=["crawl"], description="crawl, verify, resume, plan, apply, scan, rebuild, prune, report")
    ]
    subject: Annotated[str, Field(examples=["lake_hive"], description="source, mirror, storage root or report")]
    state: Annotated[
        str, Field(examples=["ok"], description="running, interrupted, or the result: ok, partial, failed, held, ...")
    ]
    detail: str | None
    started_at: Timestamp
    finished_at: OptionalTimestamp
    calls: Annotated[int | None, Field(examples=[42], description="number of catalog calls; null: not counted for this stage")]
    errors: Annotated[int | None, Field(examples=[0], description="number of these calls that failed")]
    usual_seconds: Annotated[
        float | None,
        Field(
            examples=[12.5],
            description="median duration of the stage in the last 100 runs of this kind; null: unknown, and in events",
        ),
    ] = None


# Results of stages that did all their work. Only their durations are usual ones; a failed stage ends at any time.
_COMPLETED = ("ok", "partial", "held")
# The number of earlier runs whose durations count.
_EARLIER_RUNS = 100
_COLUMNS = [t.run_stage.c[field] for field in RunStage.__dataclass_fields__ if field != "usual_seconds"]


def start_stage(index: Index, run_id: str, stage: str, subject: str, *, plan: str | None = None) -> None:
    """Record the start of a stage. A stage that starts again replaces its earlier row.

    ``plan`` is the digest of the plan that the stage applies.
    """
    values = {
        "state": "running", "detail": None, "started_at": time.time(), "finished_at": None, "calls": None, "errors": None,
        "plan": plan,
    }  # fmt: skip
    with index.write() as connection:
        statement = insert_or_update(connection, t.run_stage).values(run_id=run_id, stage=stage, subject=subject, **values)
        connection.execute(statement.on_conflict_do_update(index_elements=[s.run_id, s.stage, s.subject], set_=values))


def finish_stage(
    index: Index, run_id: str, stage: str, subject: str, *, state: str, detail: str, calls: int | None, errors: int | None
) -> None:
    """Record the end of a stage."""
    row = (s.run_id == run_id) & (s.stage == stage) & (s.subject == subject)
    values = {"state": state, "detail": detail or None, "finished_at": time.time(), "calls": calls, "errors": errors}
    with index.write() as connection:
        connection.execute(update(t.run_stage).where(row).values(values))


def read_run_stages(connection: Connection, run_id: str, *conditions: ColumnElement[bool]) -> list[RunStage]:
    """Return the stages of a run in the order of their starts."""
    query = select(*_COLUMNS).where(s.run_id == run_id, *conditions).order_by(s.started_at, s.stage, s.subject)
    return [RunStage(**row) for row in connection.execute(query).mappings()]


def add_usual_durations(connection: Connection, run_id: str, kind: str, stages: Sequence[RunStage]) -> list[RunStage]:
    """Return the stages of a run with the median durations of equal stages in earlier runs of its kind."""
    earlier = (
        select(t.run.c.id).where(t.run.c.kind == kind, t.run.c.id < run_id).order_by(t.run.c.id.desc()).limit(_EARLIER_RUNS)
    )
    completed = s.state.in_(_COMPLETED) & s.finished_at.is_not(None) & s.stage.in_({stage.stage for stage in stages})
    query = select(s.stage, s.subject, s.finished_at - s.started_at).where(s.run_id.in_(earlier), completed)
    durations_by_stage: dict[tuple[str, str], list[float]] = {}
    for stage, subject, seconds in connection.execute(query):
        durations_by_stage.setdefault((stage, subject), []).append(seconds)
    usual = {key: median(durations) for key, durations in durations_by_stage.items()}
    return [replace(stage, usual_seconds=usual.get((stage.stage, stage.subject))) for stage in stages]
