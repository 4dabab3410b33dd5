"""What someone typed into the search, taken apart: pure, and the same for every database.

Terms are parted by spaces, and all of them must hold. A term is a word (``orders``), the beginning of one (``ord*``), a glob over names
(``*_2024``) or over paths (``sales$*``), or one of these in a field: ``name:``, ``namespace:``, ``property:key=value``, ``column:``,
``location:``, ``owner:``, ``source:``, ``state:``. Quotes hold a term with spaces together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from federator.connector import InvalidInput
from federator.index import words as w
from federator.index.datasets import STATES

#: terms of one search, and wildcards of one glob
MOST_TERMS, MOST_WILDCARDS = 32, 8
_LONGEST = 10_000

_TO_THE_END, _BETWEEN = re.compile(r"[\W_].*", re.DOTALL), re.compile(r"[\W_].*[\W_]", re.DOTALL)
_TERM = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))')


@dataclass(frozen=True, slots=True)
class Word:
    """A lexeme, or with ``prefix`` every lexeme that begins so."""

    text: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Both:
    """All of them."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of them; none: nothing."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """What the first says and the second does not."""

    wanted: Expression
    unwanted: Expression


Expression = Word | Both | Either | Without


@dataclass(frozen=True, slots=True)
class Filter:
    """What a row itself must say: ``like`` of its whole path, its namespace's, its name, its location or its source; ``is`` of the
    source or of the state that verification found. Patterns are LIKE's, with backslash, to be compared in lower case."""

    column: Literal["path", "namespace", "name", "location", "source", "state"]
    how: Literal["like", "is"]
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """``matching`` None: every table that passes the filters. ``tiers`` are the better matches, best first: the rest comes last.

    ``one_term``: the search is one term and nothing else, so that whatever has its words in the name, the last tier, matches. A whole
    name does not say that: of a long one only the beginning is compared.
    """

    matching: Expression | None
    filters: tuple[Filter, ...]
    tiers: tuple[Expression, ...]
    one_term: bool = False

    @property
    def ranks(self) -> int:
        """How many ranks there are: each table is in one of them."""
        return len(self.tiers) + 1

    def rank(self, number: int, *, without: Sequence[int]) -> Expression | None:
        """What to look for in a rank, but for what is in the ranks ``without``."""
        if self.matching is None or number == len(self.tiers):
            wanted = self.matching
        else:
            matches = self.one_term and number == len(self.tiers) - 1
            wanted = self.tiers[number] if matches else Both((self.matching, self.tiers[number]))
        return _less(wanted, [self.tiers[each] for each in without]) if wanted is not None else None


def parse(text: str) -> Query:
    """Takes a search apart. Raises InvalidInput for one that is too long, or that asks a field for what it cannot tell."""
    terms = list(_terms(text))
    matching: list[Expression] = []
    filters: list[Filter] = []
    names: list[str] = []
    for field, value in terms:
        expression, more = _FIELDS[field](value) if field else _anywhere(value)
        matching += [expression] if expression is not None else []
        filters += more
        if not field and not _wild(value):
            names.append(value)
    tiers: tuple[Expression, ...] = ()
    if names:
        tiers = (
            Either(tuple(Word(w.WHOLE + w.plain(name)) for name in names)),
            Either(tuple(_in(w.NAME, name) for name in names)),
        )
    return Query(Both(tuple(matching)) if matching else None, tuple(filters), tiers, one_term=len(terms) == 1)


def _terms(text: str) -> Iterator[tuple[str | None, str]]:
    if len(text) > _LONGEST:
        raise InvalidInput(f"a search of {len(text):,} characters", hint=f"up to {_LONGEST:,}")
    for count, found in enumerate(_TERM.finditer(text.replace("\0", " ")), 1):
        field = found["field"]
        value = found["quoted"] if found["quoted"] is not None else found["bare"]
        if field is not None and field not in _FIELDS:
            # A scheme, or a word that ends in a colon.
            field, value = None, found[0]
        if count > MOST_TERMS:
            raise InvalidInput(f"a search of more than {MOST_TERMS} words", hint="fewer find more")
        yield field, value


def _anywhere(value: str) -> tuple[Expression | None, list[Filter]]:
    if _wild(value) and not _begins(value):
        return _glob(value) if "$" in value else _name_glob(value)
    return _in(w.ANYWHERE, value), []


def _name(value: str) -> tuple[Expression | None, list[Filter]]:
    return _name_glob(value) if _wild(value) else (_in(w.NAME, value), [])


def _namespace(value: str) -> tuple[Expression | None, list[Filter]]:
    if "$" not in value and (not _wild(value) or _begins(value)):
        return _in(w.LEVEL, value), []
    return _literals(value, (w.LEVEL,), (w.LEVEL,)), [Filter("namespace", "like", _like(value))]


def _property(value: str) -> tuple[Expression | None, list[Filter]]:
    key, equals, wanted = value.partition("=")
    bare, prefix = wanted.removesuffix("*"), wanted.endswith("*")
    if not key or _wild(key) or _wild(bare):
        raise InvalidInput(
            f"property:{value[:80]}: only a last * is understood here", hint="property:team=ops, property:team=o*"
        )
    if equals:
        return Word(w.PAIR + w.plain(f"{key}={bare}"), prefix), []
    return Either((Word(w.PAIR + w.plain(f"{key}="), prefix=True), _in(w.PROPERTY, key))), []


def _column(value: str) -> tuple[Expression | None, list[Filter]]:
    return _in(w.COLUMN, _no_glob("column", value)), []


def _owner(value: str) -> tuple[Expression | None, list[Filter]]:
    return _in(w.OWNER, _no_glob("owner", value)), []


def _location(value: str) -> tuple[Expression | None, list[Filter]]:
    literal = value.rstrip("*")
    # A location is compared as it is written; its words only lead there quickly.
    inner = w.runs(literal)[1:-1]
    marks = (w.LOCATION, w.NAME, w.LEVEL)
    expression = Both(tuple(Either(tuple(Word(mark + word) for mark in marks)) for word in inner)) if inner else None
    return expression, [Filter("location", "like", "%" + _like(literal) + "%")]


def _source(value: str) -> tuple[Expression | None, list[Filter]]:
    return None, [Filter("source", "like", _like(value)) if _wild(value) else Filter("source", "is", value)]


def _state(value: str) -> tuple[Expression | None, list[Filter]]:
    if value not in STATES:
        raise InvalidInput(f"{value[:40]!r} is no state of a dataset", hint=f"states: {', '.join(STATES)}")
    return None, [Filter("state", "is", value)]


_FIELDS: dict[str, Callable[[str], tuple[Expression | None, list[Filter]]]] = {
    "name": _name, "namespace": _namespace, "property": _property, "column": _column, "location": _location, "owner": _owner,
    "source": _source, "state": _state,
}  # fmt: skip
FIELDS = tuple(_FIELDS)


def _in(marks: str | Sequence[str], value: str) -> Expression:
    """The words of a value in a field, read with its capitals, without them, or as one; a last star is a beginning."""
    prefix = value.endswith("*")
    ways = dict.fromkeys((tuple(w.runs(value)), tuple(w.humps(value)), tuple(filter(None, (w.joined(value),)))))
    return Either(tuple(Both(tuple(_each(marks, way, prefix))) for way in ways if way))


def _each(marks: str | Sequence[str], way: Sequence[str], prefix: bool) -> Iterator[Expression]:
    for number, word in enumerate(way):
        last = prefix and number == len(way) - 1
        yield Either(tuple(Word(mark + word, last) for mark in marks))


def _name_glob(value: str) -> tuple[Expression | None, list[Filter]]:
    if _begins(value):
        return _in(w.NAME, value), []
    return _literals(value, (w.NAME,), (w.NAME,)), [Filter("name", "like", _like(value))]


def _glob(value: str) -> tuple[Expression | None, list[Filter]]:
    return _literals(value, (w.NAME, w.LEVEL), (w.NAME,)), [Filter("path", "like", _like(value))]


def _literals(glob: str, marks: Sequence[str], last: Sequence[str]) -> Expression | None:
    """What a glob says of whole levels, of their beginnings and of the whole words in them: it leads to few rows, which are then
    compared with the glob itself."""
    levels = glob.split("$")
    found: list[Expression] = []
    for number, level in enumerate(levels):
        first, *pieces = re.split(r"[*?]", level)
        word, partly = w.joined(first), bool(pieces)
        # The name is the last level, unless a star may span more of them.
        where = last if number == len(levels) - 1 and not partly else marks
        if word:
            found.append(Either(tuple(Word(mark + word, partly) for mark in where)))
        for after, piece in enumerate(pieces, 1):
            whole = _whole_words(piece, ends=after == len(pieces))
            found += [Either(tuple(Word(mark + each) for mark in marks)) for each in whole]
    return Both(tuple(found)) if found else None


def _whole_words(piece: str, *, ends: bool) -> list[str]:
    """The words of what stands after a wildcard that separators part from what wildcards take; with ``ends`` no other follows."""
    if not piece.isascii() or "%" in piece:
        return []
    bounded = (_TO_THE_END if ends else _BETWEEN).search(piece)
    return w.runs(bounded[0]) if bounded else []


def _like(glob: str) -> str:
    if sum(map(glob.count, "*?")) > MOST_WILDCARDS or len(glob) > 1000:
        raise InvalidInput(f"the glob {glob[:40]!r} is too long, or has more than {MOST_WILDCARDS} wildcards")
    escaped = re.sub(r"([\\%_])", r"\\\1", glob)
    return re.sub(r"\*+", "%", escaped).replace("?", "_")


def _wild(value: str) -> bool:
    return "*" in value or "?" in value


def _begins(value: str) -> bool:
    """Whether it is the beginning of a word, and no other glob."""
    return value.endswith("*") and not _wild(value[:-1]) and "$" not in value and bool(w.runs(value))


def _no_glob(field: str, value: str) -> str:
    if _wild(value.removesuffix("*")):
        raise InvalidInput(
            f"{field}:{value[:80]}: only a last * is understood here", hint=f"{field}:{value.split('*')[0][:40]}*"
        )
    return value


def _less(wanted: Expression, unwanted: Iterable[Expression]) -> Expression:
    unwanted = tuple(unwanted)
    return Without(wanted, Either(unwanted)) if unwanted else wanted
