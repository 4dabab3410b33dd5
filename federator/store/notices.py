"""The outbox of notices, written in the business transaction.

``federator.notify`` groups notices into notifications and selects the channels. This module only stores notices, so that any repository
can add one to its own transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from federator.model.notices import Notice, NoticeEvent, Severity
from federator.runtime.redaction import redact
from federator.store import tables as t
from federator.store.sql import chunked

# Longer texts do not help a reader, and the run's row has the complete text.
_MAX_MESSAGE_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class StoredNotice:
    """A notice with its number and the time when it was added, in seconds since the epoch."""

    id: int
    at: float
    notice: Notice


def add_notices(connection: Connection, notices: Iterable[Notice]) -> None:
    """Add notices to the outbox, in the caller's transaction."""
    now = time.time()
    rows = [
        {
            "at": now, "event": n.event.value, "severity": n.effective_severity.value, "source": n.source, "mirror": n.mirror,
            "run_id": n.run_id, "subject": redact(n.subject)[:_MAX_MESSAGE_LENGTH], "message": redact(n.message)[:_MAX_MESSAGE_LENGTH],
        }
        for n in notices
    ]  # fmt: skip
    for part in chunked(rows):
        connection.execute(insert(t.notice), part)


def list_pending_notices(connection: Connection, limit: int = 10_000) -> list[StoredNotice]:
    """List the notices that are not yet part of notifications, in order."""
    result = connection.execute(select(t.notice).order_by(t.notice.c.id).limit(limit)).mappings()
    return [
        StoredNotice(
            row["id"],
            row["at"],
            Notice(
                NoticeEvent(row["event"]), row["subject"], row["message"], row["source"], row["mirror"], row["run_id"],
                Severity(row["severity"]),
            ),
        )
        for row in result
    ]  # fmt: skip


def has_pending_notices(connection: Connection) -> bool:
    return connection.execute(select(t.notice.c.id).limit(1)).scalar() is not None


def delete_notices(connection: Connection, stored: Sequence[StoredNotice]) -> None:
    """Delete notices from the outbox, in the transaction that has queued notifications about them."""
    for numbers in chunked(notice.id for notice in stored):
        connection.execute(delete(t.notice).where(t.notice.c.id.in_(numbers)))
