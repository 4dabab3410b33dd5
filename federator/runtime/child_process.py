"""Child processes that answer requests as lines of JSON, for calls that may hang.

Python cannot interrupt a call to a store that does not answer, but it can kill a process. This module has both sides of the pipe.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

_MAX_TERMINATE_SECONDS = 5.0
# Responses are read in batches with this delay. The buffer of a pipe holds more responses than arrive in this time.
_BATCH_DELAY_SECONDS = 0.01
_MEMORY_CHECK_SECONDS = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ChildProcessDied(Exception):
    """The process ended without a response."""


class ChildMemoryExceeded(Exception):
    """The process used more resident memory than allowed."""


class ChildProcess:
    """A process of ``python -m <module>``, which calls ``serve_requests``.

    It handles one request at a time, and ends when this process ends.
    """

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def memory(self) -> int:
        """The resident memory in bytes, without files that are mapped. 0 on systems without ``/proc``, and after the process ended."""
        try:
            _, resident, shared, *_ = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        except OSError:
            return 0
        return (int(resident) - int(shared)) * _PAGE_BYTES

    def request(self, request: Mapping[str, Any], timeout: float, max_memory: int | None = None) -> dict[str, Any]:
        """Return the response. Call ``kill`` after each of the errors.

        Raise TimeoutError after ``timeout`` seconds, ChildMemoryExceeded if ``memory`` exceeds ``max_memory``, or ChildProcessDied.
        """
        (text,) = self.request_all([request], timeout, max_memory)
        response: dict[str, Any] = json.loads(text)
        return response

    def request_all(
        self, requests: Iterable[Mapping[str, Any]], timeout: float, max_memory: int | None = None
    ) -> Iterator[str]:
        """Yield the responses as JSON texts, in order, each within ``timeout`` seconds of the previous one.

        All requests are sent without waiting for responses, so the process never waits for this one. Errors as for ``request``. A
        caller that stops before the last response must call ``kill``.
        """
        lines = [json.dumps(request).encode() + b"\n" for request in requests]
        unsent, received, pending = memoryview(b"".join(lines)), b"", len(lines)
        while pending:
            unsent, piece = self._exchange(unsent, time.monotonic() + timeout, max_memory)
            *responses, received = (received + piece).split(b"\n")
            for response in responses:
                yield response.decode()
            pending -= len(responses)
            if pending:
                # Waking up for each response would take CPU time from the process that computes them.
                time.sleep(_BATCH_DELAY_SECONDS)

    def interrupt(self) -> None:
        """Kill the process while another thread waits for a response. That thread gets ChildProcessDied and calls ``kill``."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process and release its pipes. Safe to repeat. Only the thread that sends requests may call it."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        # A process that hangs in the kernel, on a dead network mount, ends when the mount does. Do not wait for it.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_MAX_TERMINATE_SECONDS)

    def _exchange(self, unsent: memoryview, end: float, max_memory: int | None) -> tuple[memoryview, bytes]:
        """Write ``unsent`` and read, until at least one complete response was received. Return the rest to send, and the input."""
        # poll() instead of select(), because a server may have more than 1,024 open descriptors.
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if unsent:
            poll.register(self._in, select.POLLOUT)
        received: list[bytes] = []
        while not (received and b"\n" in received[-1]):
            left = max(0.0, end - time.monotonic())
            ready = dict(poll.poll((left if max_memory is None else min(left, _MEMORY_CHECK_SECONDS)) * 1000))
            if max_memory is not None and self.memory > max_memory:
                raise ChildMemoryExceeded
            if not ready and time.monotonic() >= end:
                raise TimeoutError
            if self._in in ready:
                unsent = self._write(unsent)
                if not unsent:
                    poll.unregister(self._in)
            if self._out in ready:
                received.append(os.read(self._out, 1 << 16))
                if not received[-1]:
                    raise ChildProcessDied
        return unsent, b"".join(received)

    def _write(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._in, unsent[: 1 << 16]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            # Earlier responses of the process may still be unread.
            return memoryview(b"")


class ReplaceableProcess:
    """A child process of a module, for one thread. It is started when it is needed, and again after it was killed."""

    def __init__(self, module: str, timeout: float) -> None:
        self._module = module
        self._timeout = timeout
        self._child: ChildProcess | None = None

    @property
    def child(self) -> ChildProcess:
        """The running process."""
        self._child = self._child or ChildProcess(self._module)
        return self._child

    @property
    def timeout_message(self) -> str:
        """The message for a request without a response in time."""
        return f"no response within {self._timeout:g} s"

    def kill(self) -> None:
        """Kill the process. Call this after each error of ``child``. Safe to repeat."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def serve_requests(handle: Callable[[Any], Mapping[str, Any]]) -> None:
    """Handle requests in the child process until its parent ends. Output of libraries cannot mix with the responses."""
    # The parent ends this process; an interrupt at the terminal is for the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for line in sys.stdin:
            out.write(json.dumps(handle(json.loads(line))) + "\n")
            out.flush()
