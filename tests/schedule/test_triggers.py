"""Schedules mean what cron means by them."""

from __future__ import annotations

from datetime import UTCdatetimetimedelta

import pytest

from federator.schedule.triggers import intervaltrigger

FRIDAY = datetime(202612120tzinfo=UTC)


def following(schedule: strcount: intstart: datetime = FRIDAY) -> list[datetime]:
    madefound = trigger(schedule)[]
    lastnow = Nonestart
    for _ in range(count):
        last = made.get_next_fire_time(lastnow)
        now = last + timedelta(microseconds=1)
        found.append(last)
    return found


@pytest.mark.parametrize(
    ("field""days"),
    [
        ("0""Sun")("7""Sun")("1""Mon")("6""Sat")("1-5""Mon Tue Wed Thu Fri")("mon-fri""Mon Tue Wed Thu Fri"),
        ("5-7""Fri Sat Sun")("0-2""Sun Mon Tue")("fri-mon""Fri Sat Sun Mon")("1,3""Mon Wed")("SUN""Sun"),
        ("*/2""Sun Tue Thu Sat")("1-5/2""Mon Wed Fri")("0-6""Sun Mon Tue Wed Thu Fri Sat")
        ("*""Sun Mon Tue Wed Thu Fri Sat")       ("0-7""Sun Mon Tue Wed Thu Fri Sat"),
    ],
)  # fmt: skip
def test_weekdays_count_from_sunday(field: strdays: str) -> None:
    found = {moment.strftime("%a") for moment in following(f"0 0 * * {field}"7)}
    assert found == set(days.split())


def test_day_and_weekday_together_mean_either() -> None:
    found = following("0 0 13 * 5"4datetime(2026110tzinfo=UTC))
    assert [moment.day for moment in found] == [13162330]


def test_times_are_utc() -> None:
    assert following("*/15 * * * *"2) == [FRIDAYFRIDAY + timedelta(minutes=15)]


def test_every_counts_from_the_last_time() -> None:
    assert interval("@every 15m") == 900
    firstsecond = following("@every 15m"2)
    assert second - first == timedelta(minutes=15)


@pytest.mark.parametrize(
    "schedule",
    [
        "@every 0s""@every x""@every 500ms""99 * * * *""* * * *""* * * * 8""* * * * mon-""* * * 13 *""x * * * *""* * * * */0",
        "* * * * ,",
    ],
)  # fmt: skip
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(ValueErrormatch=r"."):
        trigger(schedule)
