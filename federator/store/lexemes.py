"""Lexemes of the search index, computed from a record's columns by pure functions.

The lexemes are equal for every database. A lexeme is a letter for the field of the word, followed by the folded word. Names are split
as people read them: ``sales``, ``orders``, ``salesorders``, ``2024`` and the whole name find ``SalesOrders_2024``. Lexemes contain no
spaces and no ASCII punctuation, so the parsers of the databases do not split them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

from federator.model import canonical_json, parse_path_key
from federator.runtime.redaction import has_known_secret, is_secret_key, mask_readable, mask_value

# The field of a word.
#: the table's name
NAME = "n"
#: a namespace above the table, or its source
LEVEL = "s"
#: the name of a column
COLUMN = "c"
#: the value of a property
PROPERTY = "p"
DOC = "d"
#: the location, without words that the name or a namespace already has
LOCATION = "l"
OWNER = "o"
#: every word again, for any of the seven fields, so that a query without a field needs one lexeme instead of seven
ANYWHERE = "a"
#: a complete name, and a complete ``key=value`` pair
WHOLE, PAIR = "x", "k"

#: the columns of a record's row with searchable words, in the order of the parameters of ``table_lexemes``
COLUMNS = ("path", "location", "properties", "doc", "owner", "schema")

# A longer word is found by its first 64 characters; PostgreSQL allows 2046 bytes.
_MAX_WORD_LENGTH = 64
# The most lexemes of one table, and as many again with ANYWHERE: its tsvector must stay below a megabyte.
_MAX_LEXEMES = 1800
_MAX_TEXT_LENGTH = 4000

# A word of a folded text: a run of letters and digits, or one symbol, such as an emoji.
_WORD = re.compile(r"[^\W_]+|[^\x00-\x7f\s]")
# The same in a text as it is written: a letter and its combining marks are not parted.
_UNFOLDED_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*|[^\x00-\x7f\s]")
# The position between two parts of a word in camel case: ``Order|Items``, ``HTTP|Server``.
_CAMEL_BOUNDARY = re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# ASCII punctuation and spaces as private-use characters, which every parser treats as letters.
_AS_LETTERS = {code: 0xE000 + code for code in range(128) if not chr(code).isalnum()}


def fold_text(text: str) -> str:
    """Return one form for texts that people consider equal: any case, and Unicode's compatible characters."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def fold_whole(text: str) -> str:
    """Return a folded text as the body of one lexeme, with its punctuation encoded."""
    return fold_text(text).translate(_AS_LETTERS)[:_MAX_WORD_LENGTH]


def split_words(text: str) -> list[str]:
    """Return the folded words of a text, split at separators. ``OrderItems`` is one word."""
    return [word[:_MAX_WORD_LENGTH] for word in _WORD.findall(fold_text(text))]


def iter_word_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and folded form of the words of a text as it is written, split at separators."""
    for match in _UNFOLDED_WORD.finditer(text):
        yield match.start(), match.end(), fold_text(match[0])


def iter_camel_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and folded form of the parts of the word from ``start`` to ``end``, split at capitals."""
    bounds = [start, *(match.start() + start for match in _CAMEL_BOUNDARY.finditer(text[start:end])), end]
    for first, last in pairwise(bounds):
        yield first, last, fold_text(text[first:last])


def split_camel_case(text: str) -> list[str]:
    """Return the folded words of a text, split at separators and capitals. ``OrderItems`` is two words."""
    return [word[:_MAX_WORD_LENGTH] for word in _WORD.findall(fold_text(_CAMEL_BOUNDARY.sub(" ", text)))]


def join_words(text: str) -> str:
    """Return the folded text without its separators."""
    return "".join(_WORD.findall(fold_text(text)))[:_MAX_WORD_LENGTH]


@lru_cache(maxsize=65_536)
def name_forms(text: str) -> tuple[str, ...]:
    """Return the distinct words that find a name."""
    parts = split_words(text)
    if not text.islower():
        parts = [*parts, *split_camel_case(text)]
    if len(parts) > 1:
        parts.append(join_words(text))
    return tuple(dict.fromkeys(parts))


def table_lexemes(
    source: str, path: str, location: str | None, properties: str, doc: str | None, owner: str | None, schema: str | None
) -> list[str]:
    """Return the distinct lexemes of a table from the columns of its row. They contain no secret values.

    ``path`` is a path key; ``properties`` and ``schema`` are JSON.
    """
    location, doc, owner = location and mask_readable(location), doc and mask_readable(doc), owner and mask_readable(owner)
    properties = mask_readable(properties)
    if has_known_secret(properties):
        # Within a longer text, only long secrets are masked. A short one is masked only if it is a whole value.
        properties = canonical_json({key: mask_value(str(value)) for key, value in json.loads(properties).items()})
    above, _, escaped_name = path.rpartition("$")
    name = escaped_name if "%" not in escaped_name else parse_path_key(escaped_name)[0]
    name_words = name_forms(name)
    # The lexemes of each item are distinct, and begin with other letters than those of the others.
    fields = [(WHOLE + fold_whole(name), *_add_field_prefix(NAME, name_words)), _level_lexemes(source, above)]
    if location:
        base, _, directory = location.rstrip("/").rpartition("/")
        location_lexemes = _location_lexemes(base, source, above)
        directory = directory.removesuffix(".lance")
        if directory != name:
            words = (word for word in name_forms(directory) if word not in name_words)
            location_lexemes = _distinct(chain(location_lexemes, _add_field_prefix(LOCATION, words)))
        fields.append(location_lexemes)
    if owner:
        fields.append(_add_field_prefix(OWNER, name_forms(owner)))
    if properties != "{}":
        fields.append(_property_lexemes(properties))
    if schema:
        fields.append(_column_lexemes(schema))
    # Long, and of one table only: these are not kept in the cache.
    own: tuple[str, ...] = ()
    if doc:
        own = _distinct(DOC + word for part in doc[:_MAX_TEXT_LENGTH].split() for word in name_forms(part))
    lexemes = tuple(chain(*fields, own))
    if len(lexemes) > _MAX_LEXEMES:
        lexemes = lexemes[:_MAX_LEXEMES]
        fields, own = [], lexemes
    return [*lexemes, *dict.fromkeys(chain(*map(_shared_anywhere_lexemes, fields), _anywhere_lexemes(own)))]


def row_lexemes(source: str, row: Mapping[str, Any]) -> str | None:
    """Return the lexemes of a record's row as one text, separated by spaces. None for a namespace: it is not searchable."""
    if not row["is_table"]:
        return None
    return " ".join(table_lexemes(source, *(row[name] for name in COLUMNS)))


def _distinct(lexemes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lexemes))


def _add_field_prefix(field: str, words: Iterable[str]) -> tuple[str, ...]:
    return tuple([field + word for word in words])


def _anywhere_lexemes(lexemes: tuple[str, ...]) -> tuple[str, ...]:
    return _add_field_prefix(ANYWHERE, (word[1:] for word in lexemes if word[0] not in (WHOLE, PAIR)))


# Most tables share their columns and most of their properties with others.
_shared_anywhere_lexemes = lru_cache(maxsize=4096)(_anywhere_lexemes)


@lru_cache(maxsize=16_384)
def _level_lexemes(source: str, above: str) -> tuple[str, ...]:
    return _distinct(LEVEL + word for name in (source, *parse_path_key(above)) for word in name_forms(name))


@lru_cache(maxsize=16_384)
def _location_lexemes(base: str, source: str, above: str) -> tuple[str, ...]:
    # Most locations repeat the path. Words that the path already has are left out.
    known = _level_lexemes(source, above)
    words = (word for segment in base.split("/") for word in name_forms(segment))
    return _distinct(LOCATION + word for word in words if LEVEL + word not in known)


@lru_cache(maxsize=4096)
def _column_lexemes(schema: str) -> tuple[str, ...]:
    return _distinct(COLUMN + word for column in json.loads(schema) for word in name_forms(str(column.get("name", ""))))


@lru_cache(maxsize=4096)
def _property_lexemes(properties: str) -> tuple[str, ...]:
    lexemes: list[str] = []
    for key, value in json.loads(properties).items():
        secret = is_secret_key(key)
        lexemes.append(PAIR + fold_whole(f"{key}={'' if secret else value}"))
        if not secret:
            lexemes += _add_field_prefix(
                PROPERTY, (word for part in str(value)[:_MAX_TEXT_LENGTH].split() for word in name_forms(part))
            )
    return _distinct(lexemes)
