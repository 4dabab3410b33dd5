"""The share of each principal in what one process can do at a time: event streams, and requests that occupy a thread.

A process has a fixed number of threads and connections to the index. Requests beyond a principal's share wait without occupying
either, and are refused if they wait too long or are too many, so that other principals are served meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

from federator.api.problems import RequestRejected

P = ParamSpec("P")
T = TypeVar("T")

#: requests that run at a time: a process has 30 connections to the index, and lookups of tokens and the health checks need some
MAX_THREADS = 26
#: of these, the threads that only principals without a running request may use
RESERVED = 16
#: requests of a principal that run at a time
MAX_RUNNING = 5
#: the name under which requests that may call the identity provider have a share; no principal has it
IDENTITY_PROVIDER = ""
#: requests of a principal that wait for a thread: clients of a cluster share one token, and few of them repeat a request
MAX_WAITING = 128
WAIT_SECONDS = 10.0
_RETRY_SECONDS = 5


class OpenCounts:
    """How many streams or requests are open. Use it from the event loop only."""

    def __init__(self, noun: str, *, per_principal: int, total: int | None = None, retry_seconds: int) -> None:
        self._noun, self._per_principal, self._total, self._retry_seconds = noun, per_principal, total, retry_seconds
        self._open: Counter[str] = Counter()

    @contextmanager
    def count_one(self, principal: str) -> Iterator[None]:
        """Count one for a principal (its name) while the context is open.

        Raise RequestRejected (429) if the principal, or all together, have too many.
        """
        if self._open[principal] >= self._per_principal or (self._total is not None and self._open.total() >= self._total):
            raise self.rejection()
        self._open[principal] += 1
        try:
            yield
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal]

    def rejection(self) -> RequestRejected:
        return RequestRejected(
            429, "Too many requests", f"too many {self._noun} are open, retry in {self._retry_seconds} s",
            headers={"Retry-After": str(self._retry_seconds)},
        )  # fmt: skip


class ThreadShares:
    """The requests that run in threads, or wait for one. Use it from the event loop only.

    A principal runs up to ``MAX_RUNNING`` requests, but the last ``RESERVED`` threads are for principals that run none.
    """

    def __init__(self) -> None:
        self._requests = OpenCounts("requests", per_principal=MAX_RUNNING + MAX_WAITING, retry_seconds=_RETRY_SECONDS)
        self._running: Counter[str] = Counter()
        #: principals of the waiting requests, in the order of arrival, by the future that lets each begin
        self._waiting: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def hold(self, principal: str) -> AsyncIterator[None]:
        """Hold one of the shares of a principal (its name). Its requests wait for one in their order.

        Raise RequestRejected (429) after ``WAIT_SECONDS``, or if too many requests wait.
        """
        with self._requests.count_one(principal):
            if self._may_begin(principal):
                self._running[principal] += 1
            else:
                await self._wait(principal)
            try:
                yield
            finally:
                self._end(principal)

    def _may_begin(self, principal: str) -> bool:
        own, free = self._running[principal], MAX_THREADS - self._running.total()
        return own < MAX_RUNNING and free > (RESERVED if own else 0)

    async def _wait(self, principal: str) -> None:
        begun = asyncio.get_running_loop().create_future()
        self._waiting[begun] = principal
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await begun
        except (TimeoutError, asyncio.CancelledError) as error:
            if self._waiting.pop(begun, None) is None:
                # ``_end`` gave the share in the same moment.
                self._end(principal)
            if isinstance(error, TimeoutError):
                raise self._requests.rejection() from None
            raise

    def _end(self, principal: str) -> None:
        self._running[principal] -= 1
        if not self._running[principal]:
            del self._running[principal]
        for begun, waiting in list(self._waiting.items()):
            if not begun.done() and self._may_begin(waiting):
                self._running[waiting] += 1
                del self._waiting[begun]
                begun.set_result(None)


@dataclass(frozen=True, slots=True)
class PrincipalThreads:
    """The threads as one principal uses them, for routes that are coroutines."""

    shares: ThreadShares
    principal: str

    async def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread while holding a share. Raise the errors of ``ThreadShares.hold``."""
        async with self.shares.hold(self.principal):
            return await run_in_threadpool(function, *arguments, **options)
