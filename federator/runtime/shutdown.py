"""The end of a process that got SIGTERM."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

#: seconds that calls in flight have to end after SIGTERM
GRACE_SECONDS = 4.0
#: seconds after the grace time in which a process that can end by itself does
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
