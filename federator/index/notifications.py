"""Notifications as rows: queued, then sent or dead. One is about a group of notices; its id is what a receiver tells twins by.

``body`` is JSON: ``group`` (what its notices share), ``counts`` by event, and the ``first`` few notices.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, or_, select, update

from federator.connector import StateError
from federator.index import tables as t
from federator.model import canonical_json

QUEUED, SENT, DEAD = "queued", "sent", "dead"
STATES = (QUEUED, SENT, DEAD)
n = t.notification.c


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a try to send went: ``state`` afterwards, the ``error`` if there was one, and when the next try is ``due_at``."""

    state: str
    error: str | None = None
    due_at: float = 0.0


def gathering(connection: Connection, channel: str, grouped: str, now: float) -> RowMapping | None:
    """The notification of a group that further notices may still join: it was not tried, and is not due yet."""
    open_ = (n.channel == channel, n.grouped == grouped, n.state == QUEUED, n.attempts == 0, n.due_at > now)
    query = select(t.notification).where(*open_).order_by(n.id).limit(1)
    return connection.execute(query).mappings().first()


def add(
    connection: Connection, channel: str, grouped: str, *, severity: str, events: int, body: Mapping[str, Any], due_at: float
) -> str:
    """Queues a notification; returns its id, which sorts by time."""
    now = time.time()
    row = {
        "id": f"{int(now * 1000):011x}-{uuid.uuid4().hex}", "channel": channel, "grouped": grouped, "state": QUEUED,
        "severity": severity, "events": events, "body": canonical_json(dict(body)), "created_at": now, "due_at": due_at,
    }  # fmt: skip
    connection.execute(insert(t.notification), [row])
    return str(row["id"])


def join(connection: Connection, number: str, *, severity: str, events: int, body: Mapping[str, Any]) -> None:
    """Puts further notices into a notification that is gathering."""
    values = {"severity": severity, "events": events, "body": canonical_json(dict(body))}
    connection.execute(update(t.notification).where(n.id == number).values(values))


def due(connection: Connection, before: float, limit: int = 1000) -> list[RowMapping]:
    """Queued notifications whose time has come, oldest first."""
    query = select(t.notification).where(n.state == QUEUED, n.due_at <= before).order_by(n.due_at, n.id).limit(limit)
    return list(connection.execute(query).mappings())


def any_due(connection: Connection, before: float) -> bool:
    return connection.execute(select(n.id).where(n.state == QUEUED, n.due_at <= before).limit(1)).scalar() is not None


def tried(connection: Connection, number: str, attempt: Attempt) -> None:
    """Records a try to send."""
    ended = None if attempt.state == QUEUED else time.time()
    values = {"state": attempt.state, "error": attempt.error, "due_at": attempt.due_at, "ended_at": ended}
    counted = {**values, "attempts": n.attempts + 1}
    connection.execute(update(t.notification).where(n.id == number).values(counted))


def bury(connection: Connection, channels: Collection[str]) -> int:
    """What is queued for channels that are not among ``channels`` is dead: nobody can send it. Returns how many."""
    orphans = (n.state == QUEUED) & n.channel.not_in(list(channels))
    values = {"state": DEAD, "error": "its channel is not configured any more", "ended_at": time.time()}
    return connection.execute(update(t.notification).where(orphans).values(values)).rowcount


def retry(connection: Connection, number: str) -> RowMapping:
    """Queues a dead notification again, under its old id. Raises StateError for another one, or where a prefix names several."""
    found = get(connection, number)
    if found["state"] != DEAD:
        raise StateError(f"the notification {found['id']} is {found['state']}, not dead", hint="only dead ones are sent again")
    values = {"state": QUEUED, "attempts": 0, "due_at": time.time(), "ended_at": None}
    connection.execute(update(t.notification).where(n.id == found["id"]).values(values))
    return found


def get(connection: Connection, number: str) -> RowMapping:
    """One notification by its id or an unambiguous prefix of it. Raises StateError."""
    query = select(t.notification).where(n.id.startswith(number, autoescape=True)).limit(2)
    found = list(connection.execute(query).mappings())
    if len(found) != 1:
        what = "no notification has" if not found else "several notifications have"
        raise StateError(f"{what} the id {number!r}", hint="federator notifications list shows them")
    return found[0]


def recent(
    connection: Connection,
    *,
    state: str | None = None,
    channel: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[RowMapping]:
    """Notifications, newest first; keyset paging with ``before`` = the last id."""
    query = select(t.notification).order_by(n.id.desc()).limit(limit)
    if state is not None:
        query = query.where(n.state == state)
    if channel is not None:
        query = query.where(n.channel == channel)
    if before is not None:
        query = query.where(n.id < before)
    return list(connection.execute(query).mappings())


def counts(connection: Connection) -> dict[tuple[str, str], int]:
    """Notifications by channel and state."""
    query = select(n.channel, n.state, func.count()).group_by(n.channel, n.state)
    return {(channel, state): number for channel, state, number in connection.execute(query)}


def prune(connection: Connection, *, sent_before: float, dead_before: float) -> int:
    """Removes what was sent, or died, that long ago; returns how many."""
    old = or_((n.state == SENT) & (n.ended_at < sent_before), (n.state == DEAD) & (n.ended_at < dead_before))
    return connection.execute(delete(t.notification).where(old)).rowcount
