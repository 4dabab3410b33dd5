"""How often one caller may ask: a bucket of requests each, that fills again at a steady rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

# Callers and addresses that are remembered; a bucket that has filled again is forgotten first.
_KEPT = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Limits:
    """``rate`` requests a second for each caller, ``burst`` at once; ``rate`` None lets everything pass.

    The buckets are those of one process: with several behind one address, each allows as much. Used from the event loop alone.
    """

    def __init__(self, rate: float | None, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, name: str) -> int:
        """Takes one request of a caller's; 0 where it may pass, else in how many whole seconds it may."""
        if self._rate is None:
            return 0
        now = self._clock()
        bucket = self._buckets.get(name)
        if bucket is None:
            self._forget(now)
            bucket = self._buckets[name] = _Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1:
            return max(1, math.ceil((1 - bucket.left) / self._rate))
        bucket.left -= 1
        return 0

    def _forget(self, now: float) -> None:
        if self._rate is None or len(self._buckets) < _KEPT:
            return
        filling = self._burst / self._rate
        self._buckets = {name: found for name, found in self._buckets.items() if now - found.at < filling}
        while len(self._buckets) >= _KEPT:
            self._buckets.pop(next(iter(self._buckets)))
