"""Event streams of runs: their number is limited, and each followed run is read once per second, however many follow it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from functools import partial

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from federator.api.shared_readings import SharedReadings
from federator.api.shares import OpenCounts
from federator.model.scopes import EVERYTHING
from federator.store import Index
from federator.views import runs
from federator.views.visibility import Visibility

POLL_SECONDS = 1.0
MAX_STREAMS = 128
MAX_STREAMS_PER_PRINCIPAL = 16
_RETRY_SECONDS = 10
_ALL = Visibility("", EVERYTHING)


class RunStreams:
    """The open event streams of one process. Use it from the event loop only."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._versions = SharedReadings[str]()
        self._open = OpenCounts(
            "event streams", per_principal=MAX_STREAMS_PER_PRINCIPAL, total=MAX_STREAMS, retry_seconds=_RETRY_SECONDS
        )

    def counted(self, principal: str) -> AbstractContextManager[None]:
        """Count a stream of a principal, as ``OpenCounts.counted``."""
        return self._open.count_one(principal)

    async def version(self, run_id: str) -> str:
        """Return the digest of a run's state, which may be one second old. Raise StateError if the run does not exist."""
        return await self._versions.get(run_id, partial(self._read_version, run_id), lambda _: POLL_SECONDS)

    def _read_version(self, run_id: str) -> str:
        progress = runs.get_run_progress(self._index, _ALL, run_id)
        state = (*progress, runs.list_run_stages(self._index, _ALL, progress[0]))
        return hashlib.sha256(repr(state).encode()).hexdigest()


class EventStreamResponse(StreamingResponse):
    """Server-sent events that count as a stream of their principal until the response ends, also if the client disconnects."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], streams: RunStreams, principal: str) -> None:
        # These headers keep proxies from buffering events.
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._streams, self._principal = streams, principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.counted(self._principal):
            await super().__call__(scope, receive, send)
