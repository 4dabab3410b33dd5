"""What is sent: a notification as JSON, as a Slack-compatible payload, and as an e-mail. Texts of catalogs are data, never markup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from federator.connector.secrets import redacted, redacted_data
from federator.index import RowMapping

#: what Slack takes of one section, and room for our own words
_SECTION = 2800
_LINE = 300
_MARKS = {"info": ":information_source:", "warning": ":warning:", "error": ":x:", "critical": ":rotating_light:"}


@dataclass(frozen=True, slots=True)
class Message:
    """One notification. ``events`` is how many notices it tells of, ``first`` the first few; times are seconds since the epoch."""

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
    def of(cls, row: RowMapping, instance: str | None) -> Message:
        """From its row in the index."""
        body = redacted_data(json.loads(row["body"]))
        return cls(
            row["id"], row["channel"], row["severity"], row["events"], body["group"], body["counts"], tuple(body["first"]),
            row["created_at"], instance,
        )  # fmt: skip

    @property
    def more(self) -> int:
        """Notices that are only counted."""
        return self.events - len(self.first)

    @property
    def title(self) -> str:
        """One line."""
        where = f" ({self.instance})" if self.instance else ""
        if self.events == 1:
            return _line(f"{self.severity}: {_words(self.first[0]['event'])}: {self.first[0]['subject']}{where}")
        counted = ", ".join(f"{number:,} {_words(event)}" for event, number in self.counts.items())
        about = ", ".join(f"{key} {value}" for key, value in self.group.items() if value and key not in ("event", "severity"))
        return _line(f"{self.severity}: {counted}{f' ({about})' if about else ''}{where}")


def as_json(message: Message) -> bytes:
    """The body of a webhook; docs/notifications.md explains its keys."""
    data = {
        "id": message.id, "version": 1, "channel": message.channel, "instance": message.instance, "title": message.title,
        "severity": message.severity, "events": message.events, "counts": dict(message.counts), "group": dict(message.group),
        "created_at": _time(message.created_at), "more": message.more,
        "first": [{**notice, "at": _time(notice["at"])} for notice in message.first],
    }  # fmt: skip
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def as_slack(message: Message) -> bytes:
    """Blocks, with a text for notifications and for clients that know no blocks."""
    lines = [_slack_line(notice) for notice in message.first]
    text = ""
    for number, line in enumerate(lines):
        if len(text) + len(line) > _SECTION:
            lines = lines[:number]
            break
        text += line + "\n"
    left = message.events - len(lines)
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": message.title[:150]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": text.strip() or "-"}},
    ]
    closing = f"{f'and {left:,} more · ' if left else ''}{_time(message.created_at)} · {message.id}"
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": closing}]})
    fallback = f"{_MARKS[message.severity]} {_escaped(message.title)}"
    return json.dumps({"text": fallback, "blocks": blocks}, ensure_ascii=False).encode()


def as_email(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """A plain text mail; one notification has one Message-ID, however often it is sent."""
    mail = EmailMessage()
    mail["Subject"] = f"[federator] {message.title}"
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.created_at, UTC))
    mail["Message-ID"] = f"<{message.id}@federator.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    lines = [message.title, ""]
    for notice in message.first:
        lines += [f"- {_words(notice['event'])}: {_flat(notice['subject'])}", f"  {_flat(notice['message'])}"]
        named = [f"{key} {notice[key]}" for key in ("source", "mirror", "run") if notice.get(key)]
        lines += [f"  {', '.join(named)}, {_time(notice['at'])}" if named else f"  {_time(notice['at'])}"]
    lines += [f"- and {message.more:,} more"] if message.more else []
    mail.set_content("\n".join([*lines, "", f"{message.id}", ""]))
    return mail


def _slack_line(notice: Mapping[str, Any]) -> str:
    said = _escaped(_line(f"{notice['message']}"))
    return f"{_MARKS[notice['severity']]} *{_escaped(_line(notice['subject']))}* {_words(notice['event'])}: {said}"


def _escaped(text: str) -> str:
    # What Slack asks for; a backtick or an asterisk could only change how our own line looks.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*", "∗").replace("`", "'")


def _words(event: str) -> str:
    return event.replace("_", " ")


def _flat(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in redacted(text)).split())


def _line(text: str) -> str:
    flat = _flat(text)
    return flat if len(flat) <= _LINE else f"{flat[: _LINE - 1]}…"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
