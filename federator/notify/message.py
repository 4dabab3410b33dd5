"""Message formats of a notification: JSON, a Slack-compatible payload, and e-mail. Texts of catalogs are data, never markup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from federator.runtime.redaction import redact, redact_data
from federator.store.notifications import Notification

#: Slack's limit for one section in characters, less some space for other text
_MAX_SECTION_LENGTH = 2800
_MAX_LINE_LENGTH = 300
_SLACK_ICONS = {"info": ":information_source:", "warning": ":warning:", "error": ":x:", "critical": ":rotating_light:"}


@dataclass(frozen=True, slots=True)
class Message:
    """One notification. ``events`` is the number of its notices, and ``first`` are the first ones.

    Times are in seconds since the epoch.
    """

    id: str
    channel: str
    severity: str
    events: int
    group: Mapping[str, str]
    counts: Mapping[str, int]
    first: tuple[Mapping[str, Any], ...]
    created_at: float
    instance: str | None = None

    @classmethod
    def build(cls, stored: Notification, instance: str | None) -> Message:
        """Build a message from a stored notification, without secrets."""
        body = redact_data({"group": stored.group, "counts": stored.counts, "first": stored.first})
        return cls(
            stored.id, stored.channel, stored.severity, stored.events, body["group"], body["counts"], tuple(body["first"]),
            stored.created_at, instance,
        )  # fmt: skip

    @property
    def hidden_notices(self) -> int:
        """The number of notices that are only counted."""
        return self.events - len(self.first)

    @property
    def title(self) -> str:
        """The title, in one line."""
        suffix = f" ({self.instance})" if self.instance else ""
        if self.events == 1:
            return _shorten_line(f"{self.severity}: {_event_title(self.first[0]['event'])}: {self.first[0]['subject']}{suffix}")
        counts = ", ".join(f"{number:,} {_event_title(event)}" for event, number in self.counts.items())
        subject = ", ".join(f"{key} {value}" for key, value in self.group.items() if value and key not in ("event", "severity"))
        return _shorten_line(f"{self.severity}: {counts}{f' ({subject})' if subject else ''}{suffix}")


def to_webhook_json(message: Message) -> bytes:
    """Return the body of a webhook. docs/how-to/notifications.md explains its keys."""
    data = {
        "id": message.id, "version": 1, "channel": message.channel, "instance": message.instance, "title": message.title,
        "severity": message.severity, "events": message.events, "counts": dict(message.counts), "group": dict(message.group),
        "created_at": _format_time(message.created_at), "more": message.hidden_notices,
        "first": [{**notice, "at": _format_time(notice["at"])} for notice in message.first],
    }  # fmt: skip
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def to_slack_json(message: Message) -> bytes:
    """Return Slack blocks, with a text for push notifications and for clients without blocks."""
    lines = [_slack_line(notice) for notice in message.first]
    text = ""
    for number, line in enumerate(lines):
        if len(text) + len(line) > _MAX_SECTION_LENGTH:
            lines = lines[:number]
            break
        text += line + "\n"
    remaining = message.events - len(lines)
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": message.title[:150]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": text.strip() or "-"}},
    ]
    closing = f"{f'and {remaining:,} more · ' if remaining else ''}{_format_time(message.created_at)} · {message.id}"
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": closing}]})
    fallback = f"{_SLACK_ICONS[message.severity]} {_escape_slack(message.title)}"
    return json.dumps({"text": fallback, "blocks": blocks}, ensure_ascii=False).encode()


def to_email(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """Return a plain text mail. A notification has one Message-ID, even if it is sent more than once."""
    mail = EmailMessage()
    mail["Subject"] = f"[federator] {message.title}"
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.created_at, UTC))
    mail["Message-ID"] = f"<{message.id}@federator.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    lines = [message.title, ""]
    for notice in message.first:
        lines += [
            f"- {_event_title(notice['event'])}: {_single_line(notice['subject'])}",
            f"  {_single_line(notice['message'])}",
        ]
        details = [f"{key} {notice[key]}" for key in ("source", "mirror", "run") if notice.get(key)]
        lines += [f"  {', '.join(details)}, {_format_time(notice['at'])}" if details else f"  {_format_time(notice['at'])}"]
    lines += [f"- and {message.hidden_notices:,} more"] if message.hidden_notices else []
    mail.set_content("\n".join([*lines, "", f"{message.id}", ""]))
    return mail


def _slack_line(notice: Mapping[str, Any]) -> str:
    subject, message = (_escape_slack(_shorten_line(str(notice[key]))) for key in ("subject", "message"))
    return f"{_SLACK_ICONS[notice['severity']]} *{subject}* {_event_title(notice['event'])}: {message}"


def _escape_slack(text: str) -> str:
    # Slack requires the first three. Asterisks and backticks would change the format of the line.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*", "∗").replace("`", "'")


def _event_title(event: str) -> str:
    return event.replace("_", " ")


def _single_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in redact(text)).split())


def _shorten_line(text: str) -> str:
    flat = _single_line(text)
    return flat if len(flat) <= _MAX_LINE_LENGTH else f"{flat[: _MAX_LINE_LENGTH - 1]}…"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
