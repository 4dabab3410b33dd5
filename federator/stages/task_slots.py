"""Slots of Spark's tasks: sources are crawled side by side while each of them has slots for all its concurrent reads.

No task of a crawl then waits for a slot, so a source that hangs occupies its own slots only, until its deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TaskSlots:
    """A number of slots that threads hold. Safe for threads."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, reads: int) -> Iterator[None]:
        """Hold a slot for each of ``reads``, or all slots if there are fewer. Wait until they are free."""
        count = min(reads, self.total)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= count)
            self._free -= count
        try:
            yield
        finally:
            with self._changed:
                self._free += count
                self._changed.notify_all()
