"""A child process that answers one line of JSON with another, so that whatever hangs in it ends when it is killed.

A store that does not answer cannot be interrupted from Python: the process can. Both sides of the pipe are here.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

_LONGEST_END = 5.0


class ChildDied(Exception):
    """The process ended without an answer."""


class Child:
    """One process of ``python -m <module>``, which calls ``serve``. It answers one request at a time, and ends when this one does."""

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
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer. Raises TimeoutError after ``timeout`` seconds and ChildDied; ``kill`` the process after either."""
        end = time.monotonic() + timeout
        self._write(json.dumps(request).encode() + b"\n", end)
        answer: dict[str, Any] = json.loads(self._read_line(end))
        return answer

    def interrupt(self) -> None:
        """Ends the process while another thread waits for its answer, which then raises ChildDied and calls ``kill``."""
        self._process.kill()

    def kill(self) -> None:
        """Ends the process, whatever it does, and lets go of it; harmless twice. Only for the thread that asks it."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        # One that hangs in its kernel, on a dead network mount, ends when the mount does.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LONGEST_END)

    def _write(self, line: bytes, end: float) -> None:
        rest = memoryview(line)
        while rest:
            _wait(self._in, select.POLLOUT, end)
            try:
                rest = rest[os.write(self._in, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise ChildDied from None

    def _read_line(self, end: float) -> bytes:
        pieces: list[bytes] = []
        while not (pieces and pieces[-1].endswith(b"\n")):
            _wait(self._out, select.POLLIN, end)
            piece = os.read(self._out, 1 << 16)
            if not piece:
                raise ChildDied
            pieces.append(piece)
        return b"".join(pieces)


def _wait(descriptor: int, events: int, end: float) -> None:
    # Not select(): a server has more than 1,024 descriptors open.
    poll = select.poll()
    poll.register(descriptor, events)
    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        raise TimeoutError


def serve(answer: Callable[[Any], Mapping[str, Any]]) -> None:
    """The child's side: answers requests until its parent ends. What libraries print cannot get between the answers."""
    # The parent ends us; an interrupt at its terminal is its own business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for line in sys.stdin:
            out.write(json.dumps(answer(json.loads(line))) + "\n")
            out.flush()
