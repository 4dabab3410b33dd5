"""Rate limit: one token bucket per principal, refilled at a constant rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

# Number of principals and addresses that have a bucket; full buckets are removed first.
_MAX_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RequestRateLimiter:
    """Allows each principal ``rate`` requests per second and ``burst`` at once; ``rate`` None allows everything.

    Each process has its own buckets, so several processes behind one address allow a multiple. Not thread-safe: use it from the
    event loop only.
    """

    def __init__(self, rate: float | None, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: dict[str, _Bucket] = {}

    def try_acquire(self, name: str) -> int:
        """Take one request from a principal's bucket. Return 0 if it is allowed, else the whole seconds until it is."""
        if self._rate is None:
            return 0
        now = self._clock()
        bucket = self._buckets.get(name)
        if bucket is None:
            self._evict(now)
            bucket = self._buckets[name] = _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens < 1:
            return max(1, math.ceil((1 - bucket.tokens) / self._rate))
        bucket.tokens -= 1
        return 0

    def give_back(self, name: str) -> None:
        """Return one request to a principal's bucket."""
        if name in self._buckets:
            self._buckets[name].tokens += 1

    def _evict(self, now: float) -> None:
        if self._rate is None or len(self._buckets) < _MAX_BUCKETS:
            return
        refill_seconds = self._burst / self._rate
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if now - bucket.at < refill_seconds}
        while len(self._buckets) >= _MAX_BUCKETS:
            self._buckets.pop(next(iter(self._buckets)))
