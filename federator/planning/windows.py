"""Windows: the times of the week in which a mirror makes changes that somebody may notice. Pure: the time is given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from federator.planning.changes import Action, Change, destructive
from federator.planning.rule import MirrorRule

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = f"(?:{'|'.join(_DAYS)})"
_WINDOW = re.compile(rf"(?:({_DAY}(?:-{_DAY})?(?:,{_DAY}(?:-{_DAY})?)*) +)?([0-2]\d):([0-5]\d)-([0-2]\d):([0-5]\d)")
_MIDNIGHT = 24 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """Days (Monday is 0) and minutes of the day; one that ends before it starts ends on the next day."""

    days: frozenset[int]
    start: int
    end: int

    def holds(self, day: int, minute: int) -> bool:
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


def parse(text: str) -> Window:
    """``Mon-Fri 20:00-06:00``, ``Sat,Sun 00:00-24:00``, or ``22:00-04:00`` for every day. Raises ValueError."""
    match = _WINDOW.fullmatch(text)
    start, end = (int(match[hour]) * 60 + int(match[hour + 1]) for hour in (2, 4)) if match else (0, 0)
    if match is None or start == end or start >= _MIDNIGHT or end > _MIDNIGHT:
        raise ValueError("times of the week like Mon-Fri 20:00-06:00, Sat,Sun 00:00-24:00, 22:00-04:00")
    return Window(_days(match[1]) if match[1] else frozenset(range(7)), start, end)


def is_open(rule: MirrorRule, now: float) -> bool:
    """Whether one of the mirror's windows holds a time (seconds since 1970); always where it has none."""
    local = datetime.fromtimestamp(now, ZoneInfo(rule.timezone))
    minute = local.hour * 60 + local.minute
    return not rule.windows or any(parse(window).holds(local.weekday(), minute) for window in rule.windows)


def closed(rule: MirrorRule, change: Change, now: float) -> str | None:
    """Why a change has to wait; None if it may be made now."""
    waits = rule.window_scope == "all" or disruptive(change)
    return told(rule) if waits and not is_open(rule, now) else None


def disruptive(change: Change) -> bool:
    """What somebody may notice at the target: something goes, moves, or gets another name."""
    goes = change.action in (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE) and change.precondition.get("target") != "absent"
    return goes or destructive(change)


def told(rule: MirrorRule) -> str:
    """When the mirror's windows are, without the present time: the plan that waits stays the same plan."""
    return f"waits for {' or '.join(rule.windows)} ({rule.timezone})"


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start = _DAYS.index(first)
        found |= {(start + step) % 7 for step in range((_DAYS.index(last or first) - start) % 7 + 1)}
    return frozenset(found)
