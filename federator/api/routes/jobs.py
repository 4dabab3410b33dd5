"""The scheduled jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from federator.api import models as m
from federator.api.context import ACTOR, IndexOf, SettingsOf
from federator.api.problems import NotFound, documented
from federator.index import Index, requests, schedules
from federator.schedule.jobs import Job, argument, configured
from federator.settings import Settings

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

Name = Annotated[str, Path(max_length=80, examples=["crawl:lake_hive"])]


@router.get("", response_model=m.Jobs, responses=documented(), summary="All scheduled jobs")
def get_jobs(index: IndexOf, settings: SettingsOf) -> m.Jobs:
    """Every job that the configuration schedules, with when it last began."""
    with index.read() as connection:
        states = schedules.read(connection)
    jobs = [(job, states.get(job.name, schedules.JobState())) for job in configured(settings)]
    return m.Jobs(
        jobs=[
            m.Job(
                name=job.name,
                schedule=job.schedule,
                paused=state.paused,
                last_run_id=state.last_run_id,
                last_started_at=state.last_started_at,  # type: ignore[arg-type]  # seconds; the model makes a time of them
            )
            for job, state in jobs
        ]
    )


@router.post(
    "/{name}/pause", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404), summary="Pause a job"
)
def pause(index: IndexOf, settings: SettingsOf, name: Name) -> m.Requested:
    """Asks the worker to run the job no more until it is resumed; a run in hand goes on."""
    return _ask(index, settings, name, "pause")


@router.post(
    "/{name}/resume", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404), summary="Resume a job"
)
def resume(index: IndexOf, settings: SettingsOf, name: Name) -> m.Requested:
    """Asks the worker to let the job go on."""
    return _ask(index, settings, name, "resume")


@router.post(
    "/{name}/run", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404), summary="Run a job now"
)
def run(index: IndexOf, settings: SettingsOf, name: Name) -> m.Requested:
    """Asks the worker to run the job at its next turn, also where it is paused. Its schedule stays."""
    job = _job(settings, name)
    with index.write() as connection:
        return m.Requested.model_validate(requests.add(connection, job.kind, argument(job.kind, job.subject), actor=ACTOR))


def _job(settings: Settings, name: str) -> Job:
    jobs = {job.name: job for job in configured(settings)}
    if name not in jobs:
        raise NotFound(f"no job is called {name!r}", hint=f"jobs: {', '.join(jobs) or 'none is scheduled'}")
    return jobs[name]


def _ask(index: Index, settings: Settings, name: str, kind: str) -> m.Requested:
    _job(settings, name)
    with index.write() as connection:
        return m.Requested.model_validate(requests.add(connection, kind, {"job": name}, actor=ACTOR))
