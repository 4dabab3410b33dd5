"""Schedules as APScheduler's triggers: ``@every 15m``, or a cron line as cron reads it. Times are UTC."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from federator.settings import seconds

_EVERY = "@every "
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def interval(schedule: str) -> float | None:
    """The seconds of an ``@every`` schedule; None for a cron line. Raises ValueError."""
    if not schedule.startswith(_EVERY):
        return None
    length = seconds(schedule.removeprefix(_EVERY).strip())
    if length < 1 or length % 1:
        raise ValueError("@every takes whole seconds, at least one")
    return length


def trigger(schedule: str, jitter: float = 0.0) -> Any:
    """The trigger of a schedule, each time up to ``jitter`` seconds late. Raises ValueError that says which part is wrong."""
    late = int(jitter) or None
    length = interval(schedule)
    if length is not None:
        return IntervalTrigger(seconds=int(length), timezone=UTC, jitter=late)
    fields = schedule.split()
    if len(fields) != 5:
        raise ValueError("a cron line has five fields: minute hour day month weekday")
    minute, hour, day, month, weekday = fields
    same = {"minute": minute, "hour": hour, "month": month, "timezone": UTC}
    if day.startswith("*") or weekday.startswith("*"):
        return CronTrigger(day=day, day_of_week=_weekdays(weekday), jitter=late, **same)
    # As cron has it: with both given, either is enough.
    return OrTrigger([CronTrigger(day=day, **same), CronTrigger(day_of_week=_weekdays(weekday), **same)], late)


def _weekdays(field: str) -> str:
    """Cron counts from Sunday = 0 (or 7), APScheduler from Monday: names leave no doubt."""
    days: set[int] = set()
    for part in field.lower().split(","):
        span, _, step = part.partition("/")
        if step and not (step.isdigit() and int(step) > 0):
            raise ValueError(f"{field!r} is no weekday")
        low, dash, high = span.partition("-")
        first = 0 if span == "*" else _weekday(low, field)
        last = 6 if span == "*" or (step and not dash) else _weekday(high, field) if dash else first
        if dash and last < first:
            last += 7
        days.update(day % 7 for day in range(first, last + 1, int(step or 1)))
    return "*" if len(days) == 7 else ",".join(_DAYS[day] for day in sorted(days))


def _weekday(text: str, field: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdigit() and int(text) <= 7:
        return int(text)
    raise ValueError(f"{field!r} is no weekday")
