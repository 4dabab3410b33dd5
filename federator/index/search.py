"""The search over all tables: one interface over FTS5 and PostgreSQL's tsvector, with the same answers.

Which tables match is decided by lexemes of our own (``words.py``) and by what is compared in the rows; the databases only keep the
inverted index. The order is ours too: tables whose whole name was given, then those with a word in their names, then the rest, each by
source and path. What the scopes do not cover is neither found nor counted.

Of more than ``CANDIDATES`` that match equally well, so many are put in order and shown, and the answer says so.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from federator.connector import InvalidInput
from federator.index import inverted
from federator.index import search_statements as statements
from federator.index.engine import Index
from federator.index.query import Expression, Query, parse
from federator.index.tree import Node
from federator.model import Kind, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes

#: tables of one rank that are put in order; matches after which facets count no further rank (no more than that); values of one facet
CANDIDATES, COUNTED, VALUES = 2_000, 2_000, 20
FACETS = ("source", "namespace", "state", "owner")


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

    ``capped``: more tables match equally well than are put in order; what is on no page is found by a search that says more.
    """

    nodes: list[Node]
    next: str | None
    facets: Facets | None = None
    capped: bool = False


@dataclass(frozen=True, slots=True)
class _Asking:
    """A query with what it is asked over."""

    connection: Connection
    query: Query
    scopes: Scopes
    most: int

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
    asking = _Asking(connection, query, scopes, max(CANDIDATES, limit))
    if asking.words:
        statements.follow_the_words(connection)
    counted = _Counted() if facets else None
    found: list[tuple[int, Any]] = []
    # Each table is shown in its best rank. A rank that has none need not be left out of the next ones.
    without: list[int] = []
    for number in range(query.ranks):
        room = limit + 1 - len(found) if number >= rank else 0
        if not room and (counted is None or counted.full):
            without.append(number)
            continue
        begin = last if number == rank else ("", "")
        rows = _ranked(asking, query.rank(number, without=without), begin, room, counted)
        found += [(number, row) for row in rows]
        if rows or not room or begin != ("", ""):
            without.append(number)
    shown = found[:limit]
    end = json.dumps([shown[-1][0], shown[-1][1]["source"], shown[-1][1]["path"]]) if len(found) > limit else None
    capped = any((row["candidates"] or 0) > asking.most for _, row in found)
    return Found([_node(row) for _, row in shown], end, counted.facets() if counted is not None else None, capped)


def _position(after: str) -> tuple[int, tuple[str, str]]:
    if not after:
        return 0, ("", "")
    try:
        rank, source, path = json.loads(after)
        return int(rank), (str(source), str(path))
    except (ValueError, TypeError):
        raise InvalidInput("the cursor is not one of ours", hint="begin again without it") from None


def _ranked(
    asking: _Asking, expression: Expression | None, last: tuple[str, str], limit: int, counted: _Counted | None
) -> list[Any]:
    """What an expression matches after the last one, in order; all of it is ``counted``, unless that is full. A table that is being
    written, or was just replaced, has an entry and is not shown: the walk goes on until there are enough without them."""
    if expression is not None and not inverted.possible(expression):
        return []
    found: list[Any] = []
    said = {"said": inverted.spoken(asking.connection, expression), "most": asking.most + 1} if expression is not None else {}
    counts = counted is not None and not counted.full
    while True:
        statement = statements.page(asking.connection, asking.scopes, asking.forms, words=asking.words, facets=counts)
        place = {"source": last[0], "path": last[1], "limit": limit, "counted": COUNTED + 1}
        rows = asking.connection.execute(statement, {**asking.values, **said, **place}).mappings().all()
        if counted is not None and counts:
            counted.add(json.loads(rows[0]["facets"]), rows[0]["matches"])
            # There is one row for the facets, also where there is no table on the page.
            rows, counts = [row for row in rows if row["source"] is not None], False
        found += [row for row in rows if row["published"]]
        if len(rows) < limit or len(found) >= limit:
            return found[:limit]
        last = (rows[-1]["source"], rows[-1]["path"])


@dataclass(slots=True)
class _Counted:
    """Matches by what they have, the best ranks first, until there are ``COUNTED``. Candidates may be more: not all are published."""

    candidates: int = 0
    total: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in FACETS})

    @property
    def full(self) -> bool:
        return self.candidates > COUNTED

    def add(self, spread: list[list[Any]], candidates: int) -> None:
        """``spread``: how many published ones have which values of ``FACETS``."""
        self.candidates += candidates
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
