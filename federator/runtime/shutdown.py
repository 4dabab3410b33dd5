"""Signals that end a process, and its end after SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: seconds that calls in flight have to end after SIGTERM
GRACE_SECONDS = 4.0
# Seconds after the grace time in which a process may still end by itself.
_EXIT_SECONDS = 0.5


def end_process_later(code: int, report: Callable[[], object]) -> None:
    """End the process with an exit code after the grace time, whatever its threads do, unless it has ended before.

    ``report`` is called first. The journal has the open intents of the calls in flight, so nothing is lost.
    """

    def end() -> None:
        try:
            report()
        finally:
            os._exit(code)

    timer = threading.Timer(GRACE_SECONDS + _EXIT_SECONDS, end)
    timer.daemon = True
    timer.start()


@contextmanager
def wake_main_thread() -> Iterator[None]:
    """Let the handlers of signals run at once within the block, whichever thread gets a signal. For the main thread only.

    Python runs handlers in the main thread. If that waits in a system call, only a signal that this thread gets ends the wait, but the
    kernel may give a signal to any thread, as it often does when a stopped process continues.
    """
    received, sent = socket.socketpair()
    with received, sent:
        sent.setblocking(False)
        previous_fd = signal.set_wakeup_fd(sent.fileno(), warn_on_full_buffer=False)
        # By default, SIGURG is ignored, so it would not end a system call.
        previous_handler = signal.signal(signal.SIGURG, lambda *_: None)
        thread = threading.Thread(target=_wake, args=(received, threading.get_ident()), name="wake", daemon=True)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous_fd)
            signal.signal(signal.SIGURG, previous_handler)
            sent.shutdown(socket.SHUT_WR)
            thread.join()


def _wake(received: socket.socket, main_thread: int) -> None:
    """Send SIGURG to the main thread for each signal, whose number Python writes into the socket. SIGURG itself needs no other one."""
    while number := received.recv(1):
        if number[0] != signal.SIGURG:
            signal.pthread_kill(main_thread, signal.SIGURG)
