"""Leases with fencing tokens: at most one run per source and mirror across all processes.

PostgreSQL: a row with an expiry time on the database's clock, renewed by a thread. SQLite: an operating system lock on a file, released
when its process ends; the row only counts the fencing tokens. Each write to the index checks the token in its own transaction.

Catalogs do not check the token, so an external call that was in flight when its holder lost the lease may take effect late. A
successor waits until the old lease has expired and ``CALL_DEADLINE_SECONDS`` have passed. Then it observes the object of each open
intent again.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from sqlalchemy import Connection, Double, and_, cast, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from federator import logs
from federator.connector import StateError
from federator.runtime.private_files import make_private
from federator.store import tables as t
from federator.store.engine import Index

#: the longest duration of one external write
CALL_DEADLINE_SECONDS = 60.0
#: the validity of a lease without a renewal. The holder renews it after a sixth of this time; a call must fit into the rest.
LEASE_TTL_SECONDS = 120.0


# A row that expires this much later than a new one would was written before the database's clock went back.
_CLOCK_SLACK_SECONDS = 300.0
_log = logs.get_logger(__name__)

#: prefix of the names of the leases of runs
RUN_PREFIX = "run:"
#: prefix of the names of the leases of single tables
TABLE_PREFIX = "table:"
#: prefix of the names of the leases of processes that make direct writes
WRITER_PREFIX = "writer:"


class LeaseLost(StateError):
    """Another process has taken the lease. This process must not write any more."""


class LeaseHeld(StateError):
    """Another process holds the lease of the same source or mirror."""


@dataclass
class Lease:
    """A lease that this process holds. Call ``require_held`` in each write transaction, and ``outlasts`` before a long call."""

    name: str
    holder: str
    token: int
    lost: threading.Event = field(default_factory=threading.Event)
    expires_at: float = 0.0

    def require_held(self, connection: Connection) -> None:
        """Raise LeaseLost if another process has taken the lease."""
        query = select(t.lease.c.token).where(t.lease.c.name == self.name)
        if connection.dialect.name == "postgresql":
            limit_transaction_time(connection)
            query = query.with_for_update(read=True)
        if self.lost.is_set() or connection.execute(query).scalar() != self.token:
            raise LeaseLost(f"the lease {self.name!r} was lost to another process")

    def outlasts(self, call_seconds: float) -> bool:
        """Return whether a call of this duration certainly ends before the lease expires."""
        return not self.lost.is_set() and time.monotonic() + call_seconds < self.expires_at

    def require_outlasting(self, connection: Connection, call_seconds: float) -> None:
        """Raise LeaseLost unless the lease is held and outlasts a call, also by its row in the index.

        The row is read because the monotonic clock does not count the time in which a machine sleeps.
        """
        query = select(t.lease.c.token, t.lease.c.expires_at).where(t.lease.c.name == self.name)
        token, expires_at = connection.execute(query).one_or_none() or (None, 0.0)
        lasts = connection.dialect.name == "sqlite" or _database_now(connection) + call_seconds < expires_at
        if token != self.token or not lasts or not self.outlasts(call_seconds):
            raise LeaseLost(f"the lease {self.name!r} was lost, or ends before a call of {call_seconds:g} s")


@contextmanager
def acquire_lease(index: Index, name: str, *, wait: float = 0.0) -> Iterator[Lease]:
    """Hold a lease; wait up to ``wait`` seconds for it. Raise LeaseHeld with the name of the holder."""
    with _hold_file_lock(index, name, wait) if index.is_sqlite else _hold_row_lock(index, name, wait) as lease:
        yield lease


def resign_lease(index: Index, lease: Lease) -> None:
    """Give up a lease while calls of this process may be in flight. It is lost for this process.

    A successor waits for the deadline of the calls. On SQLite it waits for the end of this process, which has the lock.
    """
    lease.lost.set()
    if not index.is_sqlite:
        _set_expiry(index, lease, 0.0)


def list_lapsed_leases(index: Index, prefix: str) -> list[str]:
    """Return the names of the leases with a prefix that no process holds and that may be taken now."""
    return _list_leases(index, prefix, _may_be_taken)


def list_expired_leases(index: Index, prefix: str) -> list[str]:
    """Return the names of the leases with a prefix that no process holds. A call of the last holder may be in flight."""
    return _list_leases(index, prefix, lambda expires_at, now: expires_at <= now)


def _list_leases(index: Index, prefix: str, has_ended: Callable[[float, float], bool]) -> list[str]:
    query = select(t.lease.c.name, t.lease.c.expires_at).where(t.lease.c.name.startswith(prefix, autoescape=True))
    with index.read() as connection:
        rows = connection.execute(query.order_by(t.lease.c.name)).all()
        now = _database_now(connection)
    return [
        name for name, expires_at in rows if (not is_lease_held(index, name) if index.is_sqlite else has_ended(expires_at, now))
    ]


def delete_lease(index: Index, name: str) -> None:
    """Delete the row and the lock file of a lease that will not be held again."""
    if index.is_sqlite:
        _lock_path(index, name).unlink(missing_ok=True)
    with index.write() as connection:
        connection.execute(t.lease.delete().where(t.lease.c.name == name))


def is_lease_held(index: Index, name: str) -> bool:
    """Return whether a process holds a lease now. On SQLite the check can briefly keep another process from taking it."""
    if not index.is_sqlite:
        with index.read() as connection:
            expires = connection.execute(select(t.lease.c.expires_at).where(t.lease.c.name == name)).scalar()
            return expires is not None and _database_now(connection) < expires
    path = _lock_path(index, name)
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class LeaseState(NamedTuple):
    """Whether a lease is held now, and how often it was taken."""

    is_held: bool
    times_taken: int


def list_lease_states(index: Index) -> dict[str, LeaseState]:
    """Return the states of the leases, by name. Leases of runs, writers and single tables are left out."""
    listed = and_(
        *(~t.lease.c.name.startswith(prefix, autoescape=True) for prefix in (RUN_PREFIX, TABLE_PREFIX, WRITER_PREFIX))
    )
    with index.read() as connection:
        rows = connection.execute(select(t.lease.c.name, t.lease.c.token, t.lease.c.expires_at).where(listed)).all()
        now = _database_now(connection)
    # A lease's token is its number of holders so far.
    return {
        name: LeaseState(is_lease_held(index, name) if index.is_sqlite else now < expires, times_taken=token)
        for name, token, expires in rows
    }


def _holder_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"


@contextmanager
def _hold_file_lock(index: Index, name: str, wait: float) -> Iterator[Lease]:
    path = _lock_path(index, name)
    # Other users could lock a file that they may read, and so hold the lease.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        make_private(path)
        _flock(file, index, name, wait)
        holder = _holder_name()
        with index.write() as connection:
            lease = Lease(name, holder, _take_row(connection, name, holder, ttl=0.0), expires_at=float("inf"))
        yield lease


def _lock_path(index: Index, name: str) -> Path:
    """Return the lock file of a lease. Its directory is made if it is missing."""
    file = f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.lock"
    if not name.startswith(TABLE_PREFIX):
        return Path(f"{index.file}.{file}")
    # A run of many tables makes hundreds of files, so they are not beside the index.
    directory = Path(f"{index.file}.tables")
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory / file


def _flock(file: IO[str], index: Index, name: str, wait: float) -> None:
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise _lease_held_error(index, name) from None
            time.sleep(0.1)
        else:
            return


@contextmanager
def _hold_row_lock(index: Index, name: str, wait: float) -> Iterator[Lease]:
    holder, end = _holder_name(), time.monotonic() + wait
    while (token := _try_take_row(index, name, holder)) is None:
        if time.monotonic() >= end:
            raise _lease_held_error(index, name)
        time.sleep(min(0.5, LEASE_TTL_SECONDS / 6))
    lease = Lease(name, holder, token, expires_at=time.monotonic() + LEASE_TTL_SECONDS)
    stop = threading.Event()
    renewer = threading.Thread(target=_renew_until, args=(index, lease, stop), name=f"lease {name}", daemon=True)
    renewer.start()
    try:
        yield lease
    finally:
        stop.set()
        renewer.join()
        if not lease.lost.is_set():
            _set_expiry(index, lease, None)


def _try_take_row(index: Index, name: str, holder: str) -> int | None:
    with index.write() as connection:
        limit_transaction_time(connection)
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
        row = connection.execute(select(t.lease.c.expires_at).where(t.lease.c.name == name)).scalar()
        now = _database_now(connection)
        if row is not None and row > now + LEASE_TTL_SECONDS + _CLOCK_SLACK_SECONDS:
            # The database's clock went back. A living holder renews the shortened lease; a dead one would keep the lease for too long.
            _log.warning("lease shortened because the database's clock went back", lease=name, seconds=round(row - now))
            connection.execute(t.lease.update().where(t.lease.c.name == name).values(expires_at=now + LEASE_TTL_SECONDS))
            return None
        if row is not None and not _may_be_taken(row, now):
            return None
        return _take_row(connection, name, holder, ttl=LEASE_TTL_SECONDS)


def _may_be_taken(expires_at: float, now: float) -> bool:
    """Tell whether the row's lease was released, or has expired so long ago that calls of its holder have ended."""
    return expires_at <= 0 or now >= expires_at + CALL_DEADLINE_SECONDS


def limit_transaction_time(connection: Connection) -> None:
    """Let the server end this transaction if its process freezes: the locked row would keep every successor waiting."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = {int(LEASE_TTL_SECONDS * 1000)}"))


def _renew_until(index: Index, lease: Lease, stop: threading.Event) -> None:
    while not stop.wait(LEASE_TTL_SECONDS / 6) and not lease.lost.is_set():
        requested_at = time.monotonic()
        try:
            renewed = _set_expiry(index, lease, LEASE_TTL_SECONDS)
        except SQLAlchemyError:
            # The database cannot be reached. The lease stays valid until it expires; it is renewed if the database returns before.
            renewed = requested_at < lease.expires_at
            requested_at = lease.expires_at - LEASE_TTL_SECONDS
        if not renewed:
            lease.lost.set()
            return
        lease.expires_at = requested_at + LEASE_TTL_SECONDS


def _set_expiry(index: Index, lease: Lease, seconds: float | None) -> bool:
    """Let a lease end so many seconds from now; None releases it. Return False if another process has taken it."""
    with index.write() as connection:
        limit_transaction_time(connection)
        held_row = (t.lease.c.name == lease.name) & (t.lease.c.token == lease.token)
        values = {"expires_at": 0.0 if seconds is None else _database_now(connection) + seconds}
        return connection.execute(t.lease.update().where(held_row).values(values)).rowcount > 0


def _take_row(connection: Connection, name: str, holder: str, *, ttl: float) -> int:
    last = connection.execute(select(t.lease.c.token).where(t.lease.c.name == name)).scalar()
    expires = _database_now(connection) + ttl
    values = {"holder": holder, "token": (last or 0) + 1, "expires_at": expires}
    if last is None:
        connection.execute(t.lease.insert().values(name=name, **values))
    else:
        connection.execute(t.lease.update().where(t.lease.c.name == name).values(values))
    return (last or 0) + 1


def _database_now(connection: Connection) -> float:
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(select(cast(func.extract("epoch", func.clock_timestamp()), Double))).scalar_one())


def _lease_held_error(index: Index, name: str) -> LeaseHeld:
    with index.read() as connection:
        holder = connection.execute(select(t.lease.c.holder).where(t.lease.c.name == name)).scalar() or "another process"
    return LeaseHeld(
        f"{name} is being worked on by {holder}", hint="wait until that process has finished; federator runs lists the runs"
    )
