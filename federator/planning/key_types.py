"""Types of a mirror's keys in the configuration, with the parsers of their texts. Pydantic uses the types when it reads the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, GetPydanticSchema, PlainSerializer

from federator.model import is_location

#: prefix of a pattern that is a regular expression
REGEX = "re:"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = f"(?:{'|'.join(_DAYS)})"
_WINDOW = re.compile(rf"(?:({_DAY}(?:-{_DAY})?(?:,{_DAY}(?:-{_DAY})?)*) +)?([0-2]\d):([0-5]\d)-([0-2]\d):([0-5]\d)")
_MIDNIGHT = 24 * 60


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """Days (Monday is 0) and minutes of the day. A window that ends before it starts ends on the next day."""

    days: frozenset[int]
    start: int
    end: int

    def contains(self, day: int, minute: int) -> bool:
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


def parse_window(text: str) -> ChangeWindow:
    """Parse ``Mon-Fri 20:00-06:00``, ``Sat,Sun 00:00-24:00``, or ``22:00-04:00`` for every day. Raise ValueError."""
    match = _WINDOW.fullmatch(text)
    start, end = (int(match[hour]) * 60 + int(match[hour + 1]) for hour in (2, 4)) if match else (0, 0)
    if match is None or start == end or start >= _MIDNIGHT or end > _MIDNIGHT:
        raise ValueError("must be times of the week like Mon-Fri 20:00-06:00, Sat,Sun 00:00-24:00, 22:00-04:00")
    return ChangeWindow(_parse_days(match[1]) if match[1] else frozenset(range(7)), start, end)


def _parse_days(text: str) -> frozenset[int]:
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start = _DAYS.index(first)
        days |= {(start + step) % 7 for step in range((_DAYS.index(last or first) - start) % 7 + 1)}
    return frozenset(days)


def parse_duration(value: object) -> float:
    """Return a duration in seconds: a number of seconds, or ``90s``, ``10m``, ``2h``, ``1d``, ``500ms``. Raise ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", str(value))
    if match is None:
        raise ValueError("must be a duration like 500ms, 90s, 10m, 2h, 1d")
    return float(match[1]) * _UNITS[match[2]]


def _check_regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


def _check_pattern(text: str) -> str:
    if text.startswith(REGEX):
        _check_regex(text.removeprefix(REGEX))
    return text


def _check_location(text: str) -> str:
    if not is_location(text):
        raise ValueError("must be a prefix of locations like s3://bucket/lake or s3a://")
    return text


def _check_window(text: str) -> str:
    parse_window(text)
    return text


def _check_timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError("must be a time zone like UTC or Europe/Vienna") from None
    return text


def _sort_pairs(table: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(table.items()))


Duration = Annotated[float, BeforeValidator(parse_duration)]
Regex = Annotated[str, AfterValidator(_check_regex)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
#: a table in the file; sorted pairs in memory, because a rule is hashable
PatternTable = Annotated[
    tuple[tuple[str, str], ...],
    GetPydanticSchema(lambda _, handler: handler(Annotated[dict[str, Pattern], AfterValidator(_sort_pairs)])),
    PlainSerializer(dict),
]
LocationText = Annotated[str, AfterValidator(_check_location)]
Window = Annotated[str, AfterValidator(_check_window)]
TimeZone = Annotated[str, AfterValidator(_check_timezone)]
