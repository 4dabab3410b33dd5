"""Locations that crashed the process which opened them are left alone for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from federator.connector import ServiceUnavailable

MAX_CRASHES = 2
WINDOW_SECONDS = 300.0
_MAX_LOCATIONS = 10_000


class CrashLog:
    """The times at which opening a location ended its process. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._crashes: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def record(self, location: str) -> None:
        """Record a crash now."""
        with self._lock:
            self._crashes[location] = [*self._recent(location), self._clock()]
            while len(self._crashes) > _MAX_LOCATIONS:
                del self._crashes[next(iter(self._crashes))]

    def check(self, location: str) -> None:
        """Raise ServiceUnavailable if ``MAX_CRASHES`` of this location are more recent than ``WINDOW_SECONDS``."""
        with self._lock:
            recent = self._recent(location)
        if len(recent) >= MAX_CRASHES:
            seconds = round(recent[-MAX_CRASHES] + WINDOW_SECONDS - self._clock())
            raise ServiceUnavailable(
                f"the process that opened the table ended {len(recent)} times; the table is not opened for {max(1, seconds)} s",
                hint="check the table with pylance",
            )

    def _recent(self, location: str) -> list[float]:
        since = self._clock() - WINDOW_SECONDS
        return [at for at in self._crashes.get(location, ()) if at > since]
