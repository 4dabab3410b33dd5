"""The words under which a table is found: pure functions from a record's columns to lexemes, the same for every database.

A lexeme is one letter that says where the word stands, and the folded word. Names are read as people read them: ``SalesOrders_2024``
is found by ``sales``, ``orders``, ``salesorders``, ``2024`` and the whole. Lexemes hold neither a space nor ASCII punctuation, so
that no database's own parser has anything to cut.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from federator.connector.options import is_secret_key
from federator.model import parse_key

#: where a word stands: the table's name; a level above it, or its source; a column; a property's value; doc; owner; the location,
#: unless the name or a level says it already
NAME, LEVEL, COLUMN, PROPERTY, DOC, LOCATION, OWNER = "n", "s", "c", "p", "d", "l", "o"
#: the same words wherever they stand, so that asking for one of those is not to ask for seven
ANYWHERE = "a"
#: a whole name, and a whole ``key=value``
WHOLE, PAIR = "x", "k"

#: the columns of a record's row that have words, as ``lexemes`` takes them
COLUMNS = ("path", "location", "properties", "doc", "owner", "schema")

# A word of more is found by its first 64 characters; PostgreSQL takes 2046 bytes.
_LONGEST = 64
# Of one table, and as many again anywhere: its tsvector must stay below a megabyte.
_MOST = 1800
_DOC = 4000

# Letters and digits in a row, or one symbol: an emoji is a word too.
_RUN = re.compile(r"[^\W_]+|[^\x00-\x7f\s]")
_HUMP = re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# ASCII punctuation and spaces, as private characters that every parser takes for letters.
_AS_LETTERS = {code: 0xE000 + code for code in range(128) if not chr(code).isalnum()}


def fold(text: str) -> str:
    """One form for what people take to be the same: any case, and Unicode's compatible spellings."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def plain(text: str) -> str:
    """A folded text as one lexeme's body, whatever is in it."""
    return fold(text).translate(_AS_LETTERS)[:_LONGEST]


def runs(text: str) -> list[str]:
    """The folded words of a text as its separators part it; ``OrderItems`` is one."""
    return [word[:_LONGEST] for word in _RUN.findall(fold(text))]


def humps(text: str) -> list[str]:
    """The folded words of a text as its separators and capitals part it; ``OrderItems`` is two."""
    return [word[:_LONGEST] for word in _RUN.findall(fold(_HUMP.sub(" ", text)))]


def joined(text: str) -> str:
    """The folded text without its separators."""
    return "".join(_RUN.findall(fold(text)))[:_LONGEST]


@lru_cache(maxsize=65_536)
def forms(text: str) -> tuple[str, ...]:
    """Every word that a name is found by, each once."""
    parts = runs(text)
    if not text.islower():
        parts = [*parts, *humps(text)]
    if len(parts) > 1:
        parts.append(joined(text))
    return tuple(dict.fromkeys(parts))


def lexemes(
    source: str, path: str, location: str | None, properties: str, doc: str | None, owner: str | None, schema: str | None
) -> list[str]:
    """A table's lexemes, each once, from its row's columns. A secret's value is in none of them."""
    above, _, key = path.rpartition("$")
    name = key if "%" not in key else parse_key(key)[0]
    own = forms(name)
    found = dict.fromkeys([WHOLE + plain(name), *_marked(NAME, own), *_levels(source, above)])
    if location:
        base, _, last = location.rstrip("/").rpartition("/")
        found |= dict.fromkeys(_location(base, source, above))
        last = last.removesuffix(".lance")
        if last != name:
            found |= dict.fromkeys(_marked(LOCATION, (word for word in forms(last) if word not in own)))
    if owner:
        found |= dict.fromkeys(_marked(OWNER, forms(owner)))
    if properties != "{}":
        found |= dict.fromkeys(_properties(properties))
    if schema:
        found |= dict.fromkeys(_columns(schema))
    if doc:
        found |= dict.fromkeys(_marked(DOC, (word for part in doc[:_DOC].split() for word in forms(part))))
    kept = list(found) if len(found) <= _MOST else list(found)[:_MOST]
    return [*kept, *dict.fromkeys(ANYWHERE + word[1:] for word in kept if word[0] not in (WHOLE, PAIR))]


def of_row(source: str, row: Mapping[str, Any]) -> str | None:
    """The lexemes of a record's row as one text, a space between them; None where it is no table, which is not searched."""
    if not row["is_table"]:
        return None
    return " ".join(lexemes(source, *(row[name] for name in COLUMNS)))


def _marked(mark: str, words: Iterable[str]) -> Iterator[str]:
    return (mark + word for word in words)


@lru_cache(maxsize=16_384)
def _levels(source: str, above: str) -> tuple[str, ...]:
    return tuple(LEVEL + word for name in (source, *parse_key(above)) for word in forms(name))


@lru_cache(maxsize=16_384)
def _location(base: str, source: str, above: str) -> tuple[str, ...]:
    # Most locations repeat the path: what is found there already is not written twice.
    known = _levels(source, above)
    words = (word for segment in base.split("/") for word in forms(segment))
    return tuple(LOCATION + word for word in words if LEVEL + word not in known)


@lru_cache(maxsize=4096)
def _columns(schema: str) -> tuple[str, ...]:
    return tuple(COLUMN + word for column in json.loads(schema) for word in forms(str(column.get("name", ""))))


@lru_cache(maxsize=4096)
def _properties(properties: str) -> tuple[str, ...]:
    found: list[str] = []
    for key, value in json.loads(properties).items():
        secret = is_secret_key(key)
        found.append(PAIR + plain(f"{key}={'' if secret else value}"))
        if not secret:
            found += _marked(PROPERTY, (word for part in str(value)[:_DOC].split() for word in forms(part)))
    return tuple(found)
