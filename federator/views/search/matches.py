"""Why a table matches a query: the fields that contain its terms, and where in them.

Ranges count Unicode characters of the text that is returned with them. A long text is returned as the excerpt around its first match.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from federator.model import Path, parse_path_key, path_key
from federator.model.identifiers import DELIMITER
from federator.runtime.redaction import is_secret_key, mask_url_secrets
from federator.store import lexemes
from federator.views.search.globs import Range, mark_glob, mark_path_glob, mark_substring
from federator.views.search.query import WORD_FIELDS, Corrections, Query
from federator.views.search.terms import Term, has_wildcard

#: the most parts of one match, and the most characters of one text
MAX_PARTS, MAX_TEXT = 12, 160
_LEAD = 40
_CUT = "…"

FieldName = Literal["name", "namespace", "column", "property", "doc", "owner", "location"]
MatchKind = Literal["name", "word", "prefix", "typo"]
_ANY = frozenset(["name", "namespace", "column", "property", "doc", "owner", "location"])
_NAMES = frozenset(["name", "namespace", "column"])


@dataclass(frozen=True, slots=True)
class MatchedPart:
    """A field of a table that contains a term of the query."""

    field: FieldName
    text: Annotated[str, Field(examples=["orders_2024"], description="the text, or an excerpt of it")]
    ranges: Annotated[
        list[Range], Field(examples=[[(0, 6)]], description="start and end of each match in `text`, in Unicode characters")
    ]
    key: Annotated[str | None, Field(description="key of a property; object id of a namespace; null: another field")] = None


@dataclass(frozen=True, slots=True)
class Match:
    """Why a table was found."""

    kind: Annotated[
        MatchKind,
        Field(
            description="`name`: by its complete name; `word`: by complete words; `prefix`: the last word is the start of a word; "
            "`typo`: words of names resemble words that no table has"
        ),
    ]
    parts: Annotated[list[MatchedPart], Field(description="the fields with the terms, at most 12")]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words, and the starts of words, that a term looks for in some fields."""

    fields: frozenset[str]
    complete: frozenset[str]
    prefixes: tuple[str, ...] = ()

    def mark(self, text: str) -> list[Range]:
        joined = _join_words(text)
        # Every word of a text is a part of its words without separators, so most texts are left at once.
        if not any(part in joined for part in self.prefixes) and not any(part in joined for part in self.complete):
            return []
        ranges = list(self._mark_words(text))
        if not ranges and (joined in self.complete or any(map(joined.startswith, self.prefixes))):
            spans = list(lexemes.iter_word_spans(text))
            return [(spans[0][0], spans[-1][1])]
        return ranges

    def _mark_words(self, text: str) -> Iterator[Range]:
        for start, end, word in lexemes.iter_word_spans(text):
            span = self._mark_word(start, end, word)
            if span is not None:
                yield span
            elif not text[start:end].islower():
                yield from filter(None, (self._mark_word(*part) for part in lexemes.iter_camel_spans(text, start, end)))

    def _mark_word(self, start: int, end: int, folded: str) -> Range | None:
        if folded in self.complete:
            return start, end
        for prefix in self.prefixes:
            if folded.startswith(prefix):
                # Folding may have changed the number of characters.
                return start, start + len(prefix) if len(folded) == end - start else end
        return None


class Matcher:
    """Finds the terms of a query in the row of a table.

    ``complete_last``: the last word is the start of a word. ``corrections`` stand for words with typos.
    """

    def __init__(self, query: Query, *, complete_last: bool = False, corrections: Corrections | None = None) -> None:
        self._terms = [term for term in query.terms if not term.negated]
        self._words = [
            _make_words(term, prefix=complete_last and term is query.terms[-1], corrections=corrections or {})
            for term in self._terms
            if term.field in WORD_FIELDS
        ]

    def match(self, row: Mapping[str, Any], kind: MatchKind) -> Match:
        """Return why the row of a table matches."""
        path = (row["source"], *parse_path_key(row["path"]))
        by_level = self._mark_path(path)
        parts = []
        for level, name in reversed(list(enumerate(path))):
            field: FieldName = "name" if level == len(path) - 1 else "namespace"
            ranges = self._mark(field, name) + by_level.get(level, [])
            parts.append(_make_part(field, name, ranges, None if field == "name" else path_key(path[: level + 1])))
        parts += self._match_fields(row)
        return Match(kind, [part for part in parts if part is not None][:MAX_PARTS])

    def _match_fields(self, row: Mapping[str, Any]) -> Iterator[MatchedPart | None]:
        for column in json.loads(row["schema"] or "[]"):
            name = str(column.get("name", ""))
            yield _make_part("column", name, self._mark("column", name))
        for key, value in json.loads(row["properties"] or "{}").items():
            yield self._match_property(key, "" if is_secret_key(key) else mask_url_secrets(str(value)))
        doc, owner, location = (row[name] and mask_url_secrets(row[name]) for name in ("doc", "owner", "location"))
        if doc:
            yield _make_part("doc", doc, self._mark("doc", doc))
        if owner:
            yield _make_part("owner", owner, self._mark("owner", owner))
        if location:
            globs = [term.value.rstrip("*") for term in self._terms if term.field == "location"]
            marked = [span for glob in globs for span in mark_substring(glob, location) or []]
            yield _make_part("location", location, self._mark("location", location) + marked)

    def _match_property(self, key: str, value: str) -> MatchedPart | None:
        ranges = self._mark("property", value)
        named = False
        for term in self._terms:
            wanted, equals, pattern = term.value.partition("=")
            if term.field != "property":
                continue
            prefix = lexemes.fold_text(pattern.removesuffix("*"))
            if lexemes.fold_text(wanted) == lexemes.fold_text(key) and (
                not equals or lexemes.fold_text(value).startswith(prefix)
            ):
                named = True
                ranges += [(0, min(len(prefix), len(value)))] if prefix else []
            elif not equals:
                ranges += _make_words(term, prefix=False, corrections={}).mark(value)
        return _make_part("property", value, ranges, key, named=named)

    def _mark(self, field: str, text: str) -> list[Range]:
        return [span for words in self._words if field in words.fields for span in words.mark(text)]

    def _mark_path(self, path: Path) -> dict[int, list[Range]]:
        """Return what the globs match, by level."""
        by_level: dict[int, list[Range]] = {}
        keys = [path_key((name,)) for name in path]
        for term in self._terms:
            wild = has_wildcard(term.value)
            if term.field == "source":
                by_level.setdefault(0, []).extend(mark_glob(term.value, path[0]) or [])
            elif term.field in (None, "name") and wild and (term.field or "$" not in term.value):
                by_level.setdefault(len(path) - 1, []).extend(mark_glob(term.value, path[-1]) or [])
            elif (term.field is None and wild) or (term.field == "namespace" and (wild or "$" in term.value)):
                levels = keys if term.field is None else keys[:-1]
                spans = mark_path_glob(term.value, DELIMITER.join(levels)) or []
                for level, span in _split_by_level(levels, spans):
                    # An escaped name differs from its key, so the whole of it is marked.
                    by_level.setdefault(level, []).append(span if levels[level] == path[level] else (0, len(path[level])))
        return by_level


# The names of namespaces, columns and owners recur from table to table.
@lru_cache(maxsize=8_192)
def _join_words(text: str) -> str:
    return "".join(lexemes.split_words(text))


def _make_words(term: Term, *, prefix: bool, corrections: Corrections) -> _Words:
    fields = _ANY if term.field is None else frozenset([term.field])
    value = term.value.removesuffix("*")
    if has_wildcard(value) or ("$" in value and has_wildcard(term.value)):
        return _Words(fields, frozenset())
    splits = [
        tuple(lexemes.split_words(value)),
        tuple(lexemes.split_camel_case(value)),
        tuple(filter(None, (lexemes.join_words(value),))),
    ]
    if corrections and corrections.keys() & splits[0]:
        corrected = (word for part in splits[0] for word in corrections.get(part, (part,)))
        return _Words(fields & _NAMES, frozenset(corrected))
    if not prefix and value == term.value:
        return _Words(fields, frozenset(word for words in splits for word in words))
    ends = tuple(dict.fromkeys(words[-1] for words in splits if words))
    return _Words(fields, frozenset(word for words in splits for word in words[:-1]), ends)


def _split_by_level(levels: list[str], spans: list[Range]) -> Iterator[tuple[int, Range]]:
    begin = 0
    for level, key in enumerate(levels):
        for start, end in spans:
            first, last = max(start, begin) - begin, min(end, begin + len(key)) - begin
            if first < last:
                yield level, (first, last)
        begin += len(key) + 1


def _make_part(
    field: FieldName, text: str, ranges: list[Range], key: str | None = None, *, named: bool = False
) -> MatchedPart | None:
    if not ranges and not named:
        return None
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    if len(text) <= MAX_TEXT or field in ("name", "namespace", "location"):
        return MatchedPart(field, text, merged, key)
    begin = max(0, merged[0][0] - _LEAD) if merged else 0
    lead = _CUT if begin else ""
    end = begin + MAX_TEXT
    shifted = [
        (max(start, begin) - begin + len(lead), min(last, end) - begin + len(lead)) for start, last in merged if start < end
    ]
    return MatchedPart(field, f"{lead}{text[begin:end]}{_CUT if end < len(text) else ''}", shifted, key)
