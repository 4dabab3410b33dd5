"""Runs, and requests for runs: the worker carries them out, whatever process it lives in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf, ViewerOf
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import NotFound, documented
from federator.api.told import fresh
from federator.connector import ConfigError, InvalidInput, PermissionDenied, StateError
from federator.index import Connection, Index, RowMapping, approvals, plan_views, requests, run_views
from federator.index.run_views import Viewer
from federator.planning.release import Release
from federator.settings import Settings

router = APIRouter(prefix="/api/v1", tags=["runs"])

RunId = Annotated[str, Path(max_length=64, description="the run's whole id", examples=["0199f0c2a41-1f2e3d4c"])]
# The journal has the rest; a page of a browser does not want it.
_CHANGES = 1000


@router.get("/runs", response_model=m.Runs, responses={**documented_304(), **documented(400)}, summary="Runs, newest first")
def get_runs(request: Request, index: IndexOf, viewer: ViewerOf, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """A page of runs: those that touched what the caller may see, and its own."""
    before, _ = decode(cursor, "runs", scopes=viewer.scopes)
    found = run_views.recent(index, viewer, limit=limit + 1, before=before or None)
    end = encode("runs", found[limit - 1]["id"], scopes=viewer.scopes) if len(found) > limit else None
    shown = [m.Run.model_validate(run) for run in found[:limit]]
    told = fresh(index, viewer.scopes, run_views.touched(index, viewer, [run.id for run in shown]))
    return tagged(request, m.Runs(runs=shown, next=end, freshness=told))


@router.get("/runs/{id}", response_model=m.RunDetail, responses={**documented_304(), **documented(400, 404)}, summary="One run")
def get_run(request: Request, index: IndexOf, viewer: ViewerOf, id: RunId) -> Response:  # noqa: A002 - the name in the URL's template
    """One run with what it did to each source and each of its writes (the first 1000), readable while it goes on."""
    run, sources, changes = _get(index, viewer, id)
    told = fresh(index, viewer.scopes, run_views.touched(index, viewer, [run["id"]]))
    body = {**run, "sources": sources, "changes": changes[:_CHANGES], "freshness": told}
    return tagged(request, m.RunDetail.model_validate(body))


@router.post(
    "/runs", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404, 409), summary="Ask for a run"
)
def post_run(
    wanted: m.RunRequest, index: IndexOf, settings: SettingsOf, caller: CallerOf, viewer: ViewerOf, response: Response
) -> m.Requested:
    """Queues a run over sources that the caller may see whole. Its request's address is in `Location`; the request says the run's id
    once it has begun."""
    caller.require(Role.OPERATOR)
    with index.write() as connection:
        argument = _argument(connection, settings, wanted, viewer)
        if wanted.full:
            argument["full"] = True
        asked = requests.add(connection, wanted.kind, argument, actor=caller.name)
    response.headers["Location"] = f"/api/v1/requests/{asked.id}"
    return m.Requested.model_validate(asked)


@router.post(
    "/runs/{id}/cancel",
    status_code=202,
    response_model=m.Requested,
    responses=documented(400, 403, 404, 409),
    summary="Cancel a run",
)
def cancel_run(index: IndexOf, caller: CallerOf, viewer: ViewerOf, id: RunId) -> m.Requested:  # noqa: A002 - the name in the URL's template
    """Asks the worker to stop a run between two writes. A run that a command line began is stopped there."""
    caller.require(Role.OPERATOR)
    run, _, _ = _get(index, viewer, id)
    with index.write() as connection:
        request = requests.of_run(connection, run["id"])
        if request is None:
            raise StateError(f"the run {run['id']} is {run['state']}, and no worker of ours has it in hand")
        if not _reaches(connection, viewer, request):
            raise PermissionDenied(f"{caller.name} may not change the run {id}: it touches more than {caller.name} may see")
        return m.Requested.model_validate(requests.add(connection, "cancel", {"request": request.id}, actor=caller.name))


@router.get(
    "/requests/{id}", response_model=m.Requested, responses={**documented_304(), **documented(400, 404)}, summary="One request"
)
def get_request(
    request: Request, index: IndexOf, viewer: ViewerOf,
    id: Annotated[int, Path(ge=1, le=2**63 - 1, description="its number")],  # noqa: A002 - as in the URL's template
) -> Response:  # fmt: skip
    """What became of a request."""
    with index.read() as connection:
        try:
            found = requests.get(connection, id)
        except StateError as error:
            raise NotFound(error.message) from None
        if found.actor != viewer.name and not _reaches(connection, viewer, found):
            raise NotFound(f"there is no request {id}")
        return tagged(request, m.Requested.model_validate(found))


def _argument(connection: Connection, settings: Settings, wanted: m.RunRequest, viewer: Viewer) -> dict[str, Any]:
    """The request's argument, with every name checked now: who asked is still there to be told."""
    field = {"crawl": "sources", "apply": "plans"}.get(wanted.kind, "mirrors")
    for other in {"sources", "mirrors", "plans"} - {field}:
        if getattr(wanted, other):
            raise InvalidInput(f"{wanted.kind} takes {field}, not {other}")
    if wanted.full and wanted.kind != "crawl":
        raise InvalidInput(f"full is for a crawl, not for {wanted.kind}")
    names: list[str] = getattr(wanted, field)
    if field == "plans":
        if not names:
            raise InvalidInput("apply takes plans: the digests of what was decided")
        for name in names:
            applicable(connection, name, viewer)
        return {field: names}
    known = viewer.mirrors if field == "mirrors" else tuple(name for name in settings.sources if viewer.scopes.covers((name,)))
    for name in names:
        if printable(name, field) not in known:
            hint = f"{field}: {', '.join(known) or 'none is configured'}"
            raise ConfigError(f"no {field.removesuffix('s')} is called {name!r}", hint=hint)
    if names or viewer.scopes.everything:
        return {field: names} if names else {}
    if not known:
        raise PermissionDenied(f"{viewer.name} may see none of the {field} whole")
    return {field: list(known)}


def applicable(connection: Connection, digest: str, viewer: Viewer) -> Release:
    """What of a plan may go now, and what waits.

    Raises StateError for a plan of which everything waits for a decision, or for which it is too late.
    """
    row = plan_row(connection, digest, viewer)
    state, found = row["state"], approvals.released(connection, row)
    if state not in ("ready", "held", "approved"):
        raise StateError(f"the plan {digest[:12]} is {state}", hint="plan again")
    if not found.changes and (found.waiting or state == "held"):
        why = f": {found.waiting[0].hold}" if found.waiting else ""
        raise StateError(f"all of the plan {digest[:12]} is held{why}", hint="approve it first")
    return found


def _reaches(connection: Connection, viewer: Viewer, request: requests.Request) -> bool:
    """Whether a viewer may see all that a request is about."""
    if viewer.scopes.everything:
        return True
    sources, mirrors = request.argument.get("sources") or request.argument.get("into", []), request.argument.get("mirrors", [])
    digests = request.argument.get("plans", [])
    named = bool(sources or mirrors or digests)
    told = named and all(viewer.scopes.covers((name,)) for name in sources) and all(name in viewer.mirrors for name in mirrors)
    return told and all(_whole(connection, viewer, digest) for digest in digests)


def _whole(connection: Connection, viewer: Viewer, digest: str) -> bool:
    try:
        return not plan_views.get(connection, viewer, digest)[1]
    except StateError:
        return False


def seen_plan(connection: Connection, viewer: Viewer, digest: str) -> tuple[RowMapping, bool, dict[str, Any]]:
    """A plan by its whole digest as ``plan_views.get`` has it. Raises NotFound, also for one that the viewer sees nothing of."""
    try:
        return plan_views.get(connection, viewer, printable(digest, "digest"))
    except StateError:
        raise NotFound(f"no plan has the digest {digest!r}", hint="give the whole digest") from None


def plan_row(connection: Connection, digest: str, viewer: Viewer) -> RowMapping:
    """The row of a plan that the viewer sees whole. Raises NotFound, and PermissionDenied where it sees a part."""
    row, partial, _ = seen_plan(connection, viewer, digest)
    if partial:
        raise PermissionDenied(f"{viewer.name} sees a part of the plan {digest[:12]}; deciding needs all of it")
    return row


def _get(index: Index, viewer: Viewer, run_id: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    try:
        return run_views.get(index, viewer, printable(run_id, "id"))
    except StateError as error:
        raise NotFound(error.message, hint=error.hint) from None
