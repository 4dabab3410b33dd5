"""Schedules as APScheduler triggers: ``@every 15m``, or a cron line with cron's own rules. Times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from federator.settings import parse_duration

_EVERY = "@every "
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def interval_seconds(schedule: str) -> float | None:
    """Return the seconds of an ``@every`` schedule. None for a cron line. Raise ValueError."""
    if not schedule.startswith(_EVERY):
        return None
    seconds = parse_duration(schedule.removeprefix(_EVERY).strip())
    if seconds < 1 or seconds % 1:
        raise ValueError("@every needs whole seconds, at least one")
    return seconds


def overdue_since(schedule: str, last_at: float, now: float) -> float | None:
    """Return when the second start after ``last_at`` was due, if that is in the past; else None. Times are seconds since the epoch.

    One missed start is normal: a run takes its time, and runs wait for each other. Raise ValueError for an invalid schedule.
    """
    seconds = interval_seconds(schedule)
    if seconds is not None:
        due = last_at + 2 * seconds
    else:
        trigger = build_trigger(schedule)
        # Arguments: the previous start, and the time after which the next one is looked for.
        first = trigger.get_next_fire_time(None, datetime.fromtimestamp(last_at, UTC))
        second = trigger.get_next_fire_time(first, first + timedelta(seconds=1)) if first is not None else None
        if second is None:
            return None
        due = second.timestamp()
    return due if due < now else None


def next_start(schedule: str, last_at: float | None, now: float) -> float | None:
    """Return when a job is due next, without jitter. None for an ``@every`` job that never started.

    It may be in the past: the job is due, or waits for another run. Times are seconds since the epoch. Raise ValueError for an
    invalid schedule.
    """
    seconds = interval_seconds(schedule)
    if seconds is not None:
        return None if last_at is None else last_at + seconds
    due = build_trigger(schedule).get_next_fire_time(None, datetime.fromtimestamp(now, UTC))
    return due.timestamp() if due is not None else None


def build_trigger(schedule: str, jitter: float = 0.0) -> Any:
    """Build the trigger of a schedule. Each start is delayed by up to ``jitter`` seconds. Raise ValueError with the invalid part."""
    jitter_seconds = int(jitter) or None
    seconds = interval_seconds(schedule)
    if seconds is not None:
        return IntervalTrigger(seconds=int(seconds), timezone=UTC, jitter=jitter_seconds)
    fields = schedule.split()
    if len(fields) != 5:
        raise ValueError("a cron line has five fields: minute hour day month weekday")
    minute, hour, day, month, weekday = fields
    common = {"minute": minute, "hour": hour, "month": month, "timezone": UTC}
    if day.startswith("*") or weekday.startswith("*"):
        return CronTrigger(day=day, day_of_week=_translate_weekdays(weekday), jitter=jitter_seconds, **common)
    # Cron's rule: if both are given, either is enough.
    return OrTrigger(
        [CronTrigger(day=day, **common), CronTrigger(day_of_week=_translate_weekdays(weekday), **common)], jitter_seconds
    )


def _translate_weekdays(field: str) -> str:
    """Translate weekdays to names. Cron counts from Sunday = 0 (or 7) and APScheduler from Monday; names are unambiguous."""
    days: set[int] = set()
    for part in field.lower().split(","):
        span, _, step = part.partition("/")
        if step and not (step.isdigit() and int(step) > 0):
            raise ValueError(f"{field!r} is not a weekday")
        low, dash, high = span.partition("-")
        first = 0 if span == "*" else _translate_weekday(low, field)
        if dash:
            last = _translate_weekday(high, field)
            if last < first:
                last += 7
        else:
            # Without an end, a step goes on to the last day of the week.
            last = 6 if span == "*" or step else first
        days.update(day % 7 for day in range(first, last + 1, int(step or 1)))
    return "*" if len(days) == 7 else ",".join(_DAYS[day] for day in sorted(days))


def _translate_weekday(text: str, field: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdigit() and int(text) <= 7:
        return int(text)
    raise ValueError(f"{field!r} is not a weekday")
