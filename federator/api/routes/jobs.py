"""The scheduled jobs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf, ViewerOf
from federator.api.paging import by_name, documented_304, tagged
from federator.api.problems import NotFound, documented
from federator.index import Index, requests
from federator.index.run_views import Viewer
from federator.schedule.jobs import Job, argument, configured, listed
from federator.settings import Settings

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

Name = Annotated[
    str,
    Path(max_length=80, description="the job", examples=["crawl:lake_hive"]),
]


@router.get("", response_model=m.Jobs, responses={**documented_304(), **documented(400)}, summary="All scheduled jobs")
def get_jobs(
    request: Request, index: IndexOf, settings: SettingsOf, viewer: ViewerOf, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """Every job that the configuration schedules, with when it last began: those over sources that the caller may see whole."""
    told = _jobs(settings, viewer)
    with index.read() as connection:
        jobs = [(job, state) for job, state in listed(settings, connection) if job in told]
    rows = {job.name: {"name": job.name, "schedule": job.schedule, **asdict(state)} for job, state in jobs}
    names, following = by_name(rows, "jobs", cursor, limit, scopes=viewer.scopes)
    return tagged(request, m.Jobs(jobs=[m.Job.model_validate(rows[name]) for name in names], next=following))


@router.post(
    "/{name}/pause", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404), summary="Pause a job"
)
def pause(index: IndexOf, settings: SettingsOf, caller: CallerOf, viewer: ViewerOf, name: Name) -> m.Requested:
    """Asks the worker to run the job no more until it is resumed; a run in hand goes on."""
    caller.require(Role.OPERATOR)
    return _ask(index, settings, viewer, name, "pause")


@router.post(
    "/{name}/resume", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404), summary="Resume a job"
)
def resume(index: IndexOf, settings: SettingsOf, caller: CallerOf, viewer: ViewerOf, name: Name) -> m.Requested:
    """Asks the worker to let the job go on."""
    caller.require(Role.OPERATOR)
    return _ask(index, settings, viewer, name, "resume")


@router.post(
    "/{name}/run", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404), summary="Run a job now"
)
def run(index: IndexOf, settings: SettingsOf, caller: CallerOf, viewer: ViewerOf, name: Name) -> m.Requested:
    """Asks the worker to run the job at its next turn, also where it is paused. Its schedule stays."""
    caller.require(Role.OPERATOR)
    job = _job(settings, viewer, name)
    with index.write() as connection:
        asked = requests.add(connection, job.kind, argument(job.kind, job.subject), actor=caller.name)
    return m.Requested.model_validate(asked)


def _jobs(settings: Settings, viewer: Viewer) -> list[Job]:
    """The jobs that a viewer may be told of: those over sources that it may see whole."""
    told = {"crawl": [name for name in settings.sources if viewer.scopes.covers((name,))], "sync": viewer.mirrors}
    return [job for job in configured(settings) if viewer.scopes.everything or job.subject in told.get(job.kind, ())]


def _job(settings: Settings, viewer: Viewer, name: str) -> Job:
    jobs = {job.name: job for job in _jobs(settings, viewer)}
    if name not in jobs:
        raise NotFound(f"no job is called {name!r}", hint=f"jobs: {', '.join(jobs) or 'none is scheduled'}")
    return jobs[name]


def _ask(index: Index, settings: Settings, viewer: Viewer, name: str, kind: str) -> m.Requested:
    _job(settings, viewer, name)
    with index.write() as connection:
        return m.Requested.model_validate(requests.add(connection, kind, {"job": name}, actor=viewer.name))
