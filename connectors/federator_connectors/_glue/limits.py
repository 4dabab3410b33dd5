"""``limit.*`` in force: every attempt of every client waits for its turn, retries of botocore's own among them.

The breaker counts whole calls: botocore has given up on its retries when one ends without an answer.
"""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import Any

from federator.connector import Limits
from federator.connector.politeness import Breaker, Rate

_SERVER_ERROR = 500


@cache
def in_force(source: str, server: str, limits: Limits) -> InForce:
    """The one of this process for a source's server, whatever number of catalogs it has opened."""
    return InForce(f"{source}: {server}", limits)


class InForce:
    """Limits of one source. Thread-safe."""

    def __init__(self, server: str, limits: Limits) -> None:
        self._rate = Rate(limits.requests_per_second, time.monotonic, time.sleep)
        self._slots = threading.BoundedSemaphore(limits.concurrency) if limits.concurrency else None
        self._breaker = Breaker(server, limits, time.monotonic)

    def bind(self, client: Any) -> None:
        """Holds a boto3 client to the limits, by the events that botocore emits around each call and before each attempt."""
        client.meta.events.register("before-send", lambda **_: self._rate.wait())
        client.meta.events.register("before-call", lambda **_: self._begin())
        # One of these two follows whatever becomes of a call that began.
        client.meta.events.register("after-call", lambda http_response, **_: self._answered(http_response.status_code))
        client.meta.events.register("after-call-error", lambda **_: self._unanswered())

    # A handler that returned something would answer in place of the service.

    def _begin(self) -> None:
        self._breaker.enter()
        if self._slots is not None:
            self._slots.acquire()

    def _answered(self, status: int) -> None:
        self._end()
        if status >= _SERVER_ERROR:
            self._breaker.failed()
        else:
            self._breaker.answered()

    def _unanswered(self) -> None:
        self._end()
        self._breaker.failed()

    def _end(self) -> None:
        if self._slots is not None:
            self._slots.release()
