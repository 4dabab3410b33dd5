"""A run's live progress as server-sent events, read from the index: any API process can tell of any worker's run.

Each event is the whole picture, and its id the picture's digest: a reader that lost its connection has missed nothing that the next
event does not say, and is told nothing twice that it has.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from federator.api import models as m
from federator.api.context import IndexOf, ViewerOf
from federator.api.paging import printable
from federator.api.problems import NotFound, documented
from federator.api.routes.runs import RunId
from federator.api.told import fresh
from federator.connector import StateError
from federator.index import Index, run_views
from federator.index.run_views import Viewer

router = APIRouter(prefix="/api/v1", tags=["runs"])

MEDIA_TYPE = "text/event-stream"
_PERIOD = 1.0
_HEARTBEAT = 15.0
# Then the reader asks again, with the token that it has by then.
_LIFE = 300.0

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `progress` while it runs, then `end`; each one's data is a RunProgress",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": 'id: 5f1d\nevent: end\ndata: {"state": "ok"}\n\n'}},
    },
    204: {"description": "The run has ended, and Last-Event-ID names its end: there is nothing more"},
}


@router.get(
    "/runs/{id}/events",
    response_class=StreamingResponse,
    responses={**_EVENTS, **documented(400, 404)},
    summary="A run's live progress",
)
def get_events(
    index: IndexOf,
    viewer: ViewerOf,
    id: RunId,  # noqa: A002 - the name in the URL's template
    last_event_id: Annotated[str | None, Header(max_length=100, description="the id of the last event that was read")] = None,
) -> Response:
    """Server-sent events until the run ends; a comment now and then keeps the connection open. A browser's `EventSource` resumes by
    itself."""
    found = _look(index, viewer, printable(id, "id"))
    if found.finished_at is not None and _event_id(found) == last_event_id:
        return Response(status_code=204)
    # No proxy may hold events back.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(index, viewer, id, last_event_id), media_type=MEDIA_TYPE, headers=headers)


async def _events(index: Index, viewer: Viewer, run_id: str, last: str | None) -> AsyncIterator[str]:
    began = told = time.monotonic()
    yield "retry: 2000\n\n"
    while time.monotonic() - began < _LIFE:
        found = await run_in_threadpool(_look, index, viewer, run_id)
        ended, event = found.finished_at is not None, _event_id(found)
        if event != last:
            yield f"id: {event}\nevent: {'end' if ended else 'progress'}\ndata: {found.model_dump_json()}\n\n"
            last, told = event, time.monotonic()
        elif time.monotonic() - told >= _HEARTBEAT:
            yield ": still running\n\n"
            told = time.monotonic()
        if ended:
            return
        await _pause()


async def _pause() -> None:
    await asyncio.sleep(_PERIOD)


def _look(index: Index, viewer: Viewer, run_id: str) -> m.RunProgress:
    try:
        found = run_views.progress(index, viewer, run_id)
    except StateError as error:
        raise NotFound(error.message, hint=error.hint) from None
    told = fresh(index, viewer.scopes, run_views.touched(index, viewer, [run_id]))
    return m.RunProgress.model_validate({**found, "freshness": told})


def _event_id(found: m.RunProgress) -> str:
    return hashlib.sha256(found.model_dump_json().encode()).hexdigest()[:16]
