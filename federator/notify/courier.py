"""The worker's sender: a thread of its own, so that a receiver that hangs holds neither runs nor requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from federator import logs
from federator.index import DatabaseError, Index
from federator.notify.deliver import deliver
from federator.settings import Settings

# How often there is a look for notices; it is one small query.
_SECONDS = 1.0
_log = logs.get(__name__)


class Courier:
    """Makes passes until it is stopped."""

    def __init__(self, settings: Settings, index: Index) -> None:
        self._settings = settings
        self._index = index
        self._stop = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Sends while the block lasts; a message that is being sent when it ends is waited for."""
        thread = threading.Thread(target=self._run, name="courier", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_SECONDS):
            try:
                deliver(self._index, self._settings)
            except DatabaseError as error:
                _log.warning("notifications wait", error=str(error).splitlines()[0])
            except Exception:  # noqa: BLE001 - the boundary of the thread: it must outlive whatever one message does
                _log.exception("notifications wait")
