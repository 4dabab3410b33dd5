"""Progress of a run as server-sent events. They are read from the index, so any API process serves the runs of any worker.

Each event contains the complete state, and its id is the digest of this state. So a client that reconnects misses nothing and receives
no state twice. A principal may have ``MAX_STREAMS_PER_PRINCIPAL`` streams.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from federator.api.dependencies import IndexDep, ThreadsDep, VisibilityDep
from federator.api.freshness import list_source_freshness
from federator.api.models.base import fields_of, to_json
from federator.api.models.runs import RunProgress
from federator.api.paging import require_storable
from federator.api.problems import NotFound, problem_docs
from federator.api.routes.runs import RunId
from federator.api.run_streams import POLL_SECONDS, EventStreamResponse, RunStreams
from federator.api.server_sent_events import RETRY, LastEventId, SentEvents, event_id
from federator.connector import StateError
from federator.store import Index
from federator.views import runs
from federator.views.visibility import Visibility

router = APIRouter(prefix="/api/v1")

# Afterwards the client reconnects, with the token that it has then: a revoked token ends the stream.
_MAX_STREAM_SECONDS = 300.0

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `progress` while the run is active, then `end`. The data of each event is a RunProgress",
        "content": {
            EventStreamResponse.media_type: {
                "schema": {"type": "string"},
                "example": 'id: 5f1d\nevent: end\ndata: {"state": "ok"}\n\n',
            }
        },
    },
    204: {"description": "The run has ended, and Last-Event-ID is its `end` event"},
}


@router.get(
    "/runs/{id}/events",
    response_class=StreamingResponse,
    responses={**_EVENTS, **problem_docs(400, 404)},
    summary="Progress of a run as events",
)
async def stream_run_events(
    request: Request,
    index: IndexDep,
    threads: ThreadsDep,
    visibility: VisibilityDep,
    id: RunId,  # noqa: A002 - the name in the URL's template
    last_event_id: LastEventId = None,
) -> Response:
    """Server-sent events until the run ends. Comments keep the connection open. A browser's `EventSource` reconnects by itself."""
    progress = await threads.run(_load_progress, index, visibility, require_storable(id, "id"))
    if progress.finished_at is not None and event_id(to_json(progress)) == last_event_id:
        return Response(status_code=204)
    streams: RunStreams = request.app.state.run_streams
    return EventStreamResponse(_iter_events(streams, index, visibility, id, last_event_id), streams, visibility.name)


async def _iter_events(
    streams: RunStreams, index: Index, visibility: Visibility, run_id: str, last_id: str | None
) -> AsyncIterator[str]:
    started_at, sent = time.monotonic(), SentEvents(last_id, keep_alive=": still running\n\n")
    version, kind, content = None, "", b""
    yield RETRY
    while time.monotonic() - started_at < _MAX_STREAM_SECONDS:
        newest = await streams.version(run_id)
        if newest != version:
            progress = await run_in_threadpool(_load_progress, index, visibility, run_id)
            version, kind, content = newest, "progress" if progress.finished_at is None else "end", to_json(progress)
        if text := sent.format_next(kind, content):
            yield text
        if kind == "end":
            return
        await _sleep()


async def _sleep() -> None:
    """Wait for the next poll. Tests replace this function."""
    await asyncio.sleep(POLL_SECONDS)


def _load_progress(index: Index, visibility: Visibility, run_id: str) -> RunProgress:
    try:
        run, sources, writes = runs.get_run_progress(index, visibility, run_id)
    except StateError as error:
        raise NotFound(error.message, hint=error.hint) from None
    source_freshness = list_source_freshness(index, visibility.scopes, runs.list_affected_sources(index, visibility, [run_id]))
    stages = runs.list_run_stages(index, visibility, run)
    return RunProgress(**fields_of(run), sources=sources, stages=stages, writes=writes, freshness=source_freshness)
