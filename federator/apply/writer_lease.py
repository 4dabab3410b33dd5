"""The sign of life of a process that makes direct writes: one lease, which the intents of its writes name.

The process holds the lease from its first write to its end. Another process that takes it knows that this one is dead, or frozen beyond
its lease, and resolves its open intents (``direct_recovery``). A process whose lease has ended writes nothing: it reads the lease again
before each request that writes.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from federator import logs
from federator.connector import ServiceUnavailable
from federator.connector.operation import permission
from federator.store import DatabaseError, Index
from federator.store.leases import (
    CALL_DEADLINE_SECONDS,
    WRITER_PREFIX,
    Lease,
    LeaseLost,
    acquire_lease,
    delete_lease,
    resign_lease,
)

_log = logs.get_logger(__name__)


class WriterLease:
    """The lease of this process's direct writes, and its writes in progress. Safe for threads. The first write takes the lease."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._held = ExitStack()
        self._lease: Lease | None = None
        self._in_progress: set[str] = set()

    @property
    def name(self) -> str | None:
        """The lease's name. None before the first write."""
        return None if self._lease is None else self._lease.name

    def is_in_progress(self, op_id: str) -> bool:
        """Tell whether this process makes a write now. An open intent of a write that is not in progress has lost its outcome."""
        return op_id in self._in_progress

    @contextmanager
    def write(self, op_id: str) -> Iterator[Lease]:
        """Hold the lease during a write. Each request that writes checks it. Raise ServiceUnavailable if it has ended."""
        lease = self._require()
        self._in_progress.add(op_id)
        try:
            with permission(partial(self._require_lasting, lease)):
                yield lease
        except LeaseLost as error:
            raise _lease_ended(lease, error) from error
        finally:
            self._in_progress.discard(op_id)

    def close(self) -> None:
        """Release the lease. While a write is in progress, its intent stays with the lease until the process has ended."""
        with self._lock:
            lease, self._lease = self._lease, None
            if lease is None:
                return
            try:
                if self._in_progress:
                    resign_lease(self._index, lease)
                    return
                self._held.close()
                delete_lease(self._index, lease.name)
            except DatabaseError as error:
                _log.warning("the lease of direct writes was not released", lease=lease.name, error=type(error).__name__)

    def _require(self) -> Lease:
        """Return the lease, a new one if the old one has ended."""
        with self._lock:
            if self._lease is None or self._lease.lost.is_set():
                self._lease = self._held.enter_context(acquire_lease(self._index, f"{WRITER_PREFIX}{uuid.uuid4().hex}"))
            return self._lease

    def _require_lasting(self, lease: Lease) -> None:
        try:
            with self._index.read() as connection:
                lease.require_outlasting(connection, CALL_DEADLINE_SECONDS)
        except LeaseLost as error:
            raise _lease_ended(lease, error) from error


def _lease_ended(lease: Lease, error: LeaseLost) -> ServiceUnavailable:
    # The next write takes a new lease.
    lease.lost.set()
    return ServiceUnavailable(f"this process may not write any more: {error.message}", hint="try again")
