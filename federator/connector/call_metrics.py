"""Metrics of catalog calls: counts, latencies and errors.

A call is one method of ``Catalog``, for all connectors. ``OpenedCatalog`` records it with the ``CallMeter`` of its process. Spark
workers return their ``CallCounts`` as JSON with the rows that they read.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

#: upper bounds of the latency buckets; their labels are the values of Prometheus' ``le``
BUCKET_BOUNDS_SECONDS = (0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0)
BUCKET_LABELS = (*(f"{bound:g}" for bound in BUCKET_BOUNDS_SECONDS), "+Inf")
# The most shards of one crawl task that are recorded for traces.
_MAX_TIMED_SHARDS = 500


@dataclass
class CallCounts:
    """Calls and their seconds by (source, operation, bucket), errors by (source, operation, code), and the shards that were read.

    A shard is (name, start, seconds, error code or None). Traces show the shards as spans.
    """

    calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seconds: dict[tuple[str, str, str], float] = field(default_factory=dict)
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    shards: list[tuple[str, float, float, str | None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.calls or self.errors)

    def merge(self, other: CallCounts) -> None:
        """Add the counts of another process."""
        self.calls.update(other.calls)
        self.errors.update(other.errors)
        for key, seconds in other.seconds.items():
            self.seconds[key] = self.seconds.get(key, 0.0) + seconds
        self.shards += other.shards

    def to_json(self) -> str:
        calls = [[*key, number, self.seconds.get(key, 0.0)] for key, number in self.calls.items()]
        return json.dumps({"calls": calls, "errors": [[*key, n] for key, n in self.errors.items()], "shards": self.shards})

    @classmethod
    def from_json(cls, text: str) -> CallCounts:
        data = json.loads(text)
        counts = cls(shards=[(name, started_at, seconds, code) for name, started_at, seconds, code in data["shards"]])
        for source, operation, bucket, number, seconds in data["calls"]:
            counts.calls[source, operation, bucket] = number
            counts.seconds[source, operation, bucket] = seconds
        for source, operation, code, number in data["errors"]:
            counts.errors[source, operation, code] = number
        return counts


class CallMeter:
    """Sums up calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = CallCounts()

    def record_call(self, source: str, operation: str, seconds: float, errors: Mapping[str, int] | None = None) -> None:
        """Record one call. ``errors`` counts its errors by code."""
        key = (source, operation, BUCKET_LABELS[bisect_left(BUCKET_BOUNDS_SECONDS, seconds)])
        with self._lock:
            self._counts.calls[key] += 1
            self._counts.seconds[key] = self._counts.seconds.get(key, 0.0) + seconds
            for code, number in (errors or {}).items():
                self._counts.errors[source, operation, code] += number

    def record_shard(self, name: str, started_at: float, seconds: float, code: str | None) -> None:
        """Record one shard. ``started_at`` is in seconds since the epoch."""
        with self._lock:
            if len(self._counts.shards) < _MAX_TIMED_SHARDS:
                self._counts.shards.append((name, started_at, seconds, code))

    def drain(self) -> CallCounts:
        """Return the counts since the last call, and reset them."""
        with self._lock:
            drained, self._counts = self._counts, CallCounts()
        return drained

    def restore(self, counts: CallCounts) -> None:
        """Add drained counts again that could not be stored."""
        with self._lock:
            self._counts.merge(counts)


#: the meter of this process, the default of ``OpenedCatalog``
PROCESS_METER = CallMeter()
