"""Rate limiting, concurrency limits, retries and a circuit breaker for catalog calls.

All connections of a process to one server share one ``CallPolicy``. Each Spark worker has its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from federator.connector.call_deadline import CallExpired, CallSlots, exclude_wait
from federator.connector.errors import CatalogError, ServiceUnavailable
from federator.connector.operation import require_permission

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The limits of calls to one source. Times are in seconds; None means no limit.

    ``attempts`` includes the first call. After ``breaker_failures`` calls in a row that the server did not serve, over
    ``breaker_seconds`` at least, no call is made for ``breaker_pause``. Then one call tests whether the server serves calls again.
    """

    requests_per_second: float | None = None
    concurrency: int | None = None
    attempts: int = 4
    breaker_failures: int = 5
    #: about as long as the attempts of a call take: the first ones of several calls at once fail in an interruption of milliseconds
    breaker_seconds: float = 3.0
    breaker_pause: float = 15.0


@cache
def shared_call_policy(source: str, server: str, limits: CallLimits) -> CallPolicy:
    """Return the call policy of this process for a source's server."""
    return CallPolicy(f"{source}: {server}", limits)


class CallPolicy:
    """Applies ``CallLimits`` to the calls of one server. Thread-safe."""

    def __init__(
        self,
        server: str,
        limits: CallLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limits = limits
        self._slots = CallSlots(limits.concurrency)
        self._rate = RateLimiter(limits.requests_per_second, clock, sleep)
        self._breaker = CircuitBreaker(server, limits, clock)

    def call(self, make: Callable[[], T], *, repeatable: bool) -> T:
        """Make a call, and repeat it after a retryable error if it is ``repeatable``. Raise the error of the last attempt.

        A call that is not repeatable needs the permission of its operation (``operation.require_permission``).

        An error's ``retry_after`` replaces the normal pause. If it is more than 30 seconds, the error is raised at once.
        """
        if not repeatable:
            return self._call_once(make, require_permission)
        # Imported here because the import takes 50 ms, and settings import this module for ``CallLimits``.
        import stamina

        retries = stamina.retry_context(
            on=_retry_pause, attempts=self._limits.attempts, timeout=None, wait_initial=0.2, wait_max=5.0, wait_jitter=0.5
        )
        for attempt in retries:
            with attempt:
                return self._call_once(make)
        raise AssertionError("a retry context returns or raises")

    def _call_once(self, make: Callable[[], T], check: Callable[[], None] = lambda: None) -> T:
        with self._slots:
            self._rate.wait()
            check()
            with self._breaker.guard_call():
                return make()


_MAX_PAUSE_SECONDS = 30.0


def _retry_pause(error: Exception) -> bool | float:
    if not isinstance(error, CatalogError) or not error.retryable or isinstance(error, CircuitOpen | CallExpired):
        return False
    if error.retry_after is None:
        return True
    return error.retry_after if error.retry_after <= _MAX_PAUSE_SECONDS else False


class RateLimiter:
    """Limits calls to a number per second, evenly spread; None means no limit. Thread-safe."""

    def __init__(self, per_second: float | None, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._interval = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next call may start. The wait does not count in the deadline of a call or of an operation that writes."""
        if not self._interval:
            return
        with self._lock:
            now = self._clock()
            start_at = max(now, self._next)
            self._next = start_at + self._interval
        if start_at > now:
            with exclude_wait():
                self._sleep(start_at - now)


class CircuitOpen(ServiceUnavailable):
    """No call was made, because the server did not serve the previous ones. The message ends with the last failure."""


class CircuitBreaker:
    """Opens after several calls in a row that were not served for some seconds, and allows one call after a pause. Thread-safe.

    A call was not served if the server did not respond, or responded that it is not available (HTTP 503, for example).
    """

    def __init__(self, server: str, limits: CallLimits, clock: Callable[[], float]) -> None:
        self._server = server
        self._limits = limits
        self._clock = clock
        self._failures = 0
        self._failing_since = 0.0
        self._last_failure = ""
        self._open_until = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def guard_call(self) -> Iterator[None]:
        """Record the result of the call inside the block. Raise CircuitOpen while the breaker is open."""
        self.before_call()
        try:
            yield
        except ServiceUnavailable as error:
            self.record_failure(error.message)
            raise
        except BaseException:
            # Any other error shows that the server serves calls.
            self.record_success()
            raise
        else:
            self.record_success()

    def before_call(self) -> None:
        """Raise CircuitOpen while the breaker is open. Call this before each call."""
        with self._lock:
            now = self._clock()
            failing_seconds = now - self._failing_since
            if self._failures < self._limits.breaker_failures or failing_seconds < self._limits.breaker_seconds:
                return
            left = self._open_until - now
            if left > 0:
                raise CircuitOpen(
                    f"{self._server} did not serve the last {self._failures} calls, so no calls are made for {left:.0f} s; "
                    f"the last failure: {self._last_failure}"
                )
            # This call tests the server. The breaker stays open for all other calls until its result is known.
            self._open_until = now + self._limits.breaker_pause

    def record_failure(self, failure: str) -> None:
        """Record a call that was not served. ``failure`` is the text of its error: what the server responded, or why nothing came."""
        with self._lock:
            now = self._clock()
            if not self._failures:
                self._failing_since = now
            self._failures += 1
            self._last_failure = failure
            self._open_until = now + self._limits.breaker_pause

    def record_success(self) -> None:
        """Record a call that was served. Its response may be an error."""
        with self._lock:
            self._failures = 0
