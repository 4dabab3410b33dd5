"""Routing and grouping: whether a channel matches a notice, and which notices become one notification. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federator.model.notices import Notice, NoticeEvent, Severity
from federator.planning.selection import matches_pattern
from federator.settings.observability import NotifySettings
from federator.store.notices import StoredNotice
from federator.store.notifications import NotificationNotice

#: the number of notices of a group that are listed; the rest is only counted
MAX_LISTED_NOTICES = 10


@dataclass
class NoticeGroup:
    """Notices of one notification: their common fields, their number by event, and the first ones."""

    shared: Mapping[str, str]
    counts: Counter[str] = field(default_factory=Counter)
    first: list[NotificationNotice] = field(default_factory=list)
    severity: Severity = Severity.INFO

    @property
    def event_count(self) -> int:
        return self.counts.total()

    def add(self, stored: StoredNotice) -> None:
        notice = stored.notice
        self.counts[notice.event.value] += 1
        self.severity = max(self.severity, notice.effective_severity, key=lambda severity: severity.rank)
        if len(self.first) < MAX_LISTED_NOTICES:
            self.first.append(notice_to_json(stored))

    def to_json(self) -> dict[str, Any]:
        return {"group": dict(self.shared), "counts": dict(sorted(self.counts.items())), "first": self.first}


def matches_channel(channel: NotifySettings, notice: Notice) -> bool:
    """Tell whether a channel's rules match a notice. Patterns apply only to notices that name a source or a mirror."""
    if notice.event is NoticeEvent.TEST:
        return True
    if notice.effective_severity.rank < channel.min_severity.rank:
        return False
    if "*" not in channel.events and notice.event.value not in channel.events:
        return False
    return _matches_any(channel.sources, notice.source) and _matches_any(channel.mirrors, notice.mirror)


def group_notices(channel: NotifySettings, notices: Iterable[StoredNotice]) -> list[NoticeGroup]:
    """Return the groups of the notices that match a channel."""
    groups: dict[tuple[tuple[str, str], ...], NoticeGroup] = {}
    for stored in notices:
        if matches_channel(channel, stored.notice):
            shared = group_key(channel.group_by, stored.notice)
            groups.setdefault(tuple(shared.items()), NoticeGroup(shared)).add(stored)
    return list(groups.values())


def group_key(keys: Sequence[str], notice: Notice) -> dict[str, str]:
    """Return the common fields of a group's notices. A test is a group of its own."""
    if notice.event is NoticeEvent.TEST:
        return {"event": notice.event.value}
    values = {
        "event": notice.event.value, "severity": notice.effective_severity.value, "source": notice.source or "",
        "mirror": notice.mirror or "", "run": notice.run_id or "",
    }  # fmt: skip
    return {key: values[key] for key in keys}


def notice_to_json(stored: StoredNotice) -> NotificationNotice:
    """Return a notice as receivers get it."""
    notice = stored.notice
    return {
        "event": notice.event.value, "severity": notice.effective_severity.value, "at": round(stored.at, 3), "subject": notice.subject,
        "message": notice.message, "source": notice.source, "mirror": notice.mirror, "run": notice.run_id,
    }  # fmt: skip


def _matches_any(patterns: Sequence[str], name: str | None) -> bool:
    return name is None or any(matches_pattern(pattern, name) for pattern in patterns)
