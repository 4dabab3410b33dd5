"""The live status of each principal: read again only if the index has changed, however many streams show it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from federator.api.models.live import LiveState
from federator.store import Index
from federator.views import live

POLL_SECONDS = 1.0
# A principal's status is read at most this often while the index changes, and this often while it does not: time alone makes a
# crawl overdue.
_CHANGED_SECONDS, _QUIET_SECONDS = 2.0, 15.0
_KEPT_SECONDS = 60.0


@dataclass(slots=True)
class _Reading:
    state: LiveState | None = None
    version: tuple[object, ...] = ()
    read_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LiveStates:
    """The statuses of one process. Use it from the event loop only."""

    def __init__(self, index: Index) -> None:
        self._index = index
        #: the service stops: streams end, so that nothing waits for them
        self.is_closed = False
        self._version = _Reading()
        self._readings: dict[Hashable, _Reading] = {}

    async def get(self, viewer: Hashable, read: Callable[[], LiveState]) -> LiveState:
        """Return the status of a viewer, which may be a few seconds old. ``read`` reads it; ``viewer`` names what it depends on."""
        version, now = await self._read_version(), time.monotonic()
        self._readings = {
            key: kept for key, kept in self._readings.items() if kept.lock.locked() or now - kept.read_at < _KEPT_SECONDS
        }
        reading = self._readings.setdefault(viewer, _Reading())
        async with reading.lock:
            age = time.monotonic() - reading.read_at
            if reading.state is None or age >= (_CHANGED_SECONDS if reading.version != version else _QUIET_SECONDS):
                reading.state = await run_in_threadpool(read)
                reading.version, reading.read_at = version, time.monotonic()
            return reading.state

    async def _read_version(self) -> tuple[object, ...]:
        newest = self._version
        async with newest.lock:
            if time.monotonic() - newest.read_at >= POLL_SECONDS:
                newest.version = await run_in_threadpool(live.read_version, self._index)
                newest.read_at = time.monotonic()
            return newest.version
