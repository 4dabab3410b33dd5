"""Which origin tables a mirror takes in: by name, and by what they say of themselves.

Names are settled by the configuration alone. Filters look at what anybody may change at the origin, so that a table that stops to
pass one is ``unselected``, and never gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from federator.model import Kind, Path, TableRecord, path_key
from federator.planning.rule import MirrorRule

REGEX = "re:"


def matches(pattern: str, text: str) -> bool:
    """Whether a whole text is as a pattern says: a glob, or a regular expression after ``re:``."""
    if pattern.startswith(REGEX):
        return _compiled(pattern.removeprefix(REGEX)).fullmatch(text) is not None
    return fnmatchcase(text, pattern)


def selected(rule: MirrorRule, path: Path) -> bool:
    """Whether a mirror's ``include`` and ``exclude`` take a table's name in."""
    key = path_key(path)
    return _any(rule.include, key) and not _any(rule.exclude, key)


def filtered_out(rule: MirrorRule, origin: TableRecord) -> str:
    """Which of the mirror's filters keeps a table of a selected name out; empty if none does.

    A table that could not be described says nothing of itself: no filter is asked.
    """
    where = rule.where
    if origin.kind is Kind.UNDESCRIBED:
        return ""
    if where.owner and not _any(where.owner, origin.owner or ""):
        return f"its owner is {origin.owner or 'not known'}"
    places = [place for place in (origin.location, origin.canonical) if place]
    if where.location and not any(_any(where.location, place) for place in places):
        return f"it is at {origin.location or 'no location'}"
    for key, pattern in where.properties:
        if not _holds(pattern, origin.properties.get(key)):
            return f"its property {key} is {origin.properties.get(key, '(not set)')}"
    return ""


def _holds(pattern: str, value: str | None) -> bool:
    # "!" lets through what does not match, and what has no such property.
    if pattern.startswith("!"):
        return value is None or not matches(pattern.removeprefix("!"), value)
    return value is not None and matches(pattern, value)


def _any(patterns: Iterable[str], text: str) -> bool:
    return any(matches(pattern, text) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)
