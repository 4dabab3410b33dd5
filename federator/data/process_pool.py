"""The pool of child processes that open tables. They stay warm between requests, and are replaced when they hang or die."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Unsupported,
)
from federator.data.crashes import CrashLog
from federator.data.fair_executor import FairExecutor
from federator.data.limits import CONFIG_SECTION, DataLimits
from federator.data.spool import Spool, SpoolFile
from federator.data.table_handle import TableHandle
from federator.lance.foreign_locations import ForeignLocations
from federator.lance.inspection import Inspection
from federator.runtime.child_process import ChildMemoryExceeded, ChildProcess, ChildProcessDied
from federator.runtime.redaction import redact

T = TypeVar("T")

_MODULE = "federator.data.process_main"
_KINDS = {kind.code: kind for kind in CatalogError.__subclasses__()}
# Operations that return rows get the limits as an argument. All others are limited only by their time.
_LIMITED_OPERATIONS = ("query",)
# A table that refers to another one, and so on: more than this many are not read.
_MAX_REFERENCES = 10
# The files of one principal that are being sent have as many bytes as this many of the largest responses.
_RESPONSES_OF_PRINCIPAL = 4

#: runs an operation: called with its name, the table handle, and its arguments by name
RunOperation = Callable[..., Any]


class ProcessTimeout(ServiceUnavailable):
    """A process did not respond in time. The effect of its operation is unknown."""


class ProcessEnded(Internal):
    """A process ended without a response. The effect of its operation is unknown."""


class TableProcessPool:
    """Runs operations on tables (``federator.data.operations``) in up to ``processes`` child processes. Thread-safe.

    A process is started on first use, and kept. Request bodies and rows are passed in files of a directory, which ``close``
    removes.
    """

    def __init__(self, limits: DataLimits, processes: int) -> None:
        self.limits = limits
        self._count = processes
        # Requests wait for a process in this pool, not in a thread that others need.
        self._threads = FairExecutor(processes, "data")
        self._crashes = CrashLog()
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._lock = threading.Lock()
        self._spool = Spool(_RESPONSES_OF_PRINCIPAL * limits.bytes)
        self._closed = False

    def submit(self, task: Callable[[RunOperation], T], principal: str) -> Future[T]:
        """Call ``task`` in a thread that may use a process, with a function that runs operations. One ``principal`` (a name) cannot
        occupy all processes.

        The future has the result or the error of ``task``. The function raises the errors of the operation, Internal if its
        process died, and ServiceUnavailable with the name of the limit: after ``max_seconds`` of work, or as long a wait for a
        process. Raise Unsupported if pylance is not installed.
        """
        if find_spec("lance") is None:
            raise Unsupported(
                "tables are opened with pylance, which is not installed", hint="pip install 'lance-federator[data]'"
            )
        submitted_at, seconds = time.monotonic(), self.limits.seconds

        def run_task() -> T:
            if time.monotonic() - submitted_at > seconds:
                raise ServiceUnavailable(
                    f"all {self._count} processes that open tables were busy for {CONFIG_SECTION} max_seconds = {seconds:g}",
                    hint=f"try again, or increase {CONFIG_SECTION} processes",
                )
            return task(partial(self._run_operation, principal))

        return self._threads.submit(principal, run_task)

    def open_file(self, principal: str) -> SpoolFile:
        """Return an empty file for a request body or a response. Its size counts for ``principal``."""
        return self._spool.open(principal)

    def close(self) -> None:
        """End every process, also a busy one."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for child in self._busy:
                child.interrupt()
        self._threads.shutdown()
        for child in idle:
            child.kill()
        self._spool.close()

    def _run_operation(self, principal: str, operation: str, handle: TableHandle, /, **arguments: Any) -> Any:
        end = time.monotonic() + self.limits.seconds

        def resolve(locations: Sequence[str]) -> Sequence[str]:
            # In a child, because a dead mount blocks.
            result = _unwrap_response(self._request(principal, "resolve", handle, {"locations": list(locations)}, end))
            return [str(location) for location in result["locations"]]

        # What a location refers to is known once it may be read itself.
        for _ in range(_MAX_REFERENCES):
            response = self._request(principal, operation, handle, arguments, end)
            if "foreign" not in response:
                return _unwrap_response(response)
            foreign = ForeignLocations(**response["foreign"])
            if not handle.may_read(foreign, resolve):
                break
            permitted = (spellings[0] for spellings in (*foreign.outside, foreign.root) if spellings)
            handle = replace(handle, permitted=(*handle.permitted, *permitted))
        raise PermissionDenied(
            "the table refers to data outside its location, and no table that the principal may see covers it",
            hint="set allowed_bases in the section of the source",
        )

    def _request(
        self, principal: str, operation: str, handle: TableHandle, arguments: Mapping[str, Any], end: float
    ) -> dict[str, Any]:
        """Return the response of one process, which must come before the monotonic time ``end``."""
        seconds = end - time.monotonic()
        if seconds <= 0:
            raise self._timeout()
        if operation in _LIMITED_OPERATIONS:
            arguments = {**arguments, "limits": asdict(self.limits)}
        request = {
            "operation": operation, "location": handle.location, "storage": dict(handle.storage),
            "allowed_bases": handle.allowed_bases, "mounts": handle.mounts, "permitted": handle.permitted,
            "arguments": arguments, "seconds": seconds,
        }  # fmt: skip
        self._crashes.require_few(principal, handle.location)
        child = self._acquire()
        try:
            response = child.request(request, seconds, self.limits.memory)
        except TimeoutError:
            self._replace(child)
            raise self._timeout() from None
        except ChildMemoryExceeded:
            self._replace(child)
            reason = f"the work needs more memory than the limit: {CONFIG_SECTION} max_memory = {self.limits.memory}"
            if operation in _LIMITED_OPERATIONS:
                raise InvalidInput(reason, hint="request fewer columns or rows") from None
            raise ProcessEnded(reason) from None
        except ChildProcessDied:
            self._replace(child)
            self._crashes.record(principal, handle.location)
            raise ProcessEnded("the process that opened the table ended") from None
        if child.memory > self.limits.memory // 2:
            # Its caches would take the room of the next request.
            self._replace(child)
        else:
            self._release(child)
        return response

    def _timeout(self) -> ProcessTimeout:
        hint = "request less at once, or check whether the store responds"
        return ProcessTimeout(f"no response within {CONFIG_SECTION} max_seconds = {self.limits.seconds:g}", hint=hint)

    def _acquire(self) -> ChildProcess:
        with self._lock:
            # The process that was used last has the warmest caches.
            while self._idle:
                child = self._idle.pop()
                if child.is_alive:
                    self._busy.add(child)
                    return child
                child.kill()
            if self._closed:
                raise ServiceUnavailable("the service is shutting down")
            child = ChildProcess(_MODULE)
            self._busy.add(child)
            return child

    def _release(self, child: ChildProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            if not self._closed:
                self._idle.append(child)
                return
        child.kill()

    def _replace(self, child: ChildProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            closed = self._closed
        child.kill()
        if not closed:
            # Start the replacement now, so that the next request does not wait for it.
            self._release(ChildProcess(_MODULE))


@dataclass(frozen=True, slots=True)
class PrincipalPool:
    """A ``TableProcessPool`` with the name of the principal whose operations it runs."""

    pool: TableProcessPool
    principal: str

    @property
    def limits(self) -> DataLimits:
        return self.pool.limits

    def submit(self, task: Callable[[RunOperation], T]) -> Future[T]:
        """As ``TableProcessPool.submit``."""
        return self.pool.submit(task, self.principal)

    def run(self, operation: str, handle: TableHandle, /, **arguments: Any) -> Any:
        """Run one operation and wait for it."""
        return self.submit(lambda run_operation: run_operation(operation, handle, **arguments)).result()

    def open_file(self) -> SpoolFile:
        """As ``TableProcessPool.open_file``."""
        return self.pool.open_file(self.principal)


def run_inspection(run_operation: RunOperation, handle: TableHandle, *, allow_outside: bool = False) -> Inspection:
    """Inspect the location of a table in a process (``TableHandle.inspect``)."""
    return Inspection(**run_operation("inspect", handle, allow_outside=allow_outside))


def _unwrap_response(response: dict[str, Any]) -> Any:
    if "foreign" in response:
        raise ConcurrentModification(
            "what the table refers to outside its location changed while it was opened", hint="try again"
        )
    error = response.get("error")
    if error is None:
        return response["answer"]
    raise _KINDS.get(error["code"], Internal)(redact(error["message"]), hint=error["hint"])
