"""Selection: which origin tables a mirror mirrors, by name and by their own fields.

Names depend only on the configuration. Filters depend on fields that any user of the origin may change, so a table that no longer
passes a filter is ``unselected``, never absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from federator.model import Kind, Path, TableRecord, path_key
from federator.planning.key_types import REGEX
from federator.planning.rule import MirrorRule


def matches_pattern(pattern: str, text: str) -> bool:
    """Tell whether a pattern matches a whole text. A pattern is a glob, or a regular expression after ``re:``."""
    if pattern.startswith(REGEX):
        return _compile(pattern.removeprefix(REGEX)).fullmatch(text) is not None
    return fnmatchcase(text, pattern)


def is_selected(rule: MirrorRule, path: Path) -> bool:
    """Tell whether a mirror's ``include`` and ``exclude`` select a table's name."""
    key = path_key(path)
    return _matches_any(rule.include, key) and not _matches_any(rule.exclude, key)


def describe_failed_filter(rule: MirrorRule, origin: TableRecord) -> str:
    """Return why the mirror's filters reject a table of a selected name. Empty if they accept it.

    Filters are not applied to a table that could not be described.
    """
    where = rule.where
    if origin.kind is Kind.UNDESCRIBED:
        return ""
    if where.owner and not _matches_any(where.owner, origin.owner or ""):
        return f"its owner is {origin.owner or 'not known'}"
    locations = [location for location in (origin.location, origin.canonical) if location]
    if where.location and not any(_matches_any(where.location, location) for location in locations):
        return f"it is at {origin.location or 'no location'}"
    for key, pattern in where.properties:
        if not _filter_matches(pattern, origin.properties.get(key)):
            return f"its property {key} is {origin.properties.get(key, '(not set)')}"
    return ""


def _filter_matches(pattern: str, value: str | None) -> bool:
    # "!" accepts values that do not match, and missing values.
    if pattern.startswith("!"):
        return value is None or not matches_pattern(pattern.removeprefix("!"), value)
    return value is not None and matches_pattern(pattern, value)


def _matches_any(patterns: Iterable[str], text: str) -> bool:
    return any(matches_pattern(pattern, text) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compile(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)
