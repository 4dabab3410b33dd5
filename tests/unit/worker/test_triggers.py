"""Schedules have the meaning that cron gives them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from federator.worker.triggers import build_trigger, interval_seconds

FRIDAY = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
ALL = "Sun Mon Tue Wed Thu Fri Sat"
WEEKDAYS = {
    "0": "Sun", "7": "Sun", "1": "Mon", "6": "Sat", "SUN": "Sun", "1,3": "Mon Wed", "1-5": "Mon Tue Wed Thu Fri",
    "mon-fri": "Mon Tue Wed Thu Fri", "5-7": "Fri Sat Sun", "0-2": "Sun Mon Tue", "fri-mon": "Fri Sat Sun Mon",
    "*/2": "Sun Tue Thu Sat", "1-5/2": "Mon Wed Fri", "0-6": ALL, "0-7": ALL, "*": ALL,
}  # fmt: skip
WRONG = (
    "@every 0s", "@every x", "@every 500ms", "99 * * * *", "* * * *", "* * * * 8", "* * * * mon-", "* * * 13 *", "x * * * *",
    "* * * * */0", "* * * * ,",
)  # fmt: skip


def list_fire_times(schedule: str, count: int, start: datetime = FRIDAY) -> list[datetime]:
    trigger = build_trigger(schedule)
    times: list[datetime] = []
    last, now = None, start
    for _ in range(count):
        last = trigger.get_next_fire_time(last, now)
        now = last + timedelta(microseconds=1)
        times.append(last)
    return times


@pytest.mark.parametrize(("field", "days"), WEEKDAYS.items())
def test_weekdays_count_from_sunday(field: str, days: str) -> None:
    found = {moment.strftime("%a") for moment in list_fire_times(f"0 0 * * {field}", 7)}
    assert found == set(days.split())


def test_day_and_weekday_together_mean_either() -> None:
    fire_times = list_fire_times("0 0 13 * 5", 4, datetime(2026, 1, 10, tzinfo=UTC))
    assert [moment.day for moment in fire_times] == [13, 16, 23, 30]


def test_times_are_utc() -> None:
    assert list_fire_times("*/15 * * * *", 2) == [FRIDAY, FRIDAY + timedelta(minutes=15)]


def test_every_counts_from_the_last_time() -> None:
    assert interval_seconds("@every 15m") == 900
    first, second = list_fire_times("@every 15m", 2)
    assert second - first == timedelta(minutes=15)


@pytest.mark.parametrize("schedule", WRONG)
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        build_trigger(schedule)
