"""Fields of a search query: each turns the value of a term into an expression over lexemes and row filters. Pure.

If a value has a row filter, the filter decides. The expression beside it only narrows the candidates that the filter compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from federator.connector import InvalidInput
from federator.store import lexemes
from federator.store.fulltext import AllOf, AnyOf, Expression, Lexeme
from federator.store.verifications import VERIFICATION_STATES
from federator.views.search.terms import has_wildcard

#: maximum number of wildcards, and of characters, of one glob
MAX_WILDCARDS = 8
_MAX_GLOB_LENGTH = 1000

# The text from the first separator to the end, and that from the first to the last separator.
_FROM_SEPARATOR, _BETWEEN_SEPARATORS = re.compile(r"[\W_].*", re.DOTALL), re.compile(r"[\W_].*[\W_]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on a column of a row.

    The operator ``like`` compares lower-case text with a LIKE pattern, whose escape character is the backslash. ``is`` compares a
    source or a verification state for equality. A ``negated`` filter selects the other rows.
    """

    column: Literal["path", "namespace", "name", "location", "source", "state"]
    operator: Literal["like", "is"]
    value: str
    negated: bool = False


#: an expression over lexemes (None: no restriction), and the filters that each row must pass, too
Conditions = tuple[Expression | None, list[RowFilter]]


def parse_anywhere(value: str) -> Conditions:
    """Return the conditions of a term without a field. Raise InvalidInput for a glob that is too long or has too many wildcards."""
    if has_wildcard(value) and not _is_word_prefix(value):
        return _parse_path_glob(value) if "$" in value else _parse_name_glob(value)
    return words_in_field(lexemes.ANYWHERE, value), []


def _parse_name(value: str) -> Conditions:
    return _parse_name_glob(value) if has_wildcard(value) else (words_in_field(lexemes.NAME, value), [])


def _parse_namespace(value: str) -> Conditions:
    if "$" not in value and (not has_wildcard(value) or _is_word_prefix(value)):
        return words_in_field(lexemes.LEVEL, value), []
    return _literal_expression(value, (lexemes.LEVEL,), (lexemes.LEVEL,)), [
        RowFilter("namespace", "like", _to_like_pattern(value))
    ]


def _parse_property(value: str) -> Conditions:
    key, equals, pattern = value.partition("=")
    bare, prefix = pattern.removesuffix("*"), pattern.endswith("*")
    if not key or has_wildcard(key) or has_wildcard(bare):
        raise InvalidInput(
            f"property:{value[:80]}: the only allowed wildcard is * at the end",
            hint="use for example property:team=ops or property:team=o*",
        )
    if equals:
        return Lexeme(lexemes.PAIR + lexemes.fold_whole(f"{key}={bare}"), prefix), []
    return AnyOf((Lexeme(lexemes.PAIR + lexemes.fold_whole(f"{key}="), prefix=True), words_in_field(lexemes.PROPERTY, key))), []


def _parse_column(value: str) -> Conditions:
    return words_in_field(lexemes.COLUMN, _reject_glob("column", value)), []


def _parse_owner(value: str) -> Conditions:
    return words_in_field(lexemes.OWNER, _reject_glob("owner", value)), []


def _parse_location(value: str) -> Conditions:
    literal = value.rstrip("*")
    # The first and the last word of the value may be parts of longer words.
    inner = lexemes.split_words(literal)[1:-1]
    fields = (lexemes.LOCATION, lexemes.NAME, lexemes.LEVEL)
    expression = AllOf(tuple(AnyOf(tuple(Lexeme(field + word) for field in fields)) for word in inner)) if inner else None
    return expression, [RowFilter("location", "like", "%" + _to_like_pattern(literal) + "%")]


def _parse_source(value: str) -> Conditions:
    return None, [
        RowFilter("source", "like", _to_like_pattern(value)) if has_wildcard(value) else RowFilter("source", "is", value)
    ]


def _parse_state(value: str) -> Conditions:
    if value not in VERIFICATION_STATES:
        raise InvalidInput(f"{value[:40]!r} is not a verification state", hint=f"states: {', '.join(VERIFICATION_STATES)}")
    return None, [RowFilter("state", "is", value)]


#: the function for each field. It raises InvalidInput for a value that the field does not allow.
FIELDS: dict[str, Callable[[str], Conditions]] = {
    "name": _parse_name, "namespace": _parse_namespace, "property": _parse_property, "column": _parse_column,
    "location": _parse_location, "owner": _parse_owner, "source": _parse_source, "state": _parse_state,
}  # fmt: skip


def words_in_field(fields: str | Sequence[str], value: str) -> Expression:
    """Return an expression that finds the words of a value in any of ``fields`` (letters of ``lexemes``).

    The words are those of the value as it is, those split at capitals, or all of them joined to one. A trailing star makes the last
    word a prefix.
    """
    prefix = value.endswith("*")
    splits = dict.fromkeys(
        (
            tuple(lexemes.split_words(value)),
            tuple(lexemes.split_camel_case(value)),
            tuple(filter(None, (lexemes.join_words(value),))),
        )
    )
    return AnyOf(tuple(AllOf(tuple(_iter_word_expressions(fields, words, prefix))) for words in splits if words))


def _iter_word_expressions(fields: str | Sequence[str], words: Sequence[str], prefix: bool) -> Iterator[Expression]:
    for number, word in enumerate(words):
        is_incomplete = prefix and number == len(words) - 1
        yield AnyOf(tuple(Lexeme(field + word, is_incomplete) for field in fields))


def _parse_name_glob(value: str) -> Conditions:
    if _is_word_prefix(value):
        return words_in_field(lexemes.NAME, value), []
    return _literal_expression(value, (lexemes.NAME,), (lexemes.NAME,)), [RowFilter("name", "like", _to_like_pattern(value))]


def _parse_path_glob(value: str) -> Conditions:
    return _literal_expression(value, (lexemes.NAME, lexemes.LEVEL), (lexemes.NAME,)), [
        RowFilter("path", "like", _to_like_pattern(value))
    ]


def _literal_expression(glob: str, fields: Sequence[str], last_fields: Sequence[str]) -> Expression | None:
    """Return an expression for the literal parts of a glob: complete names, their prefixes and complete words in them.

    None if the glob has no such part. ``$`` separates the names of the glob. They may be in any of ``fields``; the last one, if it is
    complete, only in ``last_fields``.
    """
    levels = glob.split("$")
    parts: list[Expression] = []
    for number, level in enumerate(levels):
        first, *pieces = re.split(r"[*?]", level)
        word, is_incomplete = lexemes.join_words(first), bool(pieces)
        # The last level is the table's name, unless a star may match several levels.
        level_fields = last_fields if number == len(levels) - 1 and not is_incomplete else fields
        if word:
            parts.append(AnyOf(tuple(Lexeme(field + word, is_incomplete) for field in level_fields)))
        for position, piece in enumerate(pieces, 1):
            words = _list_complete_words(piece, is_last=position == len(pieces))
            parts += [AnyOf(tuple(Lexeme(field + complete) for field in fields)) for complete in words]
    return AllOf(tuple(parts)) if parts else None


def _list_complete_words(piece: str, *, is_last: bool) -> list[str]:
    """Return the words of the text after a wildcard that no wildcard can extend, because separators enclose them.

    ``is_last``: no other wildcard follows the text, so its end ends a word, too.
    """
    if not piece.isascii() or "%" in piece:
        return []
    bounded = (_FROM_SEPARATOR if is_last else _BETWEEN_SEPARATORS).search(piece)
    return lexemes.split_words(bounded[0]) if bounded else []


def _to_like_pattern(glob: str) -> str:
    """Return a glob as a LIKE pattern. Raise InvalidInput if it is too long or has too many wildcards."""
    if sum(map(glob.count, "*?")) > MAX_WILDCARDS or len(glob) > _MAX_GLOB_LENGTH:
        raise InvalidInput(f"the glob {glob[:40]!r} is too long or has more than {MAX_WILDCARDS} wildcards")
    escaped = re.sub(r"([\\%_])", r"\\\1", glob)
    return re.sub(r"\*+", "%", escaped).replace("?", "_")


def _is_word_prefix(value: str) -> bool:
    """Return whether a value is words of one name with a star at the end, and has no other wildcard: ``ord*``, not ``a$ord*``."""
    return value.endswith("*") and not has_wildcard(value[:-1]) and "$" not in value and bool(lexemes.split_words(value))


def _reject_glob(field: str, value: str) -> str:
    """Return the value. Raise InvalidInput if it has another wildcard than a star at its end."""
    if has_wildcard(value.removesuffix("*")):
        raise InvalidInput(
            f"{field}:{value[:80]}: the only allowed wildcard is * at the end",
            hint=f"use for example {field}:{value.split('*')[0][:40]}*",
        )
    return value
