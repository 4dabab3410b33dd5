"""Routes of the scheduled jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep, SettingsDep, VisibilityDep
from federator.api.models.jobs import JobPage
from federator.api.paging import etag_response, not_modified_docs, page_by_name
from federator.api.principals import Role
from federator.api.problems import NotFound, problem_docs
from federator.api.queued_requests import queue_bounded, queue_once
from federator.settings import Settings
from federator.store import Connection, Index, requests
from federator.views.visibility import Visibility
from federator.worker.jobs import Job, JobView, configured_jobs, list_jobs, request_argument, unknown_job_hint

router = APIRouter(prefix="/api/v1/jobs")

Name = Annotated[
    str,
    Path(max_length=80, description="name of the job", examples=["crawl:lake_hive"]),
]


@router.get("", response_model=JobPage, responses={**not_modified_docs(), **problem_docs(400)}, summary="All scheduled jobs")
def get_jobs(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    visibility: VisibilityDep,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """All configured jobs with their last start. Only jobs whose sources the principal's scopes cover as a whole are listed."""
    with index.read() as connection:
        jobs = list_visible_jobs(connection, settings, visibility)
    names, next_cursor = page_by_name(jobs, "jobs", cursor, limit, scopes=visibility.scopes)
    return etag_response(request, JobPage(jobs=[jobs[name] for name in names], next=next_cursor))


@router.post(
    "/{name}/pause",
    status_code=202,
    response_model=requests.Request,
    responses=problem_docs(400, 403, 404),
    summary="Pause a job",
)
def pause_job(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep, name: Name
) -> requests.Request:
    """Queue a request to pause the job until it is resumed. A run in progress continues."""
    principal.require(Role.OPERATOR)
    return _queue_control(index, settings, visibility, name, "pause")


@router.post(
    "/{name}/resume",
    status_code=202,
    response_model=requests.Request,
    responses=problem_docs(400, 403, 404),
    summary="Resume a job",
)
def resume_job(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep, name: Name
) -> requests.Request:
    """Queue a request to resume the job."""
    principal.require(Role.OPERATOR)
    return _queue_control(index, settings, visibility, name, "resume")


@router.post(
    "/{name}/run",
    status_code=202,
    response_model=requests.Request,
    responses=problem_docs(400, 403, 404),
    summary="Run a job now",
)
def run_job(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep, name: Name
) -> requests.Request:
    """Queue a run of the job, even if it is paused. Its schedule does not change."""
    principal.require(Role.OPERATOR)
    job = _get_visible_job(settings, visibility, name)
    with index.write() as connection:
        return queue_once(connection, job.kind, request_argument(job.kind, job.subject), principal.name)


def list_visible_jobs(connection: Connection, settings: Settings, visibility: Visibility) -> dict[str, JobView]:
    """Return the jobs whose sources the scopes cover as a whole, by name."""
    return {job.name: job for job in list_jobs(connection, _visible_jobs(settings, visibility))}


def _visible_jobs(settings: Settings, visibility: Visibility) -> list[Job]:
    """Return the jobs whose sources the scopes cover as a whole."""
    subjects = {"crawl": [name for name in settings.sources if visibility.scopes.covers((name,))], "sync": visibility.mirrors}
    return [
        job for job in configured_jobs(settings) if visibility.scopes.covers_all or job.subject in subjects.get(job.kind, ())
    ]


def _get_visible_job(settings: Settings, visibility: Visibility, name: str) -> Job:
    jobs = {job.name: job for job in _visible_jobs(settings, visibility)}
    if name not in jobs:
        raise NotFound(f"there is no job {name!r}", hint=unknown_job_hint(jobs))
    return jobs[name]


def _queue_control(index: Index, settings: Settings, visibility: Visibility, name: str, kind: str) -> requests.Request:
    _get_visible_job(settings, visibility, name)
    with index.write() as connection:
        # Not ``queue_once``: between two equal requests may be one of the opposite, which the second one ends.
        return queue_bounded(connection, kind, {"job": name}, visibility.name)
