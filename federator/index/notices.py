"""Notices as rows: an outbox written with the business transaction, from which notifications are made.

``federator.notify`` decides who is told; here is only the storage, so that any repository can add a notice to its own transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from federator.connector.secrets import redacted
from federator.index import tables as t
from federator.index.bulk import chunks
from federator.model.notices import Event, Notice, Severity

# More says nothing more to a person, and the run's row has all of it.
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Kept:
    """A Notice with its number and when it was noted, in seconds since the epoch."""

    id: int
    at: float
    notice: Notice


def add(connection: Connection, notices: Iterable[Notice]) -> None:
    """Adds notices to the outbox, in the caller's transaction."""
    now = time.time()
    rows = [
        {
            "at": now, "event": n.event.value, "severity": n.grade.value, "source": n.source, "mirror": n.mirror,
            "run_id": n.run_id, "subject": redacted(n.subject)[:_LONGEST], "message": redacted(n.message)[:_LONGEST],
        }
        for n in notices
    ]  # fmt: skip
    for part in chunks(rows):
        connection.execute(insert(t.notice), part)


def waiting(connection: Connection, limit: int = 10_000) -> list[Kept]:
    """Notices that nobody looked at yet, in order."""
    found = connection.execute(select(t.notice).order_by(t.notice.c.id).limit(limit)).mappings()
    return [
        Kept(
            row["id"],
            row["at"],
            Notice(
                Event(row["event"]), row["subject"], row["message"], row["source"], row["mirror"], row["run_id"],
                Severity(row["severity"]),
            ),
        )
        for row in found
    ]  # fmt: skip


def any_waiting(connection: Connection) -> bool:
    return connection.execute(select(t.notice.c.id).limit(1)).scalar() is not None


def remove(connection: Connection, kept: Sequence[Kept]) -> None:
    """Takes notices out of the outbox, in the transaction that has made notifications of them."""
    for numbers in chunks(each.id for each in kept):
        connection.execute(delete(t.notice).where(t.notice.c.id.in_(numbers)))
