"""Deadlines for catalog calls: a call or an iteration that takes too long ends with an error."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from federator.connector import Catalog, FederatorError, ServiceUnavailable, SourceSpec
from federator.connector.native_errors import as_federator_error
from federator.model import Coverage
from federator.registry import open_catalog

_T = TypeVar("_T")
_CHUNK_ITEMS = 1000


class DeadlineExceeded(ServiceUnavailable):
    """The deadline passed. The read continues in its thread."""


def call_with_deadline(spec: SourceSpec, operation: Callable[[Catalog], _T], deadline: float) -> _T:
    """Call one operation of a source, and return its result. Raise FederatorError for any failure, and after ``deadline`` seconds."""

    def results() -> Iterator[_T]:
        with open_catalog(spec) as catalog:
            yield operation(catalog)

    try:
        (result,) = iterate_with_deadline(results, deadline)
    except FederatorError:
        raise
    except Exception as error:  # noqa: BLE001 - as for a shard
        raise as_federator_error(spec.name, error) from None
    return result


def iterate_with_deadline(read: Callable[[], Iterator[_T]], deadline: float) -> Iterator[_T]:
    """Yield what ``read`` yields. Raise what it raises, and DeadlineExceeded after ``deadline`` seconds."""
    # A client that hangs in a system call cannot be interrupted: its thread is abandoned, and the shard continues without it.
    reader = _BackgroundReader(read)
    end = time.monotonic() + deadline
    threading.Thread(target=reader.run, daemon=True).start()
    try:
        while True:
            try:
                chunk = reader.handed.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise DeadlineExceeded(f"reading took longer than the deadline of {deadline:g} s") from None
            if chunk is None:
                return
            if isinstance(chunk, BaseException):
                raise chunk
            yield from chunk
    finally:
        reader.abandoned.set()


class _BackgroundReader(Generic[_T]):
    """Reads in its own thread. It queues chunks of items, and at the end the error or None."""

    def __init__(self, read: Callable[[], Iterator[_T]]) -> None:
        self._read = read
        self.handed: queue.Queue[list[_T] | BaseException | None] = queue.Queue(maxsize=8)
        self.abandoned = threading.Event()

    def run(self) -> None:
        chunk: list[_T] = []
        end: BaseException | None = None
        try:
            for item in self._read():
                chunk.append(item)
                # A coverage completes a namespace, so a failure of the next namespace must not affect it.
                if len(chunk) >= _CHUNK_ITEMS or isinstance(item, Coverage):
                    self._hand_over(chunk)
                    chunk = []
                if self.abandoned.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - passed to the reading thread, which raises it
            end = error
        self._hand_over(chunk)
        self._hand_over(end)

    def _hand_over(self, chunk: list[_T] | BaseException | None) -> None:
        while not self.abandoned.is_set():
            try:
                self.handed.put(chunk, timeout=1.0)
            except queue.Full:
                continue
            return
