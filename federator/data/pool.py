"""The processes that open tables, kept warm between requests and replaced when they hang or die."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from federator.connector import CatalogError, Internal, ServiceUnavailable, Unsupported
from federator.connector.child import Child, ChildDied
from federator.connector.secrets import redacted
from federator.data.limits import SECTION, DataLimits
from federator.data.place import Place

T = TypeVar("T")

_MODULE = "federator.data.process"
_KINDS = {kind.code: kind for kind in CatalogError.__subclasses__()}
# For the operations whose answers are rows, which are bounded; all others are bounded by the time that they take.
_BOUNDED = ("query",)


Ask = Callable[..., Any]


class NoAnswer(ServiceUnavailable):
    """A process had no answer in time: what it did of its operation is not known."""


class ProcessEnded(Internal):
    """A process ended without an answer: what it did of its operation is not known."""


class DataPool:
    """Runs operations on tables (``federator.data.operations``) in up to ``processes`` child processes. Thread-safe.

    A process is started when it is first needed, and kept. Bodies and rows go through files in a directory of its own, which is
    removed with ``close``.
    """

    def __init__(self, limits: DataLimits, processes: int) -> None:
        self.limits = limits
        self._count = processes
        # A request waits here for a process, and not in a thread that others need.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="data")
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._closed = False

    def submit(self, work: Callable[[Ask], T]) -> Future[T]:
        """Calls ``work`` in a thread that may use a process: ``ask(operation, place, **arguments)`` gives an operation's answer.

        The future has what ``work`` returns or raises; ``ask`` raises the errors of the operation, Internal where its process died, and
        ServiceUnavailable that names the limit: ``max_seconds`` of work, or as long in wait for a process. Raises Unsupported where
        pylance is not installed.
        """
        if find_spec("lance") is None:
            raise Unsupported(
                "tables are opened with pylance, which is not installed here", hint="pip install 'lance-federator[data]'"
            )
        asked_at, seconds = time.monotonic(), self.limits.seconds

        def working() -> T:
            if time.monotonic() - asked_at > seconds:
                raise ServiceUnavailable(
                    f"all {self._count} processes that open tables were busy for {SECTION} max_seconds = {seconds:g}",
                    hint=f"ask again, or raise {SECTION} processes",
                )
            return work(self._ask)

        return self._threads.submit(working)

    def run(self, operation: str, place: Place, /, **arguments: Any) -> Any:
        """One operation, waited for."""
        return self.submit(lambda ask: ask(operation, place, **arguments)).result()

    def new_file(self) -> Path:
        """An empty file for a body or an answer, which the caller removes."""
        with self._lock:
            if self._directory is None:
                self._directory = Path(tempfile.mkdtemp(prefix="federator-data-"))
        with tempfile.NamedTemporaryFile(dir=self._directory, delete=False) as made:
            return Path(made.name)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """An empty file for a body or an answer, gone afterwards."""
        path = self.new_file()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Ends every process, whatever it does."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for child in self._busy:
                child.interrupt()
        self._threads.shutdown(cancel_futures=True)
        for child in idle:
            child.kill()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _ask(self, operation: str, place: Place, /, **arguments: Any) -> Any:
        seconds = self.limits.seconds
        if operation in _BOUNDED:
            arguments = {**arguments, "limits": asdict(self.limits)}
        request = {
            "operation": operation, "location": place.location, "storage": dict(place.storage), "arguments": arguments,
            "seconds": seconds,
        }  # fmt: skip
        child = self._take()
        try:
            answer = child.ask(request, seconds)
        except TimeoutError:
            self._replace(child)
            hint = "ask for less at once, unless it is the store that does not answer"
            raise NoAnswer(f"no answer within {SECTION} max_seconds = {seconds:g}", hint=hint) from None
        except ChildDied:
            self._replace(child)
            raise ProcessEnded("the process that opened the table ended") from None
        self._give_back(child)
        return _told(answer)

    def _take(self) -> Child:
        with self._lock:
            # The last one used is the warmest.
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    self._busy.add(child)
                    return child
                child.kill()
            if self._closed:
                raise ServiceUnavailable("the service is ending")
            child = Child(_MODULE)
            self._busy.add(child)
            return child

    def _give_back(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
            if not self._closed:
                self._idle.append(child)
                return
        child.kill()

    def _replace(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
            closed = self._closed
        child.kill()
        if not closed:
            # Started now, so that the next request does not wait for its start.
            self._give_back(Child(_MODULE))


def _told(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is None:
        return answer["answer"]
    raise _KINDS.get(error["code"], Internal)(redacted(error["message"]), hint=error["hint"])
