"""Live status of everything that a principal sees, as one stream of server-sent events.

An event says what has changed; its content is read from the route that has it. The stream counts as one of the event streams of its
principal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep, TableCountsDep, VisibilityDep
from federator.api.live_states import POLL_SECONDS, LiveStates
from federator.api.models.base import to_json
from federator.api.models.live import LiveState
from federator.api.problems import problem_docs
from federator.api.routes.overview import build_overview
from federator.api.run_streams import EventStreamResponse
from federator.api.server_sent_events import RETRY, LastEventId, SentEvents

router = APIRouter(prefix="/api/v1")

# Afterwards the client connects again, with the credential that it has then: a revoked token ends the stream.
_MAX_SECONDS = 300

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "An event `state` at first and after each change; its data is a LiveState. An event `alive` every 15 s between",
        "content": {
            EventStreamResponse.media_type: {
                "schema": {"description": "server-sent events"},
                "example": 'id: 5f1d\nevent: state\ndata: {"revisions": {"lake_hive": 12}}\n\n',
            }
        },
    },
}


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={**_EVENTS, **problem_docs(400, 429)},
    summary="Live status as events",
)
async def stream_live_events(
    request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep,
    table_counts: TableCountsDep,
    seconds: Annotated[int, Query(ge=0, le=_MAX_SECONDS, description="duration; 0: the present state only")] = _MAX_SECONDS,
    last_event_id: LastEventId = None,
) -> StreamingResponse:  # fmt: skip
    """Server-sent events about runs, plans, sources and the overview, as far as the principal sees them. The client then reads what it
    shows again from its own route. Changes of the index are noticed within a few seconds."""
    states: LiveStates = request.app.state.live_states
    key = (principal.name, principal.role, *principal.scopes.texts)

    async def read() -> LiveState:
        return await states.get(key, lambda: build_overview(index, settings, principal, visibility, table_counts).live)

    events = _iter_events(read, lambda: states.is_closed, seconds, last_event_id)
    return EventStreamResponse(events, request.app.state.run_streams, principal.name)


async def _iter_events(
    read: Callable[[], Awaitable[LiveState]], is_closed: Callable[[], bool], seconds: int, last_id: str | None
) -> AsyncIterator[str]:
    started_at, sent = time.monotonic(), SentEvents(last_id, keep_alive="event: alive\ndata: {}\n\n")
    yield RETRY
    while True:
        if text := sent.format_next("state", to_json(await read())):
            yield text
        if is_closed() or time.monotonic() - started_at >= seconds:
            return
        await _sleep()


async def _sleep() -> None:
    """Wait for the next poll. Tests replace this function."""
    await asyncio.sleep(POLL_SECONDS)
