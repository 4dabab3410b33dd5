"""The search over all tables: one interface over FTS5 and PostgreSQL's tsvector, with the same answers.

Which tables match is decided by lexemes of our own (``words.py``) and by what is compared in the rows; the databases only keep the
inverted index. The order is ours too: tables whose whole name was given, then those with a word in their names, then the rest, each by
source and path. What the scopes do not cover is neither found nor counted.

Of more than ``CANDIDATES`` that match equally well, so many are put in order for a page, and the answer says so. Where PostgreSQL says
that the words are frequent, a page is found by a walk in order instead, and leaves nothing out; facets are counted in a sample of all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select

from federator.connector import InvalidInput
from federator.index import inverted
from federator.index import search_statements as statements
from federator.index.engine import Index
from federator.index.query import Expression, Query, parse
from federator.index.tree import Node
from federator.model import Kind, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes

#: tables of one rank that are put in order; matches after which facets count no further rank (no more than that); values of one facet
CANDIDATES, COUNTED, VALUES = 1_000, 1_000, 20
#: entries that are walked past, in order, to fill a page of frequent words; the first of them tell whether the rest would
FIRST_WALKED, WALKED = 4_000, 20_000
#: matches that a sample for facets must have, out of at most ``WALKED`` entries
SAMPLED = 100
FACETS = ("source", "namespace", "state", "owner")

#: a table's source and path: what it is in order by
Place = tuple[str, str]
_BEGIN = ("", "")


@dataclass(frozen=True, slots=True)
class Facets:
    """How many matches have which source, namespace (from the root), state and owner, the most frequent values first.

    Counted over ``counted`` matches; where those are not all (``exact`` is False), each count is a lower bound.
    """

    counted: int
    exact: bool
    values: dict[str, list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class Found:
    """Some tables, best first, and the cursor of the next page (None: that was all); ``facets`` where they were asked for.

    ``capped``: more tables match equally well than are put in order; what is left out is found by a search that says more.
    """

    nodes: list[Node]
    next: str | None
    facets: Facets | None = None
    capped: bool = False


@dataclass(frozen=True, slots=True)
class _Asking:
    """A query with what it is asked over. ``frequent``: many tables have its words, and nothing else narrows it."""

    connection: Connection
    query: Query
    scopes: Scopes
    most: int
    frequent: bool

    @property
    def words(self) -> bool:
        return self.query.matching is not None

    @property
    def forms(self) -> tuple[statements.Form, ...]:
        return tuple(map(statements.form, self.query.filters))

    @property
    def values(self) -> dict[str, Any]:
        wanted = zip(self.query.filters, self.forms, strict=True)
        return {f"filter{n}": given.value for n, (given, (_, how)) in enumerate(wanted) if how != "is not opened"}


def find(
    index: Index, text: str, *, scopes: Scopes = EVERYTHING, limit: int = 50, after: str = "", facets: bool = False
) -> Found:
    """Tables that match a search (``query.py`` says what it may hold). Raises InvalidInput for one that cannot be understood."""
    query = parse(text)
    with index.read() as connection:
        return read(connection, query, scopes=scopes, limit=limit, after=after, facets=facets)


def read(connection: Connection, query: Query, *, scopes: Scopes, limit: int, after: str = "", facets: bool = False) -> Found:
    """``find``, within a transaction."""
    rank, last = _position(after)
    if query.matching is not None:
        statements.follow_the_words(connection)
    asking = _Asking(connection, query, scopes, max(CANDIDATES, limit), _frequent(connection, query, scopes, limit))
    counted = _Counted() if facets else None
    found: list[tuple[int, Any]] = []
    # Each table is shown in its best rank. A rank that has none need not be left out of the next ones.
    without: list[int] = []
    for number in range(query.ranks):
        room = limit + 1 - len(found) if number >= rank else 0
        if not room and (counted is None or counted.full):
            without.append(number)
            continue
        begin = last if number == rank else _BEGIN
        rows = _ranked(asking, query.rank(number, without=without), begin, room, counted)
        found += [(number, row) for row in rows]
        if rows or not room or begin != _BEGIN:
            without.append(number)
    shown = found[:limit]
    end = json.dumps([shown[-1][0], shown[-1][1]["source"], shown[-1][1]["path"]]) if len(found) > limit else None
    capped = any((row["candidates"] or 0) > asking.most for _, row in found)
    return Found([_node(row) for _, row in shown], end, counted.facets() if counted is not None else None, capped)


def _position(after: str) -> tuple[int, Place]:
    if not after:
        return 0, _BEGIN
    try:
        rank, source, path = json.loads(after)
        return int(rank), (str(source), str(path))
    except (ValueError, TypeError):
        raise InvalidInput("the cursor is not one of ours", hint="begin again without it") from None


def _ranked(asking: _Asking, expression: Expression | None, last: Place, limit: int, counted: _Counted | None) -> list[Any]:
    """What an expression matches after the last one, in order; all of it is ``counted``, unless that is full."""
    if expression is not None and not inverted.possible(expression):
        return []
    if counted is not None and counted.full:
        counted = None
    found: list[Any] = []
    if asking.frequent and expression is not None:
        expected = inverted.estimate(asking.connection, expression)
        if counted is not None and _sampled(asking, expression, expected, counted):
            counted = None
        if 0 < limit <= expected.among(WALKED):
            found = _walked(asking, expression, last, limit)
    if len(found) < limit:
        # One visit of the inverted index for both, where they are about the same tables.
        both = counted if last == _BEGIN else None
        found = _listed(asking, expression, last, limit, both)
        counted = None if both is not None else counted
    if counted is not None:
        _asked(asking, expression, _BEGIN, _BEGIN, 0, counted)
    return found


def _frequent(connection: Connection, query: Query, scopes: Scopes, limit: int) -> bool:
    words = query.matching
    if words is None or query.filters or not scopes.everything or not inverted.possible(words):
        return False
    return inverted.estimate(connection, words).among(WALKED) > limit


def _listed(asking: _Asking, expression: Expression | None, begin: Place, limit: int, counted: _Counted | None) -> list[Any]:
    """A table that is being written, or was just replaced, has an entry and is not shown: it goes on until there are enough without
    them, or no candidates."""
    found: list[Any] = []
    last = begin
    while True:
        rows = _asked(asking, expression, begin, last, limit, counted)
        found += [row for row in rows if row["published"]]
        if len(rows) < limit or len(found) >= limit:
            return found[:limit]
        last, counted = (rows[-1]["source"], rows[-1]["path"]), None


def _sampled(asking: _Asking, expression: Expression, expected: inverted.Estimate, counted: _Counted) -> bool:
    """Whether what matches was counted in a sample of all tables, which tells more than the first that are found of many."""
    size = min(COUNTED * expected.every / expected.saying, WALKED)
    # Words are seldom as independent of each other as statistics take them to be: there are more.
    if expected.every <= WALKED or 2 * expected.among(size) < SAMPLED:
        return False
    values = {"said": inverted.spoken(asking.connection, expression), "percent": 100 * size / expected.every}
    row = asking.connection.execute(statements.sample(asking.connection), values).one()
    if row.matches < SAMPLED:
        return False
    counted.add(json.loads(row.facets), row.matches, sampled=True)
    return True


def _walked(asking: _Asking, expression: Expression, last: Place, limit: int) -> list[Any]:
    """Fewer than ``limit``: the walk was given up, and so many are not all."""
    said = inverted.spoken(asking.connection, expression)
    rows: Sequence[Any] = ()
    for walked in (FIRST_WALKED, WALKED):
        rows = _rows(asking, statements.walk(asking.connection), {"said": said, "walked": walked}, last, limit)
        if len(rows) == limit or len(rows) * WALKED < limit * walked:
            break
    return list(rows)


def _asked(
    asking: _Asking, expression: Expression | None, begin: Place, last: Place, limit: int, counted: _Counted | None
) -> Sequence[Any]:
    statement = statements.page(asking.connection, asking.scopes, asking.forms, words=asking.words, facets=counted is not None)
    said = {"said": inverted.spoken(asking.connection, expression), "most": asking.most + 1} if expression is not None else {}
    of = {"begin_source": begin[0], "begin_path": begin[1], "counted": COUNTED + 1}
    rows = _rows(asking, statement, {**asking.values, **said, **of}, last, limit)
    if counted is None:
        return rows
    counted.add(json.loads(rows[0]["facets"]), rows[0]["matches"])
    # There is one row for the facets, also where there is no table on the page.
    return [row for row in rows if row["source"] is not None]


def _rows(asking: _Asking, statement: Select[Any], values: dict[str, Any], last: Place, limit: int) -> Sequence[Any]:
    place = {"source": last[0], "path": last[1], "limit": limit}
    return asking.connection.execute(statement, {**values, **place}).mappings().all()


@dataclass(slots=True)
class _Counted:
    """Matches by what they have, the best ranks first, until there are ``COUNTED`` or a sample. Candidates may be more: not all are
    published."""

    candidates: int = 0
    total: int = 0
    full: bool = False
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in FACETS})

    def add(self, spread: list[list[Any]], candidates: int, *, sampled: bool = False) -> None:
        """``spread``: how many published ones have which values of ``FACETS``."""
        self.candidates += candidates
        self.full = sampled or self.candidates > COUNTED
        for *values, number in spread:
            self.total += number
            for name, value in zip(FACETS, values, strict=True):
                if value is not None:
                    self.counts[name][value] += number

    def facets(self) -> Facets:
        values = {
            name: sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:VALUES] for name, found in self.counts.items()
        }
        return Facets(self.total, not self.full, values)


def _node(row: Any) -> Node:
    key = path_key((row["source"], *parse_key(row["path"])))
    return Node(key, row["name"], Kind(row["kind"]).value, row["location"], None, row["verified"], row["problem"])
