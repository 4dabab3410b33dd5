"""Change windows: the weekly times in which a mirror may make disruptive changes. Pure: the time is a parameter."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from federator.planning.changes import ABSENT, Action, Change, is_destructive
from federator.planning.key_types import parse_window
from federator.planning.rule import MirrorRule


def is_window_open(rule: MirrorRule, now: float) -> bool:
    """Tell whether a time (seconds since 1970) is in one of the mirror's change windows. True if it has none."""
    local = datetime.fromtimestamp(now, ZoneInfo(rule.timezone))
    minute = local.hour * 60 + local.minute
    return not rule.windows or any(parse_window(window).contains(local.weekday(), minute) for window in rule.windows)


def closed_reason(rule: MirrorRule, change: Change, now: float) -> str | None:
    """Return why a change has to wait. None if it may be made now."""
    waits = rule.window_scope == "all" or is_disruptive(change)
    return describe_windows(rule) if waits and not is_window_open(rule, now) else None


def is_disruptive(change: Change) -> bool:
    """Tell whether users of the target may notice a change: an object is removed, moved or renamed."""
    removes = change.action in (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE) and change.precondition.get("target") != ABSENT
    return removes or is_destructive(change)


def describe_windows(rule: MirrorRule) -> str:
    """Describe the mirror's change windows. The text does not contain the current time, so that a waiting plan keeps its digest."""
    return f"waits for {' or '.join(rule.windows)} ({rule.timezone})"
