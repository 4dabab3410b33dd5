"""Who is told what: whether a channel wants a notice, and which notices become one notification. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federator.index.notices import Kept
from federator.model.notices import Event, Notice, Severity
from federator.planning.selection import matches
from federator.settings.telling import NotifySettings

#: notices of a group that are told one by one; the rest is counted
SHOWN = 10


@dataclass
class Group:
    """Notices that are told together: what they share, how many there are by event, and the first of them."""

    shared: Mapping[str, str]
    counts: Counter[str] = field(default_factory=Counter)
    first: list[dict[str, Any]] = field(default_factory=list)
    severity: Severity = Severity.INFO

    @property
    def events(self) -> int:
        return self.counts.total()

    def add(self, kept: Kept) -> None:
        notice = kept.notice
        self.counts[notice.event.value] += 1
        self.severity = max(self.severity, notice.grade, key=lambda each: each.rank)
        if len(self.first) < SHOWN:
            self.first.append(told(kept))

    def to_json(self) -> dict[str, Any]:
        return {"group": dict(self.shared), "counts": dict(sorted(self.counts.items())), "first": self.first}

    @classmethod
    def of(cls, body: Mapping[str, Any], severity: str) -> Group:
        """A group as it was stored, to be added to."""
        return cls(body["group"], Counter(body["counts"]), list(body["first"]), Severity(severity))


def wanted(channel: NotifySettings, notice: Notice) -> bool:
    """Whether a channel's rules take a notice. A pattern asks only notices that name a source, or a mirror."""
    if notice.event is Event.TEST:
        return True
    if notice.grade.rank < channel.min_severity.rank:
        return False
    if "*" not in channel.events and notice.event.value not in channel.events:
        return False
    return _fits(channel.sources, notice.source) and _fits(channel.mirrors, notice.mirror)


def grouped(channel: NotifySettings, notices: Iterable[Kept]) -> list[Group]:
    """The groups that a channel makes of the notices it wants."""
    groups: dict[tuple[tuple[str, str], ...], Group] = {}
    for kept in notices:
        if wanted(channel, kept.notice):
            shared = shared_by(channel.group_by, kept.notice)
            groups.setdefault(tuple(shared.items()), Group(shared)).add(kept)
    return list(groups.values())


def shared_by(keys: Sequence[str], notice: Notice) -> dict[str, str]:
    """What the notices of a group have in common; a test stands alone."""
    if notice.event is Event.TEST:
        return {"event": notice.event.value}
    of = {
        "event": notice.event.value, "severity": notice.grade.value, "source": notice.source or "", "mirror": notice.mirror or "",
        "run": notice.run_id or "",
    }  # fmt: skip
    return {key: of[key] for key in keys}


def told(kept: Kept) -> dict[str, Any]:
    """A notice as receivers get it."""
    notice = kept.notice
    return {
        "event": notice.event.value, "severity": notice.grade.value, "at": round(kept.at, 3), "subject": notice.subject,
        "message": notice.message, "source": notice.source, "mirror": notice.mirror, "run": notice.run_id,
    }  # fmt: skip


def _fits(patterns: Sequence[str], name: str | None) -> bool:
    return name is None or any(matches(pattern, name) for pattern in patterns)
