"""An executor that no principal can occupy alone."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class FairExecutor:
    """Runs tasks in ``count`` threads. Thread-safe.

    One principal has at most ``count - 1`` of them (the only one, if there is one), so that a thread is left for others. If several
    principals wait, the one with the fewest running tasks is next, and of equals the one that has waited longest.
    """

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._free = count
        self._share = max(1, count - 1)
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def submit(self, principal: str, task: Callable[[], T]) -> Future[T]:
        """Queue a task of a principal. The future has its result or its error."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.setdefault(principal, deque()).append((future, task))
            self._start_next()
        return future

    def shutdown(self) -> None:
        """Cancel what waits, and wait for what runs."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for tasks in waiting.values():
            for future, _ in tasks:
                future.cancel()
        self._threads.shutdown()

    def _start_next(self) -> None:
        """Start tasks while threads are free, with the lock held."""
        while self._free:
            principals = [principal for principal in self._waiting if self._running[principal] < self._share]
            if not principals:
                return
            principal = min(principals, key=lambda name: self._running[name])
            tasks = self._waiting.pop(principal)
            future, task = tasks.popleft()
            if tasks:
                # Behind the other principals.
                self._waiting[principal] = tasks
            self._free -= 1
            self._running[principal] += 1
            self._threads.submit(self._run, principal, future, task)

    def _run(self, principal: str, future: Future[Any], task: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(task())
                except BaseException as error:  # noqa: BLE001 - the future has it, as in every executor
                    future.set_exception(error)
        finally:
            with self._lock:
                self._free += 1
                self._running[principal] -= 1
                if not self._running[principal]:
                    del self._running[principal]
                self._start_next()
