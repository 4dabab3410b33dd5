"""The worker's sender: it has its own thread, so that a receiver that hangs blocks neither runs nor requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from federator import logs
from federator.notify.delivery import deliver_due
from federator.runtime.text import first_line
from federator.settings import Settings
from federator.store import DatabaseError, Index

# How often the sender checks for notices; a check is one small query.
_POLL_SECONDS = 1.0
_log = logs.get_logger(__name__)


class NotificationSender:
    """Makes passes until it is stopped."""

    def __init__(self, settings: Settings, index: Index) -> None:
        self._settings = settings
        self._index = index
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send notifications while the block runs. At its end, wait for the current message."""
        thread = threading.Thread(target=self._run, name="notification sender", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            try:
                deliver_due(self._index, self._settings)
            except DatabaseError as error:
                _log.warning("notifications delayed", error=first_line(error))
            except Exception:  # noqa: BLE001 - the boundary of the thread: no message may end it
                _log.exception("notifications delayed")
