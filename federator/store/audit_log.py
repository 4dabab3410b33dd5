"""Storage of audit events: the audit outbox, the sealed hash chain and its heads.

``federator.audit`` seals and verifies events. This module only stores them, so that any repository can add an event to its own
transaction.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update
from sqlalchemy.exc import ProgrammingError

from federator.connector import StateError
from federator.connector.options import mask_secrets
from federator.model import canonical_json
from federator.model.audit_kinds import AuditKind
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import Timestamp
from federator.store.key_values import get_value, set_value

_BATCH = 1000
# Keys in the table ``deployment``.
_CHAIN, _CONFIGURATION = "audit_chain", "audit_configuration"


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of events. All given fields must match. ``since`` is in seconds since the epoch."""

    kind: str | None = None
    subject: str | None = None
    run: str | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A sealed audit event."""

    seq: Annotated[int, Field(examples=[812])]
    at: Timestamp
    kind: Annotated[str, Field(examples=["write"])]
    actor: str
    run_id: str | None
    subject: Annotated[str, Field(examples=["aws$sales$orders"])]
    detail: dict[str, Any]
    previous: Annotated[str, Field(description="digest of the previous event")]
    digest: Annotated[str, Field(description="SHA-256 of the sequence number, the previous digest and the text of the event")]


@dataclass(frozen=True, slots=True)
class SealedEvent:
    """An event as it is in the chain. ``event`` is the text that the digest covers; times are in seconds since the epoch."""

    seq: int
    at: float
    kind: str
    actor: str
    run_id: str | None
    subject: str
    event: str
    previous: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A recorded head of the chain. ``key`` and ``signature`` are None for an unsigned one, ``anchored_at`` for an unpublished one."""

    seq: int
    digest: str
    at: float
    key: str | None = None
    signature: str | None = None
    anchored_at: float | None = None


def append_event(
    connection: Connection, kind: AuditKind, *, actor: str, run_id: str | None, subject: str, detail: Mapping[str, Any]
) -> None:
    """Add an event to the audit outbox, in the caller's transaction. Values with names of secrets are masked."""
    event = {
        "at": round(time.time(), 6),
        "kind": kind,
        "actor": actor,
        "run_id": run_id,
        "subject": subject,
        "detail": mask_secrets(dict(detail)),
    }
    connection.execute(insert(t.audit_outbox), [{"event": canonical_json(event)}])


def lock_chain(connection: Connection) -> None:
    """Keep other processes from sealing until the transaction ends."""
    if connection.dialect.name == "postgresql":
        # The number identifies this lock in the database. SQLite allows only one writer.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5026121)")


def get_or_create_chain_id(connection: Connection) -> str:
    """Return the id that distinguishes this chain from others with the same anchor. Create it at the first call.

    The connection must be in a write transaction.
    """
    chain_id = get_value(connection, _CHAIN)
    if chain_id is None:
        chain_id = uuid.uuid4().hex
        set_value(connection, _CHAIN, chain_id)
    return chain_id


def find_chain_id(index: Index) -> str:
    """Return the id of the chain; empty if no event was sealed yet."""
    with index.read() as connection:
        return get_value(connection, _CHAIN) or ""


def find_recorded_configuration(connection: Connection) -> str | None:
    """Return the text that was last recorded of the configuration. None if there is none."""
    return get_value(connection, _CONFIGURATION)


def record_configuration(connection: Connection, text: str) -> None:
    set_value(connection, _CONFIGURATION, text)


def get_chain_tip(connection: Connection) -> tuple[int, str]:
    """Return the sequence number and digest of the newest sealed event; ``(0, "")`` before the first."""
    row = connection.execute(
        select(t.audit_event.c.seq, t.audit_event.c.digest).order_by(t.audit_event.c.seq.desc()).limit(1)
    ).first()
    return (row.seq, row.digest) if row else (0, "")


def list_unsealed(connection: Connection, limit: int = 10_000) -> list[tuple[int, str]]:
    """List the events of the outbox, in order, each with its row id."""
    return [tuple(row) for row in connection.execute(select(t.audit_outbox).order_by(t.audit_outbox.c.id).limit(limit))]


def count_unsealed(index: Index) -> int:
    with index.read() as connection:
        return int(connection.execute(select(func.count()).select_from(t.audit_outbox)).scalar_one())


def insert_sealed(connection: Connection, events: Sequence[SealedEvent], outbox_ids: Sequence[int]) -> None:
    """Move events from the outbox into the log, in the caller's transaction."""
    connection.execute(insert(t.audit_event), list(map(asdict, events)))
    connection.execute(delete(t.audit_outbox).where(t.audit_outbox.c.id.in_(outbox_ids)))


def list_events(index: Index, *, after: int = 0, limit: int = _BATCH) -> list[SealedEvent]:
    """List sealed events in order, after the sequence number ``after``."""
    query = select(t.audit_event).where(t.audit_event.c.seq > after).order_by(t.audit_event.c.seq).limit(limit)
    with index.read() as connection:
        return [SealedEvent(**row) for row in connection.execute(query).mappings()]


def iter_events(index: Index, *, after: int = 0, through: int | None = None) -> Iterator[SealedEvent]:
    """Stream sealed events in order, after the sequence number ``after`` up to and including ``through``."""
    while batch := list_events(index, after=after):
        for event in batch:
            if through is not None and event.seq > through:
                return
            yield event
        after = batch[-1].seq


def list_recent_events(index: Index, criteria: AuditFilter, *, before: int | None = None, limit: int = 100) -> list[AuditEvent]:
    """List sealed events, newest first, with masked secrets. ``before`` is the last sequence number of the previous page."""
    e = t.audit_event.c
    query = select(t.audit_event).order_by(e.seq.desc()).limit(limit)
    for column, value in ((e.kind, criteria.kind), (e.subject, criteria.subject), (e.run_id, criteria.run)):
        if value is not None:
            query = query.where(column == value)
    if criteria.since is not None:
        query = query.where(e.at >= criteria.since)
    if before is not None:
        query = query.where(e.seq < before)
    with index.read() as connection:
        return [_from_row(row) for row in connection.execute(query).mappings()]


def _from_row(row: RowMapping) -> AuditEvent:
    columns = {name: value for name, value in row.items() if name != "event"}
    return AuditEvent(**columns, detail=mask_secrets(json.loads(row["event"])["detail"]))


def last_seq_before(connection: Connection, before: float) -> int:
    """Return the sequence number of the newest event before a time; 0 if there is none."""
    e = t.audit_event.c
    return int(connection.execute(select(func.max(e.seq)).where(e.at < before)).scalar() or 0)


def find_digest(connection: Connection, seq: int) -> str | None:
    """Return the digest of one sealed event. None if it does not exist."""
    return connection.execute(select(t.audit_event.c.digest).where(t.audit_event.c.seq == seq)).scalar()


def delete_events_through(connection: Connection, seq: int) -> int:
    """Delete the sealed events up to and including a sequence number. Return their number. Requires ``deletion_allowed``."""
    connection.execute(delete(t.audit_head).where(t.audit_head.c.seq <= seq))
    return connection.execute(delete(t.audit_event).where(t.audit_event.c.seq <= seq)).rowcount


@contextmanager
def deletion_allowed(connection: Connection) -> Iterator[None]:
    """Disable the triggers that forbid to delete sealed events, for this transaction only.

    Raise StateError if the database user does not own the table.
    """
    if connection.dialect.name == "postgresql":
        try:
            connection.exec_driver_sql("ALTER TABLE audit_event DISABLE TRIGGER USER")
        except ProgrammingError:
            raise StateError(
                "only the owner of the table audit_event may remove events",
                hint="pass the owner's database URL: federator audit rotate --url",
            ) from None
        yield
        connection.exec_driver_sql("ALTER TABLE audit_event ENABLE TRIGGER USER")
        return
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_event'"
    triggers = connection.exec_driver_sql(query).all()
    for name, _ in triggers:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    yield
    for _, definition in triggers:
        connection.exec_driver_sql(definition)


def find_newest_head(connection: Connection) -> StoredHead | None:
    """Return the newest recorded head. None if there is none."""
    row = connection.execute(select(t.audit_head).order_by(t.audit_head.c.seq.desc()).limit(1)).mappings().first()
    return StoredHead(**row) if row is not None else None


def insert_head(connection: Connection, head: StoredHead) -> None:
    """Record a head."""
    connection.execute(insert(t.audit_head), [asdict(head)])


def list_stored_heads(index: Index, *, after: int = 0) -> list[StoredHead]:
    """List the recorded heads after the sequence number ``after``, in order."""
    query = select(t.audit_head).where(t.audit_head.c.seq > after).order_by(t.audit_head.c.seq)
    with index.read() as connection:
        return [StoredHead(**row) for row in connection.execute(query).mappings()]


def mark_anchored(connection: Connection, seq: int) -> None:
    """Record that a head was published to the anchor."""
    connection.execute(update(t.audit_head).where(t.audit_head.c.seq == seq).values(anchored_at=time.time()))
