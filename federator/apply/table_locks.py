"""One lock per table for direct writes, shared by all processes of one index.

The declarations of plans hold it too if the catalog does not refuse the second of two concurrent ones; then sources of the same
server share the locks (``Capabilities.declarations_race_in``). So do those of a mirror that recreates tables.

A lock is a lease of the index, behind a lock of this process: waiting threads of one process do not poll the index. Tables share a
fixed number of leases, so that neither rows nor lock files accumulate; two tables that share one only wait for each other.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from federator.connector import ConcurrentModification
from federator.model import Path, path_key
from federator.registry import source_capabilities
from federator.settings import Settings
from federator.store import Index
from federator.store.leases import TABLE_PREFIX, LeaseHeld, acquire_lease

#: how long a write waits for another write to the same table, in seconds
TABLE_WAIT_SECONDS = 10.0
#: actions of direct writes that hold the locks of the tables that they affect
LOCKING_ACTIONS = frozenset(
    {"declare_table", "register_table", "alter_table", "rename_table", "deregister_table", "drop_table"}
)
_LEASE_COUNT = 4096


class TableLocks:
    """The table locks of one index. Safe for threads. A lock is not reentrant."""

    def __init__(self, index: Index, settings: Settings) -> None:
        self._index = index
        # Reading the settings of a source can mean reading its secrets from files.
        self._server_of = cache(lambda source: _find_server(settings, source))
        self._local = [threading.Lock() for _ in range(_LEASE_COUNT)]

    @contextmanager
    def hold(self, source: str, *paths: Path, wait: float | None = None) -> Iterator[None]:
        """Hold the locks of tables. Paths are from the source's root; upper and lower case are not distinguished.

        Raise ConcurrentModification if another write still holds one of the locks after ``wait`` seconds (default:
        ``TABLE_WAIT_SECONDS``), ConfigError for a source that is not configured.
        """
        ends_at = time.monotonic() + (TABLE_WAIT_SECONDS if wait is None else wait)
        with ExitStack() as held:
            # All writers take the leases in this order, so two writes of several tables cannot deadlock.
            for number, path in sorted({_lease_number(self._server_of(source), path): path for path in paths}.items()):
                self._hold(held, number, path_key((source, *path)), ends_at)
            yield

    def _hold(self, held: ExitStack, number: int, name: str, ends_at: float) -> None:
        busy = ConcurrentModification(f"another write holds the lock of {name}", hint="try again")
        if not self._local[number].acquire(timeout=max(0.0, ends_at - time.monotonic())):
            raise busy
        held.callback(self._local[number].release)
        try:
            held.enter_context(acquire_lease(self._index, f"{TABLE_PREFIX}{number}", wait=max(0.0, ends_at - time.monotonic())))
        except LeaseHeld:
            raise busy from None


def _find_server(settings: Settings, source: str) -> str:
    """Return the server whose sources share locks, else the source."""
    return source_capabilities(settings.source(source).spec).declarations_race_in or source


def _lease_number(server: str, path: Path) -> int:
    # Folded to lower case, because some catalogs ignore case in names.
    digest = hashlib.blake2b(path_key((server, *path)).lower().encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") % _LEASE_COUNT
