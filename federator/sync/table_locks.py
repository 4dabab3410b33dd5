"""One lock per table for direct writes, shared by all processes of one index.

A lock is a lease of the index, behind a lock of this process: waiting threads of one process do not poll the index. Tables share a
fixed number of leases, so that neither rows nor lock files accumulate; two tables that share one only wait for each other.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from federator.connector import ConcurrentModification
from federator.index import Index
from federator.index.leases import TABLE, LeaseHeld, hold
from federator.model import Path, path_key

#: seconds that a write waits for another write to the same table
TABLE_WAIT = 10.0
_LEASES = 256


class TableLocks:
    """Safe for threads. A lock is not reentrant."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._local = [threading.Lock() for _ in range(_LEASES)]

    @contextmanager
    def hold(self, source: str, *paths: Path, wait: float | None = None) -> Iterator[None]:
        """Hold the locks of tables; each path is from the source's root, in any case. Wait up to ``wait`` seconds (``TABLE_WAIT``).

        Raise ConcurrentModification if another write to one of the tables is still in progress then.
        """
        ends_at = time.monotonic() + (TABLE_WAIT if wait is None else wait)
        with ExitStack() as held:
            # Everybody takes the leases in this order: two writes of several tables cannot wait for each other.
            for number, path in sorted({_lease_number(source, path): path for path in paths}.items()):
                self._hold(held, number, path_key((source, *path)), ends_at)
            yield

    def _hold(self, held: ExitStack, number: int, name: str, ends_at: float) -> None:
        busy = ConcurrentModification(f"another write to {name} is in progress", hint="try again")
        if not self._local[number].acquire(timeout=max(0.0, ends_at - time.monotonic())):
            raise busy
        held.callback(self._local[number].release)
        try:
            held.enter_context(hold(self._index, f"{TABLE}{number}", wait=max(0.0, ends_at - time.monotonic())))
        except LeaseHeld:
            raise busy from None


def _lease_number(source: str, path: Path) -> int:
    # Folded, since some catalogs take names in any case.
    digest = hashlib.blake2b(path_key((source, *path)).lower().encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") % _LEASES
