"""The kinds of values that a configuration has: durations, schedules, patterns, places, times of the week."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field

from federator.model import is_location
from federator.planning import windows
from federator.planning.selection import REGEX

DEFAULT_FILE = "federator.toml"
#: a mirror's schedule: whenever a crawl has read its origin
AFTER_CRAWL = "@after crawl"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: object) -> float:
    """A duration: a number of seconds, or ``90s``, ``10m``, ``2h``, ``1d``, ``500ms``. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", str(value))
    if match is None:
        raise ValueError("a duration like 500ms, 90s, 10m, 2h, 1d")
    return float(match[1]) * _UNITS[match[2]]


def _some_seconds(value: object) -> float:
    length = seconds(value)
    if length == 0:
        raise ValueError("a duration above 0 like 500ms, 90s, 10m, 2h, 1d")
    return length


_CRON = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))


def _schedule(value: object) -> str:
    text = str(value)
    if text.startswith("@every "):
        if seconds(text.removeprefix("@every ").strip()) < 1:
            raise ValueError("@every takes a second or more")
        return text
    fields = text.split()
    if len(fields) != len(_CRON):
        raise ValueError("a cron line of five fields, or @every 15m")
    for field, (name, low, high) in zip(fields, _CRON, strict=True):
        if not all(_is_cron(part, low, high) for part in field.split(",")):
            raise ValueError(f"{field!r} is no {name} of a cron line (minute hour day month weekday), nor is it @every 15m")
    return text


def _mirror_schedule(value: object) -> str:
    return AFTER_CRAWL if str(value) == AFTER_CRAWL else _schedule(value)


def _is_cron(part: str, low: int, high: int) -> bool:
    match = re.fullmatch(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([1-9]\d*))?", part)
    ends = [end for end in match.groups()[:2] if end is not None] if match else []
    # Names of months and weekdays are left to the scheduler.
    return match is not None and all(
        low <= int(end) <= high if end.isdigit() else end.isalpha() and len(end) == 3 for end in ends
    )


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return text


def _pattern(text: str) -> str:
    if text.startswith(REGEX):
        _regex(text.removeprefix(REGEX))
    return text


def _place(text: str) -> str:
    if not is_location(text):
        raise ValueError("the beginning of locations, like s3://bucket/lake or s3a://")
    return text


def _anchor(text: str) -> str:
    parts = urlsplit(text)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    rooted = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
    if parts.password is not None or not (rooted or (parts.netloc and (local or parts.scheme in ("s3", "https")))):
        raise ValueError("file:///path/anchors.jsonl, s3://bucket/prefix or https://host/path, without a password")
    return text


def web_url(text: str) -> str:
    """An address that is asked with trust in its answer: https, or this machine. Raises ValueError."""
    parts = urlsplit(text)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.netloc or parts.username is not None or not (local or parts.scheme == "https"):
        raise ValueError("https://host/path, without a password")
    return text


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}" or not parts.hostname:
        raise ValueError("an origin like https://catalog.example.com, without a path")
    return text


def _window(text: str) -> str:
    windows.parse(text)
    return text


def _timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError("a time zone like UTC or Europe/Vienna") from None
    return text


Duration = Annotated[float, BeforeValidator(seconds)]
SomeDuration = Annotated[float, BeforeValidator(_some_seconds)]
Schedule = Annotated[str, BeforeValidator(_schedule)]
MirrorSchedule = Annotated[str, BeforeValidator(_mirror_schedule)]
Regex = Annotated[str, AfterValidator(_regex)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Place = Annotated[str, AfterValidator(_place)]
AnchorUrl = Annotated[str, AfterValidator(_anchor)]
AnchorOption = Literal["endpoint", "region", "access_key_id", "secret_access_key", "session_token"]
WebUrl = Annotated[str, AfterValidator(web_url)]
Origin = Annotated[str, AfterValidator(_origin)]
RoleName = Literal["viewer", "operator", "writer", "admin"]
#: those whose public keys cannot be used to sign
SigningAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
Window = Annotated[str, AfterValidator(_window)]
TimeZone = Annotated[str, AfterValidator(_timezone)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
