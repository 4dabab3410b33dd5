"""Crashes of the processes that open tables.

A table that crashed its process twice is not opened again for a while by the same principal: its expression may be the cause.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from federator.connector import ServiceUnavailable

MAX_CRASHES = 2
WINDOW_SECONDS = 300.0
#: pairs of a principal and a location
_MAX_PAIRS = 10_000


class CrashLog:
    """The times at which a principal's request ended the process that opened a location. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._crashes: dict[tuple[str, str], list[float]] = {}
        self._lock = threading.Lock()

    def record(self, principal: str, location: str) -> None:
        """Record a crash now."""
        with self._lock:
            key = (principal, location)
            self._crashes[key] = [*self._recent(key), self._clock()]
            while len(self._crashes) > _MAX_PAIRS:
                del self._crashes[next(iter(self._crashes))]

    def require_few(self, principal: str, location: str) -> None:
        """Raise ServiceUnavailable if ``MAX_CRASHES`` by this principal at this location are more recent than ``WINDOW_SECONDS``."""
        with self._lock:
            recent = self._recent((principal, location))
        if len(recent) >= MAX_CRASHES:
            seconds = round(recent[-MAX_CRASHES] + WINDOW_SECONDS - self._clock())
            raise ServiceUnavailable(
                f"the process that opened the table ended {len(recent)} times; the table is not opened for {max(1, seconds)} s",
                hint="check the table with pylance",
            )

    def _recent(self, key: tuple[str, str]) -> list[float]:
        since = self._clock() - WINDOW_SECONDS
        return [at for at in self._crashes.get(key, ()) if at > since]
