"""How a catalog is asked so that it does not suffer: at most so often, at most so many at once, again only what may be repeated,
and not at all for a while once it has stopped answering.

One ``Politeness`` serves every connection that a process has to one server; Spark's workers each have their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from federator.connector.errors import CatalogError, ServiceUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one source may be burdened with. Times are seconds; None is no limit.

    ``attempts`` counts the first call too. After ``breaker_failures`` calls in a row without an answer, none is made for
    ``breaker_pause``; then one tries whether the server is back.
    """

    requests_per_second: float | None = None
    concurrency: int | None = None
    attempts: int = 4
    breaker_failures: int = 5
    breaker_pause: float = 15.0


@cache
def politeness(source: str, server: str, limits: Limits) -> Politeness:
    """The one of this process for a source's server."""
    return Politeness(f"{source}: {server}", limits)


class Politeness:
    """Limits in force. Thread-safe."""

    def __init__(
        self,
        server: str,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limits = limits
        self._slots = threading.BoundedSemaphore(limits.concurrency) if limits.concurrency else None
        self._rate = Rate(limits.requests_per_second, clock, sleep)
        self._breaker = Breaker(server, limits, clock)

    def call(self, make: Callable[[], T], *, repeatable: bool) -> T:
        """Makes a call, and again after soft errors where it may be repeated. Raises what it raises at last.

        An error's ``retry_after`` is waited for instead of our own pause; one of more than 30 s is given up at once, and said.
        """
        if not repeatable:
            return self._once(make)
        # Not at the top: it costs 50 ms, and settings import this module for ``Limits``.
        import stamina

        retries = stamina.retry_context(
            on=_pause, attempts=self._limits.attempts, timeout=None, wait_initial=0.2, wait_max=5.0, wait_jitter=0.5
        )
        for attempt in retries:
            with attempt:
                return self._once(make)
        raise AssertionError("a retry context returns or raises")

    def _once(self, make: Callable[[], T]) -> T:
        with self._slot():
            self._rate.wait()
            with self._breaker.watching():
                return make()

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._slots is None:
            yield
            return
        with self._slots:
            yield


_LONGEST_PAUSE = 30.0


def _pause(error: Exception) -> bool | float:
    if not isinstance(error, CatalogError) or not error.retryable or isinstance(error, Paused):
        return False
    if error.retry_after is None:
        return True
    return error.retry_after if error.retry_after <= _LONGEST_PAUSE else False


class Rate:
    """At most so many calls a second, evenly spread; None lets all pass. Thread-safe."""

    def __init__(self, per_second: float | None, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._interval = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Returns when the next call may start."""
        if not self._interval:
            return
        with self._lock:
            now = self._clock()
            at = max(now, self._next)
            self._next = at + self._interval
        if at > now:
            self._sleep(at - now)


class Paused(ServiceUnavailable):
    """The server was not asked: it did not answer the calls before."""


class Breaker:
    """Opens after some calls in a row without an answer, and lets one through after a pause. Thread-safe."""

    def __init__(self, server: str, limits: Limits, clock: Callable[[], float]) -> None:
        self._server = server
        self._limits = limits
        self._clock = clock
        self._failures = 0
        self._closed_until = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Counts what becomes of one call. Raises Paused while the breaker is open."""
        self.enter()
        try:
            yield
        except ServiceUnavailable:
            self.failed()
            raise
        except BaseException:
            # Any other answer is an answer.
            self.answered()
            raise
        else:
            self.answered()

    def enter(self) -> None:
        """Before a call. Raises Paused while the breaker is open."""
        with self._lock:
            if self._failures < self._limits.breaker_failures:
                return
            left = self._closed_until - self._clock()
            if left > 0:
                raise Paused(
                    f"{self._server} did not answer the last {self._failures} calls, and is not asked again for {left:.0f} s"
                )
            # The one that tries; the others wait for what it finds.
            self._closed_until = self._clock() + self._limits.breaker_pause

    def failed(self) -> None:
        """The call had no answer."""
        with self._lock:
            self._failures += 1
            self._closed_until = self._clock() + self._limits.breaker_pause

    def answered(self) -> None:
        """The call had one, be it an error."""
        with self._lock:
            self._failures = 0
