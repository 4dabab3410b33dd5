"""``limit.*`` in force: every attempt of every client waits for its turn, retries of botocore's own among them."""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import Any

from federator.connector import Limits
from federator.connector.politeness import Rate


@cache
def in_force(source: str, limits: Limits) -> InForce:  # noqa: ARG001 - the source is the key
    """The one of this process for a source, whatever number of catalogs it has opened."""
    return InForce(limits)


class InForce:
    """Limits of one source. Thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self._rate = Rate(limits.requests_per_second, time.monotonic, time.sleep)
        self._slots = threading.BoundedSemaphore(limits.concurrency) if limits.concurrency else None

    def bind(self, client: Any) -> None:
        """Holds a boto3 client to the limits, by the events that botocore emits around each call and before each attempt."""
        client.meta.events.register("before-send", lambda **_: self._rate.wait())
        if self._slots is not None:
            slots = self._slots
            client.meta.events.register("before-call", lambda **_: _nothing(slots.acquire()))
            # One of these two follows whatever becomes of the call.
            client.meta.events.register("after-call", lambda **_: slots.release())
            client.meta.events.register("after-call-error", lambda **_: slots.release())


def _nothing(_: object) -> None:
    """A handler that returns something would answer in place of the service."""
