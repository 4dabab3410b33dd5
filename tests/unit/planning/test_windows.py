"""Change windows: the weekly times in which a mirror may make changes that users notice."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from federator.model import NamespaceRecord
from federator.planning.change_windows import closed_reason, is_disruptive, is_window_open
from federator.planning.changes import Action, Change
from federator.planning.key_types import parse_window
from federator.planning.rule import MirrorRule
from tests.fixtures.planning import owned, table


def at(text: str, zone: str = "UTC") -> float:
    """A time in the week of Monday, 2 March 2026: ``Mon 20:00``."""
    day, clock = text.split()
    hour, minute = map(int, clock.split(":"))
    number = 2 + ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun").index(day)
    return datetime(2026, 3, number, hour, minute, tzinfo=ZoneInfo(zone)).timestamp()


def rule(*windows: str, **fields: str) -> MirrorRule:
    return MirrorRule(name="m", origin="a", target="b", windows=windows, **fields)  # type: ignore[arg-type]  # literals


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ("Mon-Fri 20:00-06:00", ["Mon 20:00", "Tue 05:59", "Fri 23:00", "Sat 05:59"], ["Mon 05:00", "Mon 19:59", "Tue 06:00", "Sat 06:00", "Sat 20:00"]),  # noqa: E501
        ("Sat,Sun 00:00-24:00", ["Sat 00:00", "Sun 23:59"], ["Fri 23:59", "Mon 00:00"]),
        ("Fri-Mon 10:00-11:00", ["Fri 10:00", "Sat 10:30", "Mon 10:59"], ["Tue 10:30", "Thu 10:30", "Mon 11:00"]),
        ("Mon,Wed-Thu 09:30-09:31", ["Mon 09:30", "Thu 09:30"], ["Tue 09:30", "Mon 09:29", "Mon 09:31"]),
        ("22:00-04:00", ["Sun 22:00", "Mon 03:59"], ["Mon 04:00", "Sun 21:59"]),
    ],
)  # fmt: skip
def test_a_window_holds_its_times_to_the_minute(window: str, inside: list[str], outside: list[str]) -> None:
    assert [time for time in inside if not is_window_open(rule(window), at(time))] == []
    assert [time for time in outside if is_window_open(rule(window), at(time))] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mon-Fri",
        "20:00",
        "20:00-20:00",
        "24:00-01:00",
        "01:00-24:01",
        "20:60-21:00",
        "Mo 20:00-21:00",
        "mon 20:00-21:00",
        "Mon 8:00-9:00",
        "* * * * *",
    ],
)
def test_anything_else_is_no_window(text: str) -> None:
    with pytest.raises(ValueError, match="times of the week like"):
        parse_window(text)


def test_times_are_those_of_the_mirrors_zone() -> None:
    vienna = rule("20:00-21:00", timezone="Europe/Vienna")
    assert is_window_open(vienna, at("Mon 20:30", "Europe/Vienna"))
    assert is_window_open(vienna, at("Mon 19:30"))
    assert not is_window_open(vienna, at("Mon 20:30"))


def test_one_of_several_windows_is_enough_and_none_is_always() -> None:
    two = rule("Mon 10:00-11:00", "Tue 10:00-11:00")
    assert is_window_open(two, at("Mon 10:00"))
    assert is_window_open(two, at("Tue 10:00"))
    assert not is_window_open(two, at("Wed 10:00"))
    assert is_window_open(rule(), at("Wed 10:00"))


GONE = Change(Action.DEREGISTER_TABLE, "b", "s$t", "a", "s$t", "gone", before=owned(), precondition={"target": "d"})
FORGOTTEN = replace(GONE, before=None, precondition={"target": "absent"})
NEW = Change(Action.DECLARE_TABLE, "b", "s$t", "a", "s$t", "new", after=table("b", "s$t"), precondition={"target": "absent"})
UPDATED = Change(Action.UPDATE_TABLE, "b", "s$t", "a", "s$t", "x", before=owned(), after=owned(properties={"p": "1"}))
MOVED = replace(UPDATED, after=owned(location="s3://y"))
AGAIN = replace(UPDATED, action=Action.RECREATE_TABLE)
EMPTY = Change(
    Action.DROP_NAMESPACE, "b", "s", "a", "s", "empty", precondition={"target": "d"}, namespace=NamespaceRecord("b", ("s",))
)


def test_what_somebody_may_notice() -> None:
    changes = [GONE, replace(GONE, pair="s$t -> s$u"), MOVED, AGAIN, EMPTY, FORGOTTEN, NEW, UPDATED]
    assert [is_disruptive(change) for change in changes] == [True] * 5 + [False] * 3


def test_what_waits_depends_on_the_scope() -> None:
    time = at("Wed 10:00")
    for scope, waits in (("destructive", {GONE.action}), ("all", {GONE.action, NEW.action})):
        mirror = rule("Mon 10:00-11:00", window_scope=scope)
        assert {change.action for change in (GONE, NEW) if closed_reason(mirror, change, time)} == waits
        assert not any(closed_reason(mirror, change, at("Mon 10:00")) for change in (GONE, NEW))
    assert closed_reason(rule("Mon 10:00-11:00"), GONE, time) == "waits for Mon 10:00-11:00 (UTC)"
