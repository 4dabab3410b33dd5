"""Types of configuration values: schedules, URLs and names. Those that mirrors use are in ``planning.key_types``."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from federator.connector.options import is_secret_reference
from federator.planning.key_types import parse_duration

LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: schedule of a mirror: after each crawl of its origin
AFTER_CRAWL = "@after crawl"
#: type of the validation error of a secret that is not a reference
CLEAR_TEXT = "clear_text"


def _parse_positive_duration(value: object) -> float:
    seconds = parse_duration(value)
    if seconds == 0:
        raise ValueError("must be a duration above 0 like 500ms, 90s, 10m, 2h, 1d")
    return seconds


_CRON = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))


def _check_schedule(value: object) -> str:
    text = str(value)
    if text.startswith("@every "):
        if parse_duration(text.removeprefix("@every ").strip()) < 1:
            raise ValueError("@every needs a second or more")
        return text
    fields = text.split()
    if len(fields) != len(_CRON):
        raise ValueError("must be a cron line of five fields, or @every 15m")
    for field, (name, low, high) in zip(fields, _CRON, strict=True):
        if not all(_is_cron(part, low, high) for part in field.split(",")):
            raise ValueError(f"{field!r} is not a {name}; use a cron line (minute hour day month weekday) or @every 15m")
    return text


def _check_mirror_schedule(value: object) -> str:
    return AFTER_CRAWL if str(value) == AFTER_CRAWL else _check_schedule(value)


def _is_cron(part: str, low: int, high: int) -> bool:
    match = re.fullmatch(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([1-9]\d*))?", part)
    ends = [end for end in match.groups()[:2] if end is not None] if match else []
    # The scheduler checks the names of months and weekdays.
    return match is not None and all(
        low <= int(end) <= high if end.isdigit() else end.isalpha() and len(end) == 3 for end in ends
    )


def _check_anchor(text: str) -> str:
    parts = urlsplit(text)
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
    is_file = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
    if parts.password is not None or not (is_file or (parts.netloc and (is_local or parts.scheme in ("s3", "https")))):
        raise ValueError("must be file:///path/anchors.jsonl, s3://bucket/prefix or https://host/path, without a password")
    return text


def check_web_url(text: str) -> str:
    """Check a URL whose responses are trusted: https, or http on this machine. Raise ValueError."""
    parts = urlsplit(text)
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
    if not parts.netloc or parts.username is not None or not (is_local or parts.scheme == "https"):
        raise ValueError("must be https://host/path, without a password")
    return text


def _check_sts_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.username is not None or parts.query:
        raise ValueError("must be https://host, without a password")
    return text


def _check_role_arn(text: str) -> str:
    if not is_secret_reference(text) and not re.fullmatch(r"arn:[a-z-]+:iam::[0-9]*:[^\s:]+", text):
        raise ValueError("must be arn:aws:iam::ACCOUNT:role/NAME")
    return text


def _parse_session_duration(value: object) -> float:
    seconds = parse_duration(value)
    if not 900 <= seconds <= 43_200:
        raise ValueError("must be a duration from 15m to 12h, as AWS STS allows")
    return seconds


def _parse_vend(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str):
        if value not in ("none", *VEND_METHODS, "static"):
            raise ValueError(f"must be {', '.join(map(repr, ('none', *VEND_METHODS)))} or 'static'")
        return value
    methods = tuple(value) if isinstance(value, list | tuple) else ()
    is_first = "catalog" not in methods[1:]
    if not methods or not is_first or len(set(methods)) < len(methods) or any(method not in VEND_METHODS for method in methods):
        raise ValueError(f"must be a list of different ones of {', '.join(map(repr, VEND_METHODS))}, with 'catalog' first")
    return methods


def _check_origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}" or not parts.hostname:
        raise ValueError("must be an origin like https://catalog.example.com, without a path")
    return text


def _check_secret(text: str) -> str:
    if not is_secret_reference(text):
        raise PydanticCustomError(CLEAR_TEXT, "a secret must not stand in the file")
    return text


#: how temporary credentials for a table can be issued
VEND_METHODS = ("catalog", "sts", "gcs", "azure")
#: ``none``, ``static``, one of ``VEND_METHODS``, or several of these in the order in which they are tried
Vend = Annotated[str | tuple[str, ...], BeforeValidator(_parse_vend)]
#: lifetime of credentials from STS, in seconds
SessionDuration = Annotated[float, BeforeValidator(_parse_session_duration)]
StsUrl = Annotated[str, AfterValidator(_check_sts_url)]
RoleArn = Annotated[str, AfterValidator(_check_role_arn)]
PositiveDuration = Annotated[float, BeforeValidator(_parse_positive_duration)]
Schedule = Annotated[str, BeforeValidator(_check_schedule)]
MirrorSchedule = Annotated[str, BeforeValidator(_check_mirror_schedule)]
#: ``${VARIABLE}`` or ``file:PATH``, which is read where the secret is used
Secret = Annotated[str, AfterValidator(_check_secret)]
AnchorUrl = Annotated[str, AfterValidator(_check_anchor)]
AnchorOption = Literal["endpoint", "region", "access_key_id", "secret_access_key", "session_token"]
WebUrl = Annotated[str, AfterValidator(check_web_url)]
Origin = Annotated[str, AfterValidator(_check_origin)]
RoleName = Literal["viewer", "operator", "writer", "admin"]
#: asymmetric algorithms only: their public keys cannot be used to sign
SigningAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
