"""Delivery: one pass turns notices into notifications and sends those that are due, each channel on its own.

A notification is sent before its row says so. If a process dies in between, it is sent again, under the same id.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from federator import logs
from federator.connector import ConfigError, FederatorError
from federator.connector.call_deadline import CallExpired, run_with_deadline
from federator.connector.options import resolve_reference
from federator.model import canonical_json
from federator.model.notices import Notice, NoticeEvent, Severity
from federator.notify import smtp, webhook
from federator.notify.errors import PermanentDeliveryError, TemporaryDeliveryError
from federator.notify.grouping import MAX_LISTED_NOTICES, NoticeGroup, group_key, group_notices, notice_to_json
from federator.notify.message import Message, to_email, to_slack_json, to_webhook_json
from federator.runtime.redaction import redact
from federator.settings import Settings
from federator.settings.observability import NotifySettings
from federator.store import Index, notices, notifications
from federator.store.leases import LeaseHeld, acquire_lease
from federator.store.notifications import DEAD, QUEUED, SENT, DeliveryAttempt, Notification

#: one process sends at a time
DELIVERY_LEASE = "notify"
# Seconds before the second attempt, doubled for each further attempt, and their maximum.
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 10.0, 3600.0
_MAX_RETRY_AFTER_SECONDS = 86_400.0
# All channels wait for the slowest receiver of a pass, and the timeout of a socket is for each read.
_EXCHANGE_SECONDS = 60.0
_KEEP_SENT_SECONDS, _KEEP_DEAD_SECONDS = 30 * 86_400.0, 180 * 86_400.0
_log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of a pass: the number of notifications that were sent, will be retried, and are dead."""

    sent: int = 0
    retrying: int = 0
    dead: int = 0


def deliver_due(index: Index, settings: Settings, *, at_once: bool = False, only: str | None = None) -> DeliveryResult:
    """Make a pass. ``at_once`` does not wait for further notices of a group. ``only`` sends one notification, even before its time.

    Return at once if another process is making a pass. Raise the index's errors.
    """
    now = time.time()
    with index.read() as connection:
        has_notices, due = notices.has_pending_notices(connection), notifications.has_due(connection, now)
    if not (has_notices or due or only):
        return DeliveryResult()
    try:
        with acquire_lease(index, DELIVERY_LEASE):
            queue_notifications(index, settings, now, at_once=at_once)
            with index.write() as connection:
                notifications.mark_unroutable_dead(connection, list(settings.notify))
                notifications.delete_finished(
                    connection, sent_before=now - _KEEP_SENT_SECONDS, dead_before=now - _KEEP_DEAD_SECONDS
                )
            with index.read() as connection:
                notifications_due = (
                    notifications.list_due(connection, time.time())
                    if only is None
                    else [notifications.get_notification(connection, only)]
                )
            return _send_all(index, settings, notifications_due)
    except LeaseHeld:
        return DeliveryResult()


def queue_notifications(index: Index, settings: Settings, now: float, *, at_once: bool = False) -> int:
    """Turn pending notices into notifications, all in one transaction. Return the number of notices."""
    with index.write() as connection:
        pending = notices.list_pending_notices(connection)
        for name, channel in settings.notify.items():
            for group in group_notices(channel, pending):
                key = canonical_json(dict(group.shared))
                open_group = notifications.find_open_group(connection, name, key, now)
                if open_group is None:
                    due = now if at_once else now + channel.group_wait
                    severity = group.severity.value
                    notifications.queue_notification(
                        connection, name, key, severity=severity, events=group.event_count, body=group.to_json(), due_at=due
                    )
                    continue
                merged = _merge_group(open_group, group)
                notifications.extend_notification(
                    connection,
                    open_group.id,
                    severity=merged.severity.value,
                    events=merged.event_count,
                    body=merged.to_json(),
                )
        notices.delete_notices(connection, pending)
    return len(pending)


def send_test(index: Index, settings: Settings, name: str) -> Notification:
    """Send a test through a channel at once. Return the notification afterwards. Raise ConfigError for an unknown channel."""
    if name not in settings.notify:
        known = ", ".join(settings.notify) or "none is configured"
        raise ConfigError(f"unknown channel: {name!r}", hint=f"channels: {known}")
    notice = Notice(NoticeEvent.TEST, "test", "Lance Federator reaches this channel.")
    stored = notices.StoredNotice(0, time.time(), notice)
    group = NoticeGroup(group_key((), notice))
    group.add(stored)
    with index.write() as connection:
        notification_id = notifications.queue_notification(
            connection, name, canonical_json({"test": notice_to_json(stored)["at"]}), severity=notice.effective_severity.value,
            events=1, body=group.to_json(), due_at=time.time(),
        )  # fmt: skip
    deliver_due(index, settings, only=notification_id)
    with index.read() as connection:
        return notifications.get_notification(connection, notification_id)


def retry_delay(attempts: int, requested_seconds: float | None, jitter: Callable[[], float] = random.random) -> float:
    """Return the seconds until the next attempt: as the receiver requested, else doubled each time.

    A random part is added: up to a tenth of a requested time, else up to a half.
    """
    if requested_seconds is not None:
        return min(requested_seconds, _MAX_RETRY_AFTER_SECONDS) * (1 + jitter() / 10)
    return float(min(_MIN_RETRY_SECONDS * 2.0 ** (attempts - 1), _MAX_RETRY_SECONDS)) * (1 + jitter() / 2)


def _merge_group(stored: Notification, group: NoticeGroup) -> NoticeGroup:
    merged = NoticeGroup(stored.group, Counter(stored.counts), list(stored.first), Severity(stored.severity))
    merged.counts.update(group.counts)
    merged.first += group.first[: max(0, MAX_LISTED_NOTICES - len(merged.first))]
    merged.severity = max(merged.severity, group.severity, key=lambda severity: severity.rank)
    return merged


def _send_all(index: Index, settings: Settings, due: Sequence[Notification]) -> DeliveryResult:
    by_channel: dict[str, list[Notification]] = {}
    for notification in due:
        by_channel.setdefault(notification.channel, []).append(notification)
    if not by_channel:
        return DeliveryResult()
    with ThreadPoolExecutor(len(by_channel), thread_name_prefix="notify") as pool:
        attempts_by_channel = list(pool.map(lambda name: _send_channel(index, settings, name, by_channel[name]), by_channel))
    states = [attempt.state for attempts in attempts_by_channel for attempt in attempts]
    return DeliveryResult(states.count(SENT), states.count(QUEUED), states.count(DEAD))


def _send_channel(index: Index, settings: Settings, name: str, due: Sequence[Notification]) -> list[DeliveryAttempt]:
    """Send a channel's notifications, oldest first. After a temporary failure the rest waits for the next pass."""
    attempts = []
    for notification in due:
        attempts.append(_attempt_delivery(settings, settings.notify[name], notification))
        with index.write() as connection:
            notifications.record_attempt(connection, notification.id, attempts[-1])
        if attempts[-1].state != SENT:
            _log.warning(
                "notification not sent", channel=name, id=notification.id, state=attempts[-1].state, error=attempts[-1].error
            )
        if attempts[-1].state == QUEUED:
            break
    return attempts


def _attempt_delivery(settings: Settings, channel: NotifySettings, notification: Notification) -> DeliveryAttempt:
    number = notification.attempts + 1
    try:
        message = Message.build(notification, settings.instance.id)
        # What reaches its deadline may arrive nevertheless.
        run_with_deadline(
            f"the receiver of {message.channel}", _EXCHANGE_SECONDS, lambda: _send_message(settings, channel, message)
        )
    except (TemporaryDeliveryError, CallExpired) as error:
        if number >= channel.attempts:
            return DeliveryAttempt(DEAD, redact(f"{error.message}; that was attempt {number} of {channel.attempts}"))
        return DeliveryAttempt(QUEUED, redact(error.message), time.time() + retry_delay(number, error.retry_after))
    except (PermanentDeliveryError, FederatorError) as error:
        return DeliveryAttempt(DEAD, redact(error.message))
    return DeliveryAttempt(SENT)


def _send_message(settings: Settings, channel: NotifySettings, message: Message) -> None:
    """Send one message. Secrets are resolved only here."""
    section = f"[notify.{message.channel}]"
    secrets = {key: channel.resolve_secret(key, section) for key in ("url", "secret", "token", "password")}
    # These are not secrets and may be logged.
    values = {
        key: resolve_reference(text, where=section) if (text := getattr(channel, key)) else None for key in ("host", "username")
    }
    ca = str(settings.base / channel.ca) if channel.ca else None
    if channel.kind == "smtp":
        mail = to_email(message, str(channel.sender), channel.to)
        smtp.send_mail(
            mail, host=str(values["host"]), port=channel.port, tls=channel.tls or "starttls", username=values["username"],
            password=secrets["password"], ca=ca,
        )  # fmt: skip
        return
    body = to_slack_json(message) if channel.kind == "slack" else to_webhook_json(message)
    webhook.post_notification(
        str(secrets["url"]), body, notification_id=message.id, secret=secrets["secret"], token=secrets["token"], ca=ca
    )
