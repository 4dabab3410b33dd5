"""Terms of a search query: what separates them, their fields, quotation marks and negation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from federator.connector import InvalidInput
from federator.runtime.text import nearest_name
from federator.store.lexemes import split_words

#: the fields that a term may name
FIELD_NAMES = ("name", "namespace", "column", "property", "owner", "location", "source", "state")
#: the most terms of one query
MAX_TERMS = 32
_MAX_LENGTH = 10_000
_NOT = "NOT"

_TERM = re.compile(r'(?P<minus>-)?(?:(?P<field>[A-Za-z][A-Za-z_]*):)?(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))')


@dataclass(frozen=True, slots=True)
class Term:
    """A term: its field (None: any), its value, and whether tables with it are left out. ``start`` and ``end`` are its position."""

    field: str | None
    value: str
    start: int
    end: int
    quoted: bool = False
    negated: bool = False


def split_terms(text: str) -> list[Term]:
    """Return the terms of a query. Raise InvalidInput for an unknown field, and for too many terms or characters."""
    if len(text) > _MAX_LENGTH:
        raise InvalidInput(f"the query has {len(text):,} characters", hint=f"use at most {_MAX_LENGTH:,} characters")
    terms = list(_iter_terms(text.replace("\0", " ")))
    if len(terms) > MAX_TERMS:
        raise InvalidInput(f"the query has more than {MAX_TERMS} terms", hint="use fewer terms")
    return terms


def has_wildcard(value: str) -> bool:
    """Return whether a value has a wildcard, so that it is a prefix or a glob."""
    return "*" in value or "?" in value


def _iter_terms(text: str) -> Iterator[Term]:
    matches = list(_TERM.finditer(text))
    not_before: re.Match[str] | None = None
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        if match[0] == _NOT and following is not None and not_before is None:
            not_before = match
            continue
        term = _read_term(match, negated=not_before is not None)
        yield term if not_before is None else replace(term, start=not_before.start())
        not_before = None


def _read_term(match: re.Match[str], *, negated: bool) -> Term:
    field, quoted = match["field"], match["quoted"] is not None
    value = match["quoted"] if quoted else match["bare"]
    position = (match.start(), match.end())
    if field is not None and field.lower() not in FIELD_NAMES:
        if not value.startswith("/"):
            raise _unknown_field(field, match[0].removeprefix("-"))
        # The scheme of a URL.
        field, value = None, match[0]
    elif match["minus"] and (quoted or field or split_words(value) or has_wildcard(value)):
        negated = not negated
    elif match["minus"]:
        value = match[0]
    return Term(field.lower() if field else None, value, *position, quoted, negated)


def _unknown_field(field: str, term: str) -> InvalidInput:
    nearest = nearest_name(field.lower(), FIELD_NAMES)
    suggestion = f"; did you mean {nearest!r}?" if nearest else ""
    return InvalidInput(
        f"{field[:40]!r} is not a field of the search{suggestion}",
        hint=f'fields: {", ".join(FIELD_NAMES)}; to search for the text itself, quote it: "{term[:60].replace(chr(34), "")}"',
    )
