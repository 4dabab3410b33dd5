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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

_LONGEST_END = 5.0
# Seconds; a pipe's buffer holds what tables say in more than that, however fast they open.
_GATHERING = 0.01


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
        (text,) = self.ask_each([request], timeout)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def ask_each(self, requests: Iterable[Mapping[str, Any]], timeout: float) -> Iterator[str]:
        """The answers as JSON, in turn, each within ``timeout`` seconds of the one before; the process is told of all of them at once,
        and never waits for us. Raises as ``ask`` does; whoever reads on no further has to ``kill`` the process too.
        """
        lines = [json.dumps(request).encode() + b"\n" for request in requests]
        told, heard, left = memoryview(b"".join(lines)), b"", len(lines)
        while left:
            told, piece = self._exchange(told, time.monotonic() + timeout)
            *answers, heard = (heard + piece).split(b"\n")
            for answer in answers:
                yield answer.decode()
            left -= len(answers)
            if left:
                # Woken for each answer, we would take the processor from the process that gives them.
                time.sleep(_GATHERING)

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

    def _exchange(self, told: memoryview, end: float) -> tuple[memoryview, bytes]:
        """Hands over what the process takes of ``told`` until it has said something that ends with an answer's end."""
        # Not select(): a server has more than 1,024 descriptors open.
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if told:
            poll.register(self._in, select.POLLOUT)
        heard: list[bytes] = []
        while not (heard and b"\n" in heard[-1]):
            ready = dict(poll.poll(max(0.0, end - time.monotonic()) * 1000))
            if not ready:
                raise TimeoutError
            if self._in in ready:
                told = self._tell(told)
                if not told:
                    poll.unregister(self._in)
            if self._out in ready:
                heard.append(os.read(self._out, 1 << 16))
                if not heard[-1]:
                    raise ChildDied
        return told, b"".join(heard)

    def _tell(self, told: memoryview) -> memoryview:
        try:
            return told[os.write(self._in, told[: 1 << 16]) :]
        except BlockingIOError:
            return told
        except BrokenPipeError:
            # What it said before is still to be read.
            return memoryview(b"")


def serve(answer: Callable[[Any], Mapping[str, Any]]) -> None:
    """The child's side: answers requests until its parent ends. What libraries print cannot get between the answers."""
    # The parent ends us; an interrupt at its terminal is its own business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for line in sys.stdin:
            out.write(json.dumps(answer(json.loads(line))) + "\n")
            out.flush()
