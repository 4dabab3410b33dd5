"""Audit events as rows: an outbox written with the business transaction, the sealed, hash-chained log, and the heads of its chain.

``federator.audit`` seals and verifies; here is only the storage, so that any repository can add an event to its own transaction.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update
from sqlalchemy.exc import ProgrammingError

from federator.connector import StateError
from federator.connector.options import masked
from federator.index import tables as t
from federator.index.engine import Index
from federator.model import canonical_json

_BATCH = 1000
# Keys of the table ``deployment``.
_CHAIN, _CONFIGURATION = "audit_chain", "audit_configuration"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events: all that are given must fit. ``since`` is in seconds since the epoch."""

    kind: str | None = None
    subject: str | None = None
    run: str | None = None
    since: float | None = None


def append(
    connection: Connection, kind: str, *, actor: str, run_id: str | None, subject: str, detail: Mapping[str, Any]
) -> None:
    """Adds an event to the outbox, in the caller's transaction. Values whose names say that they are secrets are masked."""
    event = {
        "at": round(time.time(), 6),
        "kind": kind,
        "actor": actor,
        "run_id": run_id,
        "subject": subject,
        "detail": masked(dict(detail)),
    }
    connection.execute(insert(t.audit_outbox), [{"event": canonical_json(event)}])


def lock_chain(connection: Connection) -> None:
    """Keeps other sealers out until the transaction ends."""
    if connection.dialect.name == "postgresql":
        # The number is ours alone. SQLite has one writer at a time anyway.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5026121)")


def chain_id(connection: Connection) -> str:
    """What tells this chain from others that are anchored at the same place; given at the first question, by a writer."""
    found = _remembered(connection, _CHAIN)
    if found is None:
        found = uuid.uuid4().hex
        _remember(connection, _CHAIN, found)
    return found


def known_chain(index: Index) -> str:
    """The chain's id, empty where nothing was sealed yet."""
    with index.read() as connection:
        return _remembered(connection, _CHAIN) or ""


def configuration(connection: Connection) -> str | None:
    """What was recorded of the configuration last."""
    return _remembered(connection, _CONFIGURATION)


def set_configuration(connection: Connection, text: str) -> None:
    _remember(connection, _CONFIGURATION, text)


def head(connection: Connection) -> tuple[int, str]:
    """Sequence number and digest of the newest sealed event; ``(0, "")`` before the first."""
    row = connection.execute(
        select(t.audit_event.c.seq, t.audit_event.c.digest).order_by(t.audit_event.c.seq.desc()).limit(1)
    ).first()
    return (row.seq, row.digest) if row else (0, "")


def unsealed(connection: Connection, limit: int = 10_000) -> list[tuple[int, str]]:
    """Events waiting to be sealed, in order."""
    return [tuple(row) for row in connection.execute(select(t.audit_outbox).order_by(t.audit_outbox.c.id).limit(limit))]


def unsealed_count(index: Index) -> int:
    with index.read() as connection:
        return int(connection.execute(select(func.count()).select_from(t.audit_outbox)).scalar_one())


def add_sealed(connection: Connection, rows: list[dict[str, Any]], outbox_ids: list[int]) -> None:
    """Moves events from the outbox into the log, in the caller's transaction."""
    connection.execute(insert(t.audit_event), rows)
    connection.execute(delete(t.audit_outbox).where(t.audit_outbox.c.id.in_(outbox_ids)))


def events(index: Index, *, after: int = 0, limit: int = _BATCH) -> list[RowMapping]:
    """Sealed events in order, from ``after`` on."""
    query = select(t.audit_event).where(t.audit_event.c.seq > after).order_by(t.audit_event.c.seq).limit(limit)
    with index.read() as connection:
        return list(connection.execute(query).mappings())


def every_event(index: Index, *, after: int = 0, through: int | None = None) -> Iterator[dict[str, Any]]:
    """Sealed events in order, after one number up to and with another, a batch in memory at a time."""
    while batch := events(index, after=after):
        for row in batch:
            if through is not None and row["seq"] > through:
                return
            yield {str(name): value for name, value in row.items()}
        after = batch[-1]["seq"]


def newest(index: Index, wanted: Filter, *, before: int | None = None, limit: int = 100) -> list[RowMapping]:
    """Sealed events, newest first; keyset paging with ``before`` = the last number."""
    e = t.audit_event.c
    query = select(t.audit_event).order_by(e.seq.desc()).limit(limit)
    for column, value in ((e.kind, wanted.kind), (e.subject, wanted.subject), (e.run_id, wanted.run)):
        if value is not None:
            query = query.where(column == value)
    if wanted.since is not None:
        query = query.where(e.at >= wanted.since)
    if before is not None:
        query = query.where(e.seq < before)
    with index.read() as connection:
        return list(connection.execute(query).mappings())


def last_before(connection: Connection, at: float) -> int:
    """The number of the newest event older than a time; 0 where there is none."""
    e = t.audit_event.c
    return int(connection.execute(select(func.max(e.seq)).where(e.at < at)).scalar() or 0)


def digest_at(connection: Connection, seq: int) -> str | None:
    """The digest of one sealed event, None where it is not here."""
    return connection.execute(select(t.audit_event.c.digest).where(t.audit_event.c.seq == seq)).scalar()


def remove_through(connection: Connection, seq: int) -> int:
    """Removes the sealed events up to and with a number; returns how many. Only within ``unguarded``."""
    connection.execute(delete(t.audit_head).where(t.audit_head.c.seq <= seq))
    return connection.execute(delete(t.audit_event).where(t.audit_event.c.seq <= seq)).rowcount


@contextmanager
def unguarded(connection: Connection) -> Iterator[None]:
    """Lifts the database's refusal to delete sealed events, for this transaction alone.

    Raises StateError for others than the table's owner.
    """
    if connection.dialect.name == "postgresql":
        try:
            connection.exec_driver_sql("ALTER TABLE audit_event DISABLE TRIGGER USER")
        except ProgrammingError:
            raise StateError(
                "only the owner of the table audit_event may remove events", hint="give its URL: federator audit rotate --url"
            ) from None
        yield
        connection.exec_driver_sql("ALTER TABLE audit_event ENABLE TRIGGER USER")
        return
    found = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_event'"
    guards = connection.exec_driver_sql(found).all()
    for name, _ in guards:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    yield
    for _, made in guards:
        connection.exec_driver_sql(made)


def newest_head(connection: Connection) -> RowMapping | None:
    """The newest head that was recorded."""
    return connection.execute(select(t.audit_head).order_by(t.audit_head.c.seq.desc()).limit(1)).mappings().first()


def add_head(connection: Connection, row: Mapping[str, Any]) -> None:
    """Records a head: ``seq``, ``digest``, ``at``, ``key``, ``signature``."""
    connection.execute(insert(t.audit_head), [dict(row)])


def heads(index: Index) -> list[RowMapping]:
    """Every recorded head, in order."""
    with index.read() as connection:
        return list(connection.execute(select(t.audit_head).order_by(t.audit_head.c.seq)).mappings())


def mark_anchored(connection: Connection, seq: int) -> None:
    """Notes that a head was published to the anchor."""
    connection.execute(update(t.audit_head).where(t.audit_head.c.seq == seq).values(anchored_at=time.time()))


def _remembered(connection: Connection, key: str) -> str | None:
    return connection.execute(select(t.deployment.c.value).where(t.deployment.c.key == key)).scalar()


def _remember(connection: Connection, key: str, value: str) -> None:
    connection.execute(delete(t.deployment).where(t.deployment.c.key == key))
    connection.execute(insert(t.deployment), [{"key": key, "value": value}])
