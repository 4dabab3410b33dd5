"""Stored notifications, each about a group of notices: queued, then sent or dead.

A notification has a stable id; receivers use it to discard duplicates. Column ``grouped`` is the group's key: the fields that all its
notices share, as JSON text. Column ``body`` is JSON: ``group`` (these fields), ``counts`` by event, and the ``first`` few notices.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import Connection, RowMapping, delete, func, insert, or_, select, update
from typing_extensions import TypedDict

from federator.connector import StateError
from federator.model import canonical_json
from federator.store import tables as t
from federator.store.failures import UnknownId
from federator.store.field_types import OptionalTimestamp, Timestamp

QUEUED, SENT, DEAD = "queued", "sent", "dead"
STATES = (QUEUED, SENT, DEAD)
n = t.notification.c


SeverityName = Literal["info", "warning", "error", "critical"]


class NotificationNotice(TypedDict):
    """A notice of a notification."""

    event: Annotated[str, Field(examples=["source_failed"])]
    severity: SeverityName
    at: Timestamp
    subject: str
    message: str
    source: str | None
    mirror: str | None
    run: str | None


@dataclass(frozen=True, slots=True)
class Notification:
    """A message to one channel about a group of notices."""

    id: Annotated[str, Field(description="stable id; receivers use it to discard duplicates")]
    channel: Annotated[str, Field(examples=["ops"])]
    state: Literal["queued", "sent", "dead"]
    severity: SeverityName
    events: Annotated[int, Field(description="number of notices")]
    counts: Annotated[dict[str, int], Field(description="number of notices by event")]
    group: Annotated[dict[str, str], Field(description="values that all its notices share")]
    first: Annotated[list[NotificationNotice], Field(description="the first notices")]
    created_at: Timestamp
    due_at: Annotated[Timestamp, Field(description="time of the next attempt, while it is queued")]
    attempts: int
    error: Annotated[str | None, Field(description="error of the last attempt")]
    ended_at: Annotated[OptionalTimestamp, Field(description="time at which it was sent or became dead; null: queued")]


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """The result of one attempt to send: the new ``state``, the ``error`` if it failed, and the time of the next attempt."""

    state: str
    error: str | None = None
    due_at: float = 0.0


def find_open_group(connection: Connection, channel: str, group_key: str, now: float) -> Notification | None:
    """Return the notification of a group that may still take notices: not yet due and without attempts. None if there is none."""
    open_ = (n.channel == channel, n.grouped == group_key, n.state == QUEUED, n.attempts == 0, n.due_at > now)
    query = select(t.notification).where(*open_).order_by(n.id).limit(1)
    row = connection.execute(query).mappings().first()
    return _from_row(row) if row else None


def queue_notification(
    connection: Connection, channel: str, group_key: str, *, severity: str, events: int, body: Mapping[str, Any], due_at: float
) -> str:
    """Queue a notification. Return its id; ids sort by time."""
    now = time.time()
    row = {
        "id": f"{int(now * 1000):011x}-{uuid.uuid4().hex}", "channel": channel, "grouped": group_key, "state": QUEUED,
        "severity": severity, "events": events, "body": canonical_json(dict(body)), "created_at": now, "due_at": due_at,
    }  # fmt: skip
    connection.execute(insert(t.notification), [row])
    return str(row["id"])


def extend_notification(
    connection: Connection, notification_id: str, *, severity: str, events: int, body: Mapping[str, Any]
) -> None:
    """Replace the content of a queued notification that takes further notices."""
    values = {"severity": severity, "events": events, "body": canonical_json(dict(body))}
    connection.execute(update(t.notification).where(n.id == notification_id).values(values))


def list_due(connection: Connection, before: float, limit: int = 1000) -> list[Notification]:
    """List the queued notifications that are due, oldest first."""
    query = select(t.notification).where(n.state == QUEUED, n.due_at <= before).order_by(n.due_at, n.id).limit(limit)
    return [_from_row(row) for row in connection.execute(query).mappings()]


def has_due(connection: Connection, before: float) -> bool:
    return connection.execute(select(n.id).where(n.state == QUEUED, n.due_at <= before).limit(1)).scalar() is not None


def record_attempt(connection: Connection, notification_id: str, attempt: DeliveryAttempt) -> None:
    """Record an attempt to send."""
    ended_at = None if attempt.state == QUEUED else time.time()
    values = {"state": attempt.state, "error": attempt.error, "due_at": attempt.due_at, "ended_at": ended_at}
    counted = {**values, "attempts": n.attempts + 1}
    connection.execute(update(t.notification).where(n.id == notification_id).values(counted))


def mark_unroutable_dead(connection: Connection, channels: Collection[str]) -> int:
    """Mark notifications of removed channels as dead. Return their number. ``channels`` are the configured channels."""
    unroutable = (n.state == QUEUED) & n.channel.not_in(list(channels))
    values = {"state": DEAD, "error": "the channel is no longer configured", "ended_at": time.time()}
    return connection.execute(update(t.notification).where(unroutable).values(values)).rowcount


def requeue_dead(connection: Connection, id_prefix: str) -> str:
    """Queue a dead notification again, under its old id. Return the id. Raise StateError if it is not dead or does not exist."""
    known = get_notification(connection, id_prefix)
    if known.state != DEAD:
        raise StateError(
            f"the notification {known.id} is {known.state}, not dead", hint="only dead notifications can be sent again"
        )
    values = {"state": QUEUED, "attempts": 0, "due_at": time.time(), "ended_at": None}
    connection.execute(update(t.notification).where(n.id == known.id).values(values))
    return known.id


def get_notification(connection: Connection, id_prefix: str) -> Notification:
    """Return a notification by its id or an unambiguous prefix of it. Raise UnknownId if none or several match."""
    query = select(t.notification).where(n.id.startswith(id_prefix, autoescape=True)).limit(2)
    rows = list(connection.execute(query).mappings())
    if len(rows) != 1:
        matching = "no notification has" if not rows else "several notifications have"
        raise UnknownId(f"{matching} the id {id_prefix!r}", hint="federator notifications list shows the notifications")
    return _from_row(rows[0])


def list_notifications(
    connection: Connection,
    *,
    state: str | None = None,
    channel: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[Notification]:
    """List notifications, newest first. ``before`` is the last id of the previous page."""
    query = select(t.notification).order_by(n.id.desc()).limit(limit)
    if state is not None:
        query = query.where(n.state == state)
    if channel is not None:
        query = query.where(n.channel == channel)
    if before is not None:
        query = query.where(n.id < before)
    return [_from_row(row) for row in connection.execute(query).mappings()]


def count_by_channel(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of notifications by channel and state."""
    query = select(n.channel, n.state, func.count()).group_by(n.channel, n.state)
    return {(channel, state): number for channel, state, number in connection.execute(query)}


def delete_finished(connection: Connection, *, sent_before: float, dead_before: float) -> int:
    """Delete notifications sent, or dead, since before the given times. Return their number."""
    old = or_((n.state == SENT) & (n.ended_at < sent_before), (n.state == DEAD) & (n.ended_at < dead_before))
    return connection.execute(delete(t.notification).where(old)).rowcount


def _from_row(row: RowMapping) -> Notification:
    columns = {name: value for name, value in row.items() if name not in ("grouped", "body")}
    return Notification(**columns, **json.loads(row["body"]))
