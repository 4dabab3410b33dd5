"""One pass: notices become notifications, and those that are due are sent, each channel on its own.

A notification is sent before its row says so: a process that dies in between sends it again, under the same id.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from federator import logs
from federator.connector import FederatorError, StateError
from federator.connector.options import resolve
from federator.connector.secrets import redacted
from federator.index import Index, RowMapping, notices, notifications
from federator.index.leases import LeaseHeld, hold
from federator.index.notifications import DEAD, QUEUED, SENT, Attempt
from federator.model import canonical_json
from federator.model.notices import Event, Notice
from federator.notify import mail, webhook
from federator.notify.message import Message, as_email, as_json, as_slack
from federator.notify.outcome import Refused, Unsent
from federator.notify.rules import SHOWN, Group, grouped, shared_by, told
from federator.settings import Settings
from federator.settings.telling import NotifySettings

#: one process sends at a time
LEASE = "notify"
# Seconds before the second try, doubled for each further one, and what they never exceed.
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0
_LONGEST_ASKED = 86_400.0
_KEEP_SENT, _KEEP_DEAD = 30 * 86_400.0, 180 * 86_400.0
_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a pass came to: notifications that were sent, that are to be tried again, and that are dead."""

    sent: int = 0
    later: int = 0
    dead: int = 0


def deliver(index: Index, settings: Settings, *, at_once: bool = False, only: str | None = None) -> Delivered:
    """Makes a pass. ``at_once`` waits for no further notices of a group; ``only`` one notification, whatever its time.

    Returns without having done anything where another process is at it. Raises what the index raises.
    """
    now = time.time()
    with index.read() as connection:
        fresh, due = notices.any_waiting(connection), notifications.any_due(connection, now)
    if not (fresh or due or only):
        return Delivered()
    try:
        with hold(index, LEASE):
            route(index, settings, now, at_once=at_once)
            with index.write() as connection:
                notifications.bury(connection, list(settings.notify))
                notifications.prune(connection, sent_before=now - _KEEP_SENT, dead_before=now - _KEEP_DEAD)
            with index.read() as connection:
                rows = notifications.due(connection, time.time()) if only is None else [notifications.get(connection, only)]
            return _send_all(index, settings, rows)
    except LeaseHeld:
        return Delivered()


def route(index: Index, settings: Settings, now: float, *, at_once: bool = False) -> int:
    """Turns the notices that wait into notifications, all in one transaction; returns how many notices there were."""
    with index.write() as connection:
        kept = notices.waiting(connection)
        for name, channel in settings.notify.items():
            for group in grouped(channel, kept):
                key = canonical_json(dict(group.shared))
                open_ = notifications.gathering(connection, name, key, now)
                if open_ is None:
                    due = now if at_once else now + channel.group_wait
                    severity = group.severity.value
                    notifications.add(
                        connection, name, key, severity=severity, events=group.events, body=group.to_json(), due_at=due
                    )
                    continue
                whole = _joined(open_, group)
                notifications.join(
                    connection, open_["id"], severity=whole.severity.value, events=whole.events, body=whole.to_json()
                )
        notices.remove(connection, kept)
    return len(kept)


def test(index: Index, settings: Settings, name: str) -> RowMapping:
    """Sends a test through a channel at once; returns its row as it is then. Raises StateError for an unknown channel."""
    if name not in settings.notify:
        known = ", ".join(settings.notify) or "none is configured"
        raise StateError(f"no channel is called {name!r}", hint=f"channels: {known}")
    notice = Notice(Event.TEST, "test", "Lance Federator reaches this channel.")
    kept = notices.Kept(0, time.time(), notice)
    group = Group(shared_by((), notice))
    group.add(kept)
    with index.write() as connection:
        number = notifications.add(
            connection, name, canonical_json({"test": told(kept)["at"]}), severity=notice.grade.value, events=1,
            body=group.to_json(), due_at=time.time(),
        )  # fmt: skip
    deliver(index, settings, only=number)
    with index.read() as connection:
        return notifications.get(connection, number)


def pause(attempts: int, asked: float | None, jitter: Callable[[], float] = random.random) -> float:
    """Seconds until the next try after so many: what the receiver asked for, else twice as long each time, up to half of it more."""
    if asked is not None:
        return min(asked, _LONGEST_ASKED) * (1 + jitter() / 10)
    return float(min(_FIRST_PAUSE * 2.0 ** (attempts - 1), _LONGEST_PAUSE)) * (1 + jitter() / 2)


def _joined(row: RowMapping, group: Group) -> Group:
    whole = Group.of(json.loads(row["body"]), row["severity"])
    whole.counts.update(group.counts)
    whole.first += group.first[: max(0, SHOWN - len(whole.first))]
    whole.severity = max(whole.severity, group.severity, key=lambda each: each.rank)
    return whole


def _send_all(index: Index, settings: Settings, rows: Sequence[RowMapping]) -> Delivered:
    of: dict[str, list[RowMapping]] = {}
    for row in rows:
        of.setdefault(row["channel"], []).append(row)
    if not of:
        return Delivered()
    with ThreadPoolExecutor(len(of), thread_name_prefix="notify") as pool:
        done = list(pool.map(lambda name: _send_channel(index, settings, name, of[name]), of))
    states = [attempt.state for attempts in done for attempt in attempts]
    return Delivered(states.count(SENT), states.count(QUEUED), states.count(DEAD))


def _send_channel(index: Index, settings: Settings, name: str, rows: Sequence[RowMapping]) -> list[Attempt]:
    """A channel's notifications, oldest first; after one that cannot be sent now the others wait for the next pass."""
    attempts = []
    for row in rows:
        attempts.append(_try(settings, settings.notify[name], row))
        with index.write() as connection:
            notifications.tried(connection, row["id"], attempts[-1])
        if attempts[-1].state != SENT:
            _log.warning(
                "notification not sent", channel=name, id=row["id"], state=attempts[-1].state, error=attempts[-1].error
            )
        if attempts[-1].state == QUEUED:
            break
    return attempts


def _try(settings: Settings, channel: NotifySettings, row: RowMapping) -> Attempt:
    number = int(row["attempts"]) + 1
    try:
        _send(settings, channel, Message.of(row, settings.instance.id))
    except Unsent as error:
        if number >= channel.attempts:
            return Attempt(DEAD, redacted(f"{error.message}; that was try {number} of {channel.attempts}"))
        return Attempt(QUEUED, redacted(error.message), time.time() + pause(number, error.retry_after))
    except (Refused, FederatorError) as error:
        return Attempt(DEAD, redacted(error.message))
    return Attempt(SENT)


def _send(settings: Settings, channel: NotifySettings, message: Message) -> None:
    """Sends one message. Secrets are resolved here, and nowhere before."""
    where = f"[notify.{message.channel}]"
    known = {key: channel.resolved(key, where) for key in ("url", "secret", "token", "password")}
    # No secrets: they may stand in logs.
    plain = {key: resolve(text, where=where) if (text := getattr(channel, key)) else None for key in ("host", "username")}
    ca = str(settings.base / channel.ca) if channel.ca else None
    if channel.kind == "smtp":
        made = as_email(message, str(channel.sender), channel.to)
        mail.send(
            made, host=str(plain["host"]), port=channel.port, tls=channel.tls or "starttls", username=plain["username"],
            password=known["password"], ca=ca,
        )  # fmt: skip
        return
    body = as_slack(message) if channel.kind == "slack" else as_json(message)
    webhook.post(str(known["url"]), body, number=message.id, secret=known["secret"], token=known["token"], ca=ca)
