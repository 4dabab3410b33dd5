"""Deadline of a whole catalog call.

A socket's timeout is for each read, so a server that sends a byte now and then would hold a call, and its slot, for ever. At the
deadline the call's connections are shut down, so that whatever the call waits for ends: headers, a body, or a login.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from typing import Self, TypeVar

from federator.connector.errors import ServiceUnavailable

T = TypeVar("T")

_READ_TIMEOUTS_PER_READ = 5
# Python cannot wait for any number of seconds.
_LONGEST_WAIT_SECONDS = 3600.0
# A socket with the timeout 0 does not block.
_SHORTEST_TIMEOUT_SECONDS = 0.001
#: the time that leases give an operation that writes (``CALL_DEADLINE_SECONDS``)
WRITE_SECONDS = 60.0
_CURRENT: ContextVar[CallDeadline | None] = ContextVar("call deadline", default=None)
#: when this thread's operation that writes started, on the monotonic clock; None outside of one
_WRITING_SINCE: ContextVar[float | None] = ContextVar("writing since", default=None)


class CallExpired(ServiceUnavailable):
    """A call that reached its deadline. The call policy does not repeat it: the server responds, but too slowly.

    A write may have taken effect, or take effect late.
    """


@contextmanager
def writing() -> Iterator[None]:
    """Give all calls of this thread within the block, reads too, one deadline. Of nested blocks, the outermost has it."""
    started_at = _WRITING_SINCE.get()
    token = _WRITING_SINCE.set(time.monotonic() if started_at is None else started_at)
    try:
        yield
    finally:
        _WRITING_SINCE.reset(token)


def call_seconds(connect_timeout: float, read_timeout: float, *, writes: bool) -> float:
    """Return the seconds until the deadline of a call that starts now. A read may bring a long listing.

    An operation that writes ends before its lease may be another process's, unless the source's own timeout is longer. Nothing is
    left (0) of an operation that reached its deadline.
    """
    seconds = connect_timeout + _READ_TIMEOUTS_PER_READ * read_timeout
    longest_write = max(read_timeout, WRITE_SECONDS)
    if writes:
        seconds = min(connect_timeout + read_timeout, longest_write)
    started_at = _WRITING_SINCE.get()
    if started_at is None:
        return seconds
    return max(0.0, min(seconds, longest_write - (time.monotonic() - started_at)))


@contextmanager
def exclude_wait() -> Iterator[None]:
    """Do not count the time of the block, in which this thread waits for a limit of the source, in its call and its operation.

    Leases are checked after the wait, immediately before each request that writes.
    """
    call, waits_since = _CURRENT.get(), time.monotonic()
    expires_at = call.expires_at if call else math.inf
    if call:
        call.expires_at = math.inf
    try:
        yield
    finally:
        waited = time.monotonic() - waits_since
        writing_since = _WRITING_SINCE.get()
        if writing_since is not None:
            _WRITING_SINCE.set(writing_since + waited)
        if call:
            call.expires_at = expires_at + waited
            _timer.add(call)


class CallSlots:
    """At most ``number`` calls at a time, as a context manager around each; None: any number. Thread-safe.

    Waiting for a slot does not count in a call and its operation.
    """

    def __init__(self, number: int | None) -> None:
        self._free = threading.BoundedSemaphore(number) if number else None

    def __enter__(self) -> None:
        if self._free is not None and not self._free.acquire(blocking=False):
            with exclude_wait():
                self._free.acquire()

    def __exit__(self, *_: object) -> None:
        if self._free is not None:
            self._free.release()


def connect_timeout(seconds: float) -> float:
    """Return the seconds that connecting may take: ``seconds``, or what is left of this thread's call if that is less."""
    call = _CURRENT.get()
    left = seconds if call is None else call.expires_at - time.monotonic()
    return max(_SHORTEST_TIMEOUT_SECONDS, min(seconds, left))


class CallDeadline:
    """A context manager around one call of this thread. Raise CallExpired at its end if ``seconds`` have passed.

    ``server`` starts the message. The connections that the call uses are those that ``watch_connection`` is called for.
    """

    def __init__(self, server: str, seconds: float) -> None:
        self._message = f"{server} did not complete its response in time (call timeout={round(seconds, 1):g} s)"
        self._seconds = seconds
        #: on the monotonic clock
        self.expires_at = math.inf
        # Nothing is sent then: a call watches its connection first.
        self._expired = seconds <= 0
        self._watched: list[socket.socket] = []
        self._token: Token[CallDeadline | None] | None = None

    def __enter__(self) -> Self:
        self.expires_at = time.monotonic() + self._seconds
        _timer.add(self)
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)
        with _timer.lock:
            _timer.calls.discard(self)
            for connection in self._watched:
                connection.close()
            self._watched.clear()
        # A connection that waited for the rest of the call may fail before the timer's thread wakes.
        self._expired |= error is not None and time.monotonic() >= self.expires_at
        # Also without an error: the end of a connection may look like the end of a response.
        if self._expired and (error is None or isinstance(error, Exception)):
            raise CallExpired(self._message) from error

    def watch(self, connection: socket.socket) -> None:
        # A duplicate of the descriptor: TLS moves the connection into another object, and a closed descriptor's number is used again.
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with _timer.lock:
            self._watched.append(duplicate)
            if self._expired:
                _shut_down(duplicate)

    def expire(self) -> None:
        """Shut down the call's connections, with the timer's lock held."""
        self._expired = True
        for connection in self._watched:
            _shut_down(connection)


class _Timer:
    """One thread that ends the calls of this process at their deadlines: to start a thread costs more than a small call.

    The set is small, because it has only calls in progress.
    """

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.calls: set[CallDeadline] = set()
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf

    def add(self, call: CallDeadline) -> None:
        with self.lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="call deadlines", daemon=True)
                self._thread.start()
            self.calls.add(call)
            if call.expires_at < self._wakes_at:
                self.lock.notify()

    def _run(self) -> None:
        with self.lock:
            while True:
                now = time.monotonic()
                for call in [call for call in self.calls if call.expires_at <= now]:
                    self.calls.discard(call)
                    call.expire()
                # Later calls wake the thread only if they expire earlier. Most do not, so most calls do not wake it.
                self._wakes_at = min((call.expires_at for call in self.calls), default=math.inf)
                self.lock.wait(min(self._wakes_at - now, _LONGEST_WAIT_SECONDS))


_timer = _Timer()


def _replace_timer() -> None:
    # A forked process has none of the threads of its parent, and locks as they were.
    global _timer
    _timer = _Timer()


os.register_at_fork(after_in_child=_replace_timer)


# Calls that were left to themselves, by server.
_abandoned: Counter[str] = Counter()
_MAX_ABANDONED = 16


def run_with_deadline(server: str, seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call of a library that opens connections itself. Raise CallExpired after ``seconds``.

    The call then goes on in its thread. If several of a server do, no further one is made.
    """
    if _abandoned[server] >= _MAX_ABANDONED:
        raise CallExpired(f"{server} has not completed the responses to {_MAX_ABANDONED} earlier calls")
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            result.set_exception(error)

    thread = threading.Thread(target=run, name="call with deadline", daemon=True)
    thread.start()
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise
        _abandoned[server] += 1
        result.add_done_callback(lambda _: _abandoned.subtract([server]))
        raise CallExpired(f"{server} did not complete its response in time (call timeout={round(seconds, 1):g} s)") from None


def has_abandoned_calls() -> bool:
    """Return whether calls go on after their deadline."""
    return _abandoned.total() > 0


def watch_connection(connection: socket.socket) -> None:
    """Shut a connection down at the deadline of this thread's call, if it has one."""
    deadline = _CURRENT.get()
    if deadline is not None:
        deadline.watch(connection)


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
