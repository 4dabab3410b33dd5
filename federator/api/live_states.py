"""The live status of each principal: read again only if the index has changed, however many streams show it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from federator.api.models.live import LiveState
from federator.api.shared_readings import SharedReadings
from federator.store import Index
from federator.views import live

POLL_SECONDS = 1.0
# Seconds after which a principal's status is read again, if the index has changed, and if it has not: then, too, a crawl may have
# become overdue.
_CHANGED_SECONDS, _QUIET_SECONDS = 2.0, 15.0

_Version = tuple[object, ...]


class LiveStates:
    """The statuses of one process. Use it from the event loop only."""

    def __init__(self, index: Index) -> None:
        #: the service stops: streams end, so that nothing waits for them
        self.is_closed = False
        self._read_version = partial(live.read_version, index)
        self._versions = SharedReadings[_Version]()
        self._states = SharedReadings[tuple[_Version, LiveState]]()

    async def get(self, key: Hashable, read: Callable[[], LiveState]) -> LiveState:
        """Return what ``read`` returns, which may be a few seconds old. Principals with the same ``key`` share it."""
        version = await self._versions.get("index", self._read_version, lambda _: POLL_SECONDS)
        _, state = await self._states.get(
            key, lambda: (version, read()), lambda known: _CHANGED_SECONDS if known[0] != version else _QUIET_SECONDS
        )
        return state
