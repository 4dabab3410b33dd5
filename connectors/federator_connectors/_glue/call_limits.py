"""Enforcement of ``limit.*`` for boto3 clients.

Each attempt of each client waits for the rate limit, also botocore's own retries. The circuit breaker counts calls, not attempts: a
call fails only after botocore's last retry.
"""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import Any

from federator.connector import CallLimits
from federator.connector.call_policy import CircuitBreaker, RateLimiter

_SERVER_ERROR = 500


@cache
def shared_call_limiter(source: str, server: str, limits: CallLimits) -> CallLimiter:
    """Return the process-wide limiter of a source's server; all opened catalogs of the source share it."""
    return CallLimiter(f"{source}: {server}", limits)


class CallLimiter:
    """Limits of one source. Thread-safe."""

    def __init__(self, server: str, limits: CallLimits) -> None:
        self._rate = RateLimiter(limits.requests_per_second, time.monotonic, time.sleep)
        self._slots = threading.BoundedSemaphore(limits.concurrency) if limits.concurrency else None
        self._breaker = CircuitBreaker(server, limits, time.monotonic)

    def attach(self, client: Any) -> None:
        """Apply the limits to a boto3 client, with the events that botocore emits around each call and before each attempt."""
        client.meta.events.register("before-send", lambda **_: self._rate.wait())
        client.meta.events.register("before-call", lambda **_: self._begin())
        # Exactly one of the next two events follows each call that has started.
        client.meta.events.register("after-call", lambda http_response, **_: self._record_response(http_response.status_code))
        client.meta.events.register("after-call-error", lambda **_: self._record_no_response())

    # The handlers return None: botocore would use any other value as the response of the service.

    def _begin(self) -> None:
        self._breaker.before_call()
        if self._slots is not None:
            self._slots.acquire()

    def _record_response(self, status: int) -> None:
        self._end()
        if status >= _SERVER_ERROR:
            self._breaker.record_failure()
        else:
            self._breaker.record_success()

    def _record_no_response(self) -> None:
        self._end()
        self._breaker.record_failure()

    def _end(self) -> None:
        if self._slots is not None:
            self._slots.release()
