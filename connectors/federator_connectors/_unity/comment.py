"""The ownership mark in a table's comment, for servers that take no such properties.

It is the comment's last line, ``[federator instance=prod-eu mirror=... origin=... path=... op=...]``, as everywhere where a catalog
refuses properties. Records show it where it otherwise is, among the properties, so that nothing else needs to know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

_PREFIX = "federator."
_KEY = re.compile(r"federator\.[a-z]+")
# Values are percent-encoded, so that none holds a space or a bracket.
_LINE = re.compile(r"(?:\A|\n)\[federator(?P<pairs>(?: [a-z]+=[^\s\[\]]*)+)\]\Z")
_READABLE = "$:,/"


def marks_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of the properties that are the mark."""
    return {key: value for key, value in properties.items() if _KEY.fullmatch(key)}


def with_marks(doc: str | None, marks: Mapping[str, str]) -> str:
    """The comment that holds a text and the mark."""
    pairs = [f"{key.removeprefix(_PREFIX)}={quote(value, _READABLE)}" for key, value in marks.items()]
    line = f"[federator {' '.join(pairs)}]"
    return f"{doc}\n{line}" if doc else line


def without_marks(comment: str | None) -> tuple[str | None, dict[str, str]]:
    """The text and the mark of a comment; the whole comment and no mark where its last line is none."""
    found = _LINE.search(comment) if comment else None
    if comment is None or found is None:
        return comment or None, {}
    pairs = (pair.partition("=") for pair in found["pairs"].split())
    return comment[: found.start()] or None, {_PREFIX + name: unquote(value) for name, _, value in pairs}
