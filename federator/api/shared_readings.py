"""Readings of the index that many event streams share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")
# A reading that nobody has asked for during this time is forgotten.
_KEPT_SECONDS = 60.0


@dataclass(slots=True)
class _Reading(Generic[T]):
    value: T | None = None
    read_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedReadings(Generic[T]):
    """Values by key, each read once for all who ask for it at a time. Use it from the event loop only."""

    def __init__(self) -> None:
        self._readings: dict[Hashable, _Reading[T]] = {}

    async def get(self, key: Hashable, read: Callable[[], T], max_age: Callable[[T], float]) -> T:
        """Return the value of a key. It is read again, in a thread, if it is older than ``max_age`` seconds.

        Raise what ``read`` raises.
        """
        now = time.monotonic()
        self._readings = {
            key: kept for key, kept in self._readings.items() if kept.lock.locked() or now - kept.read_at < _KEPT_SECONDS
        }
        reading = self._readings.setdefault(key, _Reading())
        async with reading.lock:
            if reading.value is None or time.monotonic() - reading.read_at >= max_age(reading.value):
                reading.value = await run_in_threadpool(read)
                reading.read_at = time.monotonic()
            return reading.value
