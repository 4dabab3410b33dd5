"""The search over all tables: one interface over FTS5 and PostgreSQL's tsvector, with the same answers.

Which tables match is decided by lexemes of our own (``words.py``) and by what is compared in the rows; the databases only keep the
inverted index. The order is ours too: tables whose whole name was given, then those with a word in their names, then the rest, each by
source and path. What the scopes do not cover is neither found nor counted.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, literal, or_, select, tuple_

from federator.connector import InvalidInput
from federator.index import datasets, inverted
from federator.index import tables as t
from federator.index.engine import Index
from federator.index.query import Expression, Filter, Query, parse
from federator.index.tree import Node
from federator.index.visible import inside
from federator.model import Kind, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes

#: matches that facets are counted over, and values of one facet
COUNTED, VALUES = 10_000, 20
FACETS = ("source", "namespace", "state", "owner")

e, r, s, d = t.search_entry.c, t.record.c, t.source.c, t.dataset.c


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
    """Some tables, best first, and the cursor of the next page (None: that was all); ``facets`` where they were asked for."""

    nodes: list[Node]
    next: str | None
    facets: Facets | None = None


def find(
    index: Index, text: str, *, scopes: Scopes = EVERYTHING, limit: int = 50, after: str = "", facets: bool = False
) -> Found:
    """Tables that match a search (``query.py`` says what it may hold). Raises InvalidInput for one that cannot be understood."""
    query = parse(text)
    rank, last = _position(after)
    found: list[tuple[int, Any]] = []
    with index.read() as connection:
        if not index.sqlite:
            # A plan for any word would take a rare one for a common one.
            connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_custom_plan")
        for number, expression in enumerate(query.ranks):
            if number >= rank and len(found) <= limit:
                wanted = _page(connection, query, expression, scopes, last if number == rank else None, limit + 1 - len(found))
                found += [(number, row) for row in connection.execute(wanted).mappings()]
        verified = datasets.states(connection, [row["canonical"] for _, row in found if row["canonical"]])
        counted = _facets(connection, query, scopes) if facets else None
    shown = found[:limit]
    end = json.dumps([shown[-1][0], shown[-1][1]["source"], shown[-1][1]["path"]]) if len(found) > limit else None
    return Found([_node(row, verified) for _, row in shown], end, counted)


def _position(after: str) -> tuple[int, tuple[str, str] | None]:
    if not after:
        return 0, None
    try:
        rank, source, path = json.loads(after)
        return int(rank), (str(source), str(path))
    except (ValueError, TypeError):
        raise InvalidInput("the cursor is not one of ours", hint="begin again without it") from None


def _page(
    connection: Connection,
    query: Query,
    expression: Expression | None,
    scopes: Scopes,
    last: tuple[str, str] | None,
    limit: int,
) -> Select[Any]:
    columns = (r.source, r.path, r.name, r.kind, r.location, r.canonical, r.problem)
    wanted = _matching(connection, query, expression, scopes, columns).order_by(e.source, e.path).limit(limit)
    return wanted if last is None else wanted.where(tuple_(e.source, e.path) > tuple_(literal(last[0]), literal(last[1])))


def _matching(
    connection: Connection, query: Query, expression: Expression | None, scopes: Scopes, columns: tuple[Any, ...]
) -> Select[Any]:
    # The source's row is looked up from the record's, and never the records from the source's.
    source = s.name == (r.source.concat("") if connection.dialect.name == "sqlite" else r.source)
    published = and_(r.valid_from <= s.revision, or_(r.valid_to.is_(None), r.valid_to > s.revision))
    conditions = [published, *inverted.matches(connection, expression), inside(connection, scopes, e.source, e.path)]
    conditions += [_condition(connection, wanted) for wanted in query.filters]
    joined = t.search_entry.join(t.record, r.id == e.id).join(t.source, source)
    return select(*columns).select_from(joined).where(*conditions)


def _condition(connection: Connection, wanted: Filter) -> ColumnElement[bool]:
    if wanted.column == "state":
        opened = exists().where(d.canonical == r.canonical)
        return ~opened if wanted.value == datasets.UNVERIFIED else opened.where(d.state == wanted.value)
    if wanted.how == "is":
        return e.source == wanted.value
    lower = func.unicode_lower if connection.dialect.name == "sqlite" else func.lower
    pattern = lower(wanted.value)
    if wanted.column in ("name", "location", "source"):
        column = {"name": r.name, "location": r.location, "source": r.source}[wanted.column]
        return lower(column).like(pattern, escape="\\")
    whole = r.source.concat("$").concat(r.path)
    if wanted.column == "namespace":
        whole = _namespace()
    # Matched from the root, or from any level on.
    return or_(lower(whole).like(pattern, escape="\\"), lower(whole).like(lower("%$" + wanted.value), escape="\\"))


def _namespace() -> ColumnElement[str]:
    return case((r.parent == "", r.source), else_=r.source.concat("$").concat(r.parent))


def _facets(connection: Connection, query: Query, scopes: Scopes) -> Facets:
    columns = (
        r.source.label("source"),
        _namespace().label("namespace"),
        r.owner.label("owner"),
        r.canonical.label("canonical"),
    )
    matched = _matching(connection, query, query.matching, scopes, columns).limit(COUNTED + 1).subquery()
    m = matched.c
    state = func.coalesce(d.state, datasets.UNVERIFIED).label("state")
    kinds = (m.source, m.namespace, state, m.owner)
    grouped = select(*kinds, func.count().label("n")).select_from(matched.outerjoin(t.dataset, d.canonical == m.canonical))
    rows = connection.execute(grouped.group_by(*kinds)).mappings().all()
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for row in rows:
        for name in FACETS:
            if row[name] is not None:
                counts[name][row[name]] += row["n"]
    total = sum(row["n"] for row in rows)
    values = {name: sorted(counts[name].items(), key=lambda pair: (-pair[1], pair[0]))[:VALUES] for name in FACETS}
    return Facets(min(total, COUNTED), total <= COUNTED, values)


def _node(row: Any, verified: dict[str, Any]) -> Node:
    found = verified.get(row["canonical"]) if row["canonical"] else None
    key = path_key((row["source"], *parse_key(row["path"])))
    state = str(found["state"]) if found else None
    return Node(key, row["name"], Kind(row["kind"]).value, row["location"], None, state, row["problem"])
