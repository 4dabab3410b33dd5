"""Routes of runs and requests. A worker executes the requests, in this or another process."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api.bodies import ApiRoute
from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep, SettingsDep, VisibilityDep
from federator.api.freshness import list_source_freshness
from federator.api.large_plans import large_applications_response, request_url
from federator.api.models.base import fields_of
from federator.api.models.requests import RunRequest
from federator.api.models.runs import RunDetail, RunPage
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.plan_access import measure_plan, sees_whole_plan
from federator.api.plan_decisions import queue_applications
from federator.api.principals import Role
from federator.api.problems import NotFound, problem_docs
from federator.api.queued_requests import queue_bounded, queue_once
from federator.api.verify_requests import list_verifiable
from federator.connector import ConfigError, InvalidInput, PermissionDenied, StateError
from federator.model import parse_path_key
from federator.settings import Settings
from federator.store import Connection, Index, requests
from federator.store.runs import Run, RunChange, RunSource
from federator.store.snapshots import parse_time
from federator.views import runs
from federator.views.plans import bounding_memory
from federator.views.visibility import Visibility

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

RunId = Annotated[str, Path(max_length=64, description="complete id of the run", examples=["0199f0c2a41-1f2e3d4c"])]
# Maximum number of writes in a response; the journal has all of them.
_MAX_CHANGES = 1000


@router.get(
    "/runs", response_model=RunPage, responses={**not_modified_docs(), **problem_docs(400)}, summary="Runs, newest first"
)
def get_runs(
    request: Request, index: IndexDep, visibility: VisibilityDep,
    kind: Annotated[str | None, Query(max_length=40, description="only this kind: crawl, plan, sync, apply, verify, ...")] = None,
    state: Annotated[str | None, Query(max_length=40, description="only this state: running, ok, partial, failed, ...")] = None,
    since: Annotated[
        str | None, Query(max_length=64, description="only runs that started then or later: a time as in `as_of`")
    ] = None,
    subject: Annotated[
        str | None, Query(max_length=80, description="only runs with a stage of this source, mirror, storage root or report")
    ] = None,
    limit: Limit = 20, cursor: Cursor = None,
) -> Response:  # fmt: skip
    """A page of the runs that touched objects visible to the principal, and of its own runs."""
    listing = f"runs {kind} {state} {since} {subject}"
    before, _ = decode_cursor(cursor, listing, scopes=visibility.scopes)
    started_at = None if since is None else parse_time(require_storable(since, "since"), time.time())
    if since is not None and started_at is None:
        raise InvalidInput(f"since: {since!r} is not a time", hint="use 2026-11-20, 2026-11-20T08:30:00Z or -2d")
    filters = runs.RunFilter(
        require_storable(kind or "", "kind"), require_storable(state or "", "state"), started_at,
        require_storable(subject or "", "subject"),
    )  # fmt: skip
    rows = runs.list_visible_runs(index, visibility, limit=limit + 1, before=before or None, filters=filters)
    end = encode_cursor(listing, rows[limit - 1].id, scopes=visibility.scopes) if len(rows) > limit else None
    page = rows[:limit]
    source_freshness = list_source_freshness(
        index, visibility.scopes, runs.list_affected_sources(index, visibility, [run.id for run in page])
    )
    listed = runs.describe_runs(index, visibility, page)
    return etag_response(request, RunPage(runs=listed, next=end, freshness=source_freshness))


@router.get(
    "/runs/{id}", response_model=RunDetail, responses={**not_modified_docs(), **problem_docs(400, 404)}, summary="One run"
)
def get_run(request: Request, index: IndexDep, visibility: VisibilityDep, id: RunId) -> Response:  # noqa: A002 - the name in the URL's template
    """One run with its results by source and its first 1000 writes, also while it is active."""
    run, sources, changes = _get_visible_run(index, visibility, id)
    source_freshness = list_source_freshness(index, visibility.scopes, runs.list_affected_sources(index, visibility, [run.id]))
    body = RunDetail(
        **fields_of(run), sources=sources, stages=runs.list_run_stages(index, visibility, run, with_usual=True),
        changes=changes[:_MAX_CHANGES], freshness=source_freshness,
    )  # fmt: skip
    return etag_response(request, body)


@router.post(
    "/runs",
    status_code=202,
    response_model=requests.Request,
    responses=problem_docs(400, 403, 404, 409),
    summary="Request a run",
)
def request_run(
    spec: RunRequest,
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    visibility: VisibilityDep,
    response: Response,
) -> Response | requests.Request:
    """Queue a run. The principal's scopes must cover its sources as a whole, and the tables to verify. `Location` is the URL of the
    request, which has the run id as soon as the run has started.

    A principal's equal request that is still queued is returned again. It may have 20 unfinished ones of a kind, and five to verify
    tables (429 beyond). The worker takes requests of principals in turn.
    """
    principal.require(Role.OPERATOR)
    field, names = _names_of(spec)
    if field == "plans":
        with bounding_memory(max(measure_plan(index, visibility, digest) for digest in names), visibility.name) as is_large:
            if is_large:
                return large_applications_response(request, index, visibility, names)
            queued = queue_applications(index, visibility, names)
    else:
        with index.write() as connection:
            argument = _build_argument(connection, settings, field, names, visibility)
            if spec.full:
                argument["full"] = True
            queued = queue_once(connection, spec.kind, argument, principal.name)
    response.headers["Location"] = request_url(queued.id)
    return queued


@router.post(
    "/runs/{id}/cancel",
    status_code=202,
    response_model=requests.Request,
    responses=problem_docs(400, 403, 404, 409),
    summary="Cancel a run",
)
def request_cancel(index: IndexDep, principal: PrincipalDep, visibility: VisibilityDep, id: RunId) -> requests.Request:  # noqa: A002 - the name in the URL's template
    """Queue a request to stop a run between two writes. A run that was started on a command line must be stopped there."""
    principal.require(Role.OPERATOR)
    run, _, _ = _get_visible_run(index, visibility, id)
    with index.write() as connection:
        request = requests.find_request_of_run(connection, run.id)
        if request is None:
            raise StateError(f"the run {run.id} is {run.state}, and no worker executes it")
        if not _is_request_visible(connection, visibility, request):
            raise PermissionDenied(
                f"{principal.name} may not cancel the run {id}: it touches objects outside the scopes of {principal.name}"
            )
        return queue_bounded(connection, "cancel", {"request": request.id}, principal.name)


@router.get(
    "/requests/{id}",
    response_model=requests.Request,
    responses={**not_modified_docs(), **problem_docs(400, 404)},
    summary="One request",
)
def get_request(
    request: Request, index: IndexDep, visibility: VisibilityDep,
    id: Annotated[int, Path(ge=1, le=2**63 - 1, description="id of the request")],  # noqa: A002 - as in the URL's template
) -> Response:  # fmt: skip
    """The state of a request."""
    with index.read() as connection:
        try:
            queued = requests.get_request(connection, id)
        except StateError as error:
            raise NotFound(error.message) from None
        if queued.actor != visibility.name and not _is_request_visible(connection, visibility, queued):
            raise NotFound(f"there is no request {id}")
        return etag_response(request, queued)


def _build_argument(
    connection: Connection, settings: Settings, field: str, names: list[str], visibility: Visibility
) -> dict[str, Any]:
    """Build the request's argument. All names are checked now, so that the principal gets the error in the response."""
    if field == "tables":
        return {field: list_verifiable(connection, names, visibility.scopes)}
    covered = (
        visibility.mirrors
        if field == "mirrors"
        else tuple(name for name in settings.sources if visibility.scopes.covers((name,)))
    )
    for name in names:
        if require_storable(name, field) not in covered:
            hint = f"{field}: {', '.join(covered) or 'none is configured'}"
            raise ConfigError(f"no {field.removesuffix('s')} is called {name!r}", hint=hint)
    if names or visibility.scopes.covers_all:
        return {field: names} if names else {}
    if not covered:
        raise PermissionDenied(f"the scopes of {visibility.name} cover none of the {field} as a whole")
    return {field: list(covered)}


def _names_of(spec: RunRequest) -> tuple[str, list[str]]:
    """Return the field that belongs to the kind of a run, and its names. Raise InvalidInput if another one is set, or no plan."""
    field = {"crawl": "sources", "apply": "plans", "verify": "tables"}.get(spec.kind, "mirrors")
    for other in {"sources", "mirrors", "plans", "tables"} - {field}:
        if getattr(spec, other):
            raise InvalidInput(f"{other} cannot be used with {spec.kind}", hint=f"use {field}")
    if spec.full and spec.kind != "crawl":
        raise InvalidInput(f"full cannot be used with {spec.kind}, only with crawl")
    names = list(dict.fromkeys(getattr(spec, field)))
    if field == "plans" and not names:
        raise InvalidInput("apply takes plans: the digests of what was decided")
    return field, names


def _is_request_visible(connection: Connection, visibility: Visibility, request: requests.Request) -> bool:
    """Whether the scopes cover everything that a request touches."""
    if visibility.scopes.covers_all:
        return True
    sources, mirrors = request.argument.get("sources") or request.argument.get("into", []), request.argument.get("mirrors", [])
    digests, tables = request.argument.get("plans", []), request.argument.get("tables", [])
    has_names = bool(sources or mirrors or digests or tables)
    is_covered = (
        has_names
        and all(visibility.scopes.covers((name,)) for name in sources)
        and all(name in visibility.mirrors for name in mirrors)
        and all(visibility.scopes.covers(parse_path_key(name)) for name in tables)
    )
    return is_covered and all(sees_whole_plan(connection, visibility, digest) for digest in digests)


def _get_visible_run(index: Index, visibility: Visibility, run_id: str) -> tuple[Run, list[RunSource], list[RunChange]]:
    try:
        return runs.get_visible_run(index, visibility, require_storable(run_id, "id"))
    except StateError as error:
        raise NotFound(error.message, hint=error.hint) from None
