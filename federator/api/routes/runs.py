"""Runs, and requests for runs: the worker carries them out, whatever process it lives in."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.context import ACTOR, Cursor, IndexOf, Limit, SettingsOf
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import NotFound, documented
from federator.connector import InvalidInput, StateError
from federator.index import Connection, Index, RowMapping, plans, requests, runs
from federator.settings import Settings

router = APIRouter(prefix="/api/v1", tags=["runs"])

RunId = Annotated[str, Path(max_length=64, examples=["0199f0c2a41-1f2e3d4c"])]
# The journal has the rest; a page of a browser does not want it.
_CHANGES = 1000


@router.get("/runs", response_model=m.Runs, responses={**documented_304(), **documented(400)}, summary="Runs, newest first")
def get_runs(request: Request, index: IndexOf, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """A page of runs."""
    before, _ = decode(cursor, "runs")
    found = runs.recent(index, limit=limit + 1, before=before or None)
    end = encode("runs", found[limit - 1]["id"]) if len(found) > limit else None
    return tagged(request, m.Runs(runs=[m.Run.model_validate(_run(row)) for row in found[:limit]], next=end))


@router.get("/runs/{id}", response_model=m.RunDetail, responses={**documented_304(), **documented(400, 404)}, summary="One run")
def get_run(request: Request, index: IndexOf, id: RunId) -> Response:  # noqa: A002 - the name in the URL's template
    """One run with what it did to each source and each of its writes (the first 1000), readable while it goes on."""
    run, sources, changes = _get(index, id)
    detail = {**_run(run), "sources": [dict(row) for row in sources], "changes": [dict(row) for row in changes[:_CHANGES]]}
    return tagged(request, m.RunDetail.model_validate(detail))


@router.post(
    "/runs", status_code=202, response_model=m.Requested, responses=documented(400, 403, 404, 409), summary="Ask for a run"
)
def post_run(wanted: m.RunRequest, index: IndexOf, settings: SettingsOf, response: Response) -> m.Requested:
    """Queues a run. Its request's address is in `Location`; the request says the run's id once it has begun."""
    with index.write() as connection:
        argument = _argument(connection, settings, wanted)
        asked = requests.add(connection, wanted.kind, argument, actor=ACTOR)
    response.headers["Location"] = f"/api/v1/requests/{asked.id}"
    return m.Requested.model_validate(asked)


@router.post(
    "/runs/{id}/cancel",
    status_code=202,
    response_model=m.Requested,
    responses=documented(400, 403, 404, 409),
    summary="Cancel a run",
)
def cancel_run(index: IndexOf, id: RunId) -> m.Requested:  # noqa: A002 - the name in the URL's template
    """Asks the worker to stop a run between two writes. A run that a command line began is stopped there."""
    run, _, _ = _get(index, id)
    with index.write() as connection:
        request = requests.of_run(connection, run["id"])
        if request is None:
            raise StateError(f"the run {run['id']} is {run['state']}, and no worker of ours has it in hand")
        return m.Requested.model_validate(requests.add(connection, "cancel", {"request": request.id}, actor=ACTOR))


@router.get("/requests/{id}", response_model=m.Requested, responses=documented(400, 404), summary="One request")
def get_request(index: IndexOf, id: Annotated[int, Path(ge=1, le=2**63 - 1)]) -> m.Requested:  # noqa: A002 - as in the URL's template
    """What became of a request."""
    with index.read() as connection:
        try:
            return m.Requested.model_validate(requests.get(connection, id))
        except StateError as error:
            raise NotFound(error.message) from None


def _argument(connection: Connection, settings: Settings, wanted: m.RunRequest) -> dict[str, Any]:
    """The request's argument, with every name checked now: who asked is still there to be told."""
    field = {"crawl": "sources", "apply": "plans"}.get(wanted.kind, "mirrors")
    for other in {"sources", "mirrors", "plans"} - {field}:
        if getattr(wanted, other):
            raise InvalidInput(f"{wanted.kind} takes {field}, not {other}")
    names: list[str] = getattr(wanted, field)
    for name in names:
        if field == "sources":
            settings.source(printable(name, field))
        elif field == "mirrors":
            settings.rule(printable(name, field))
        else:
            _applicable(connection, name)
    if wanted.kind == "apply" and not names:
        raise InvalidInput("apply takes plans: the digests of what was decided")
    return {field: names} if names else {}


def _applicable(connection: Connection, digest: str) -> None:
    state = plan_row(connection, digest)["state"]
    if state not in ("ready", "approved"):
        raise StateError(f"the plan {digest[:12]} is {state}", hint="approve it first" if state == "held" else "plan again")


def plan_row(connection: Connection, digest: str) -> RowMapping:
    """The row of a plan by its whole digest. Raises NotFound."""
    try:
        row = plans.get(connection, printable(digest, "digest"))
    except StateError as error:
        raise NotFound(error.message) from None
    if row["digest"] != digest:
        raise NotFound(f"no plan has the digest {digest!r}", hint="give the whole digest")
    return row


def _get(index: Index, run_id: str) -> tuple[RowMapping, list[RowMapping], list[RowMapping]]:
    try:
        found = runs.get(index, printable(run_id, "id"))
    except StateError as error:
        raise NotFound(error.message) from None
    if found[0]["id"] != run_id:
        raise NotFound(f"no run has the id {run_id!r}", hint="give the whole id")
    return found


def _run(row: RowMapping) -> dict[str, Any]:
    return {**row, "summary": json.loads(row["summary"]) if row["summary"] else None}
