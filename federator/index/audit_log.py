"""Audit events as rows: an outbox written with the business transaction, and the sealed, hash-chained log.

``federator.audit`` seals and verifies; here is only the storage, so that any repository can add an event to its own transaction.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from federator.index import tables as t
from federator.index.engine import Index
from federator.model import canonical_json


def append(
    connection: Connection, kind: str, *, actor: str, run_id: str | None, subject: str, detail: Mapping[str, Any]
) -> None:
    """Adds an event to the outbox, in the caller's transaction. ``detail`` must hold no secret."""
    event = {"at": time.time(), "kind": kind, "actor": actor, "run_id": run_id, "subject": subject, "detail": dict(detail)}
    connection.execute(insert(t.audit_outbox), [{"event": canonical_json(event)}])


def lock_chain(connection: Connection) -> None:
    """Keeps other sealers out until the transaction ends."""
    if connection.dialect.name == "postgresql":
        # The number is ours alone. SQLite has one writer at a time anyway.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5026121)")


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


def events(index: Index, *, after: int = 0, limit: int = 1000) -> list[RowMapping]:
    """Sealed events in order, from ``after`` on."""
    query = select(t.audit_event).where(t.audit_event.c.seq > after).order_by(t.audit_event.c.seq).limit(limit)
    with index.read() as connection:
        return list(connection.execute(query).mappings())
