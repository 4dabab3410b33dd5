"""Leases: one run per source and mirror across processes, with fencing tokens.

PostgreSQL: a row whose expiry is on the database's clock, renewed by a thread. SQLite: an operating system lock on a file, which
ends with its process; the row then only counts the tokens. Every write to the index checks the token in its own transaction.

No catalog checks our token, so one external call that was in flight when its holder lost the lease may land late. A successor
therefore waits for the old lease's time plus a call's deadline (``GRACE``), then reads each open intent's object again.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Double, and_, cast, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from federator import logs
from federator.connector import StateError
from federator.index import tables as t
from federator.index.engine import Index

#: the longest that one external write may take
CALL_DEADLINE = 60.0
#: how long a row is ours without being renewed. A renewal comes after a sixth of it, and a call must fit into what is left then.
TTL = 120.0


# A row that ends later than this many seconds after a fresh one was written before the database's clock went back.
_CLOCK_SLACK = 300.0
_log = logs.get(__name__)

#: what the names of the leases of single tables start with
TABLE = "table:"


class LeaseLost(StateError):
    """Another process holds what we held; nothing more may be written."""


class LeaseHeld(StateError):
    """Another process is at work on the same source or mirror."""


@dataclass
class Lease:
    """A held lease. ``check`` inside a writing transaction is what fences; ``remaining`` is what a long call must fit into."""

    name: str
    holder: str
    token: int
    lost: threading.Event = field(default_factory=threading.Event)
    expires_at: float = 0.0

    def check(self, connection: Connection) -> None:
        """Raises LeaseLost unless the token is still ours."""
        query = select(t.lease.c.token).where(t.lease.c.name == self.name)
        if connection.dialect.name == "postgresql":
            _not_for_ever(connection)
            query = query.with_for_update(read=True)
        if self.lost.is_set() or connection.execute(query).scalar() != self.token:
            raise LeaseLost(f"the lease {self.name!r} was lost to another process")

    def fits(self, seconds: float) -> bool:
        """Whether a call of this many seconds ends while the lease is certainly ours."""
        return not self.lost.is_set() and time.monotonic() + seconds < self.expires_at


@contextmanager
def hold(index: Index, name: str, *, wait: float = 0.0) -> Iterator[Lease]:
    """Holds a lease; waits up to ``wait`` seconds for it. Raises LeaseHeld that names the holder."""
    with _file_lock(index, name, wait) if index.sqlite else _row_lock(index, name, wait) as lease:
        yield lease


def forget(index: Index, name: str) -> None:
    """Leaves nothing of a lease that nobody will hold again."""
    if index.sqlite:
        _lock_path(index, name).unlink(missing_ok=True)
    with index.write() as connection:
        connection.execute(t.lease.delete().where(t.lease.c.name == name))


def is_held(index: Index, name: str) -> bool:
    """Whether somebody holds a lease now. The look may, for a moment, keep another from taking it at once on SQLite."""
    if not index.sqlite:
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


def states(index: Index) -> dict[str, tuple[bool, int]]:
    """Of each lease, those of runs and of single tables apart, whether somebody holds it now and how often it was ever taken."""
    kept = and_(*(~t.lease.c.name.startswith(prefix, autoescape=True) for prefix in ("run:", TABLE)))
    with index.read() as connection:
        rows = connection.execute(select(t.lease.c.name, t.lease.c.token, t.lease.c.expires_at).where(kept)).all()
        now = _database_now(connection)
    return {name: (is_held(index, name) if index.sqlite else now < expires, token) for name, token, expires in rows}


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"


@contextmanager
def _file_lock(index: Index, name: str, wait: float) -> Iterator[Lease]:
    with _lock_path(index, name).open("a") as file:
        _flock(file, index, name, wait)
        holder = _holder()
        with index.write() as connection:
            lease = Lease(name, holder, _take(connection, name, holder, ttl=0.0), expires_at=float("inf"))
        yield lease


def _lock_path(index: Index, name: str) -> Path:
    return Path(f"{index.file}.{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.lock")


def _flock(file: IO[str], index: Index, name: str, wait: float) -> None:
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise _held(index, name) from None
            time.sleep(0.1)
        else:
            return


@contextmanager
def _row_lock(index: Index, name: str, wait: float) -> Iterator[Lease]:
    holder, end = _holder(), time.monotonic() + wait
    while (token := _try_row(index, name, holder)) is None:
        if time.monotonic() >= end:
            raise _held(index, name)
        time.sleep(min(0.5, TTL / 6))
    lease = Lease(name, holder, token, expires_at=time.monotonic() + TTL)
    stop = threading.Event()
    renewer = threading.Thread(target=_renew, args=(index, lease, stop), name=f"lease {name}", daemon=True)
    renewer.start()
    try:
        yield lease
    finally:
        stop.set()
        renewer.join()
        _prolong(index, lease, 0.0)


def _try_row(index: Index, name: str, holder: str) -> int | None:
    with index.write() as connection:
        _not_for_ever(connection)
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
        row = connection.execute(select(t.lease.c.expires_at).where(t.lease.c.name == name)).scalar()
        now = _database_now(connection)
        if row is not None and row > now + TTL + _CLOCK_SLACK:
            # The database's clock went back. A holder that lives renews what is left now; one that died would hold it until then.
            _log.warning("lease shortened: the clock of the database went back", lease=name, seconds=round(row - now))
            connection.execute(t.lease.update().where(t.lease.c.name == name).values(expires_at=now + TTL))
            return None
        if row is not None and row > 0 and now < row + CALL_DEADLINE:
            return None
        return _take(connection, name, holder, ttl=TTL)


def _not_for_ever(connection: Connection) -> None:
    """A process that freezes inside this transaction would keep the row locked, and every successor waiting: the server ends it."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = {int(TTL * 1000)}"))


def _renew(index: Index, lease: Lease, stop: threading.Event) -> None:
    while not stop.wait(TTL / 6):
        asked_at = time.monotonic()
        try:
            renewed = _prolong(index, lease, TTL)
        except SQLAlchemyError:
            # The database is away: the lease is ours until it ends, and renewed if the database is back before.
            renewed = asked_at < lease.expires_at
            asked_at = lease.expires_at - TTL
        if not renewed:
            lease.lost.set()
            return
        lease.expires_at = asked_at + TTL


def _prolong(index: Index, lease: Lease, seconds: float) -> bool:
    with index.write() as connection:
        _not_for_ever(connection)
        mine = (t.lease.c.name == lease.name) & (t.lease.c.token == lease.token)
        values = {"expires_at": _database_now(connection) + seconds if seconds else 0.0}
        return connection.execute(t.lease.update().where(mine).values(values)).rowcount > 0


def _take(connection: Connection, name: str, holder: str, *, ttl: float) -> int:
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


def _held(index: Index, name: str) -> LeaseHeld:
    with index.read() as connection:
        holder = connection.execute(select(t.lease.c.holder).where(t.lease.c.name == name)).scalar() or "another process"
    return LeaseHeld(f"{name} is being worked on by {holder}", hint="wait for it to end; federator runs shows what runs")
