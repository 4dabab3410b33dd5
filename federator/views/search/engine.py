"""Search over all tables, with equal results on SQLite (FTS5) and PostgreSQL (tsvector).

The lexemes (``store/lexemes.py``) and the row filters decide which tables match; the databases only store the inverted index. Tables
whose complete name was given come first, then tables with a word in the name, then the other tables with the words, then tables in
which the last word is the start of a word, each group by source and path. If there are none, and no visible table has some of the
words, tables are returned whose names have similar words. Tables outside the scopes are neither found nor counted, and their words
are not suggested.

If more than ``MAX_CANDIDATES`` tables match equally well, only so many are sorted for a page, and the page is marked as ``capped``. If
PostgreSQL estimates that the words are frequent, the entries are read in order instead, which leaves out nothing. Facets are then
counted in a sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Select

from federator.model import Kind, object_id
from federator.model.scopes import EVERYTHING, Scopes
from federator.runtime.redaction import known_secret_pattern
from federator.store import fulltext
from federator.store.engine import Index
from federator.store.fulltext import Expression
from federator.views.positions import parse_position
from federator.views.search import facets as facets_module
from federator.views.search import statements
from federator.views.search.corrections import (
    FEW_RESULTS,
    MAX_RETURNED,
    NearWords,
    iter_corrected_texts,
    iter_levels,
    list_correctable,
    list_unknown,
    near_words,
)  # fmt: skip
from federator.views.search.facets import FacetCounter, Facets, Total, total_of
from federator.views.search.matches import Match, Matcher, MatchKind
from federator.views.search.query import Corrections, Query, complete_query, correct_query, parse_query
from federator.views.search.sample import is_in_sample, list_ignored
from federator.views.search.vocabulary import Vocabulary, get_vocabulary, read_visible_vocabulary
from federator.views.tree import TreeNode, build_stored_facts

#: the most tables of one rank that are sorted
MAX_CANDIDATES = 1_000
#: the number of entries that are read in order to fill a page of frequent words: first a part, which shows whether the rest is worth
#: reading, then all of them
FIRST_WALK_SIZE, WALK_SIZE = 4_000, 20_000
#: the fewest matches in a sample for facets, out of at most ``WALK_SIZE`` entries
MIN_SAMPLE_MATCHES = 100
#: the most tables in a principal's scopes for which a search reads only those
MAX_VISIBLE = 20_000
#: the most visible entries whose names typos are compared with, if the scopes do not cover everything
MAX_READ = 20_000
#: ranks in cursors: tables with typos come after all ranks of the query, with one typo in each unknown word first
_TYPO_RANK = 100

#: source and path key of a table, by which the results are sorted
ResultKey = tuple[str, str]
_BEGIN = ("", "")


@dataclass(frozen=True, slots=True)
class SearchHit(TreeNode):
    """A table that matches a search."""

    match: Match = field(default_factory=lambda: Match("word", []))


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of tables, best first, and the cursor of the next page; None on the last page. ``facets`` is set if requested.

    ``capped``: more tables match equally well than were sorted, so some are left out. A more specific query finds them.
    ``did_you_mean`` are queries that find more; only a first page with few tables has them.
    """

    nodes: list[SearchHit]
    next: str | None
    facets: Facets | None = None
    capped: bool = False
    did_you_mean: tuple[str, ...] = ()
    total: Total | None = None


_EMPTY = SearchPage([], None, total=Total(0, exact=True))


@dataclass(frozen=True, slots=True)
class _SearchContext:
    """A query in its transaction. ``frequent``: many tables have its words, and no filter or scope narrows it. ``by_scope``: the
    entries in the scopes are read, instead of the index of words. ``corrections`` are those of a query with typos."""

    connection: Connection
    query: Query
    scopes: Scopes
    most: int
    frequent: bool
    by_scope: bool
    corrections: Corrections | None = None

    @property
    def words(self) -> bool:
        return self.query.expression is not None

    @property
    def forms(self) -> tuple[statements.FilterForm, ...]:
        return tuple(map(statements.filter_form, self.query.filters))

    @property
    def values(self) -> dict[str, Any]:
        filters = enumerate(zip(self.query.filters, self.forms, strict=True))
        values = {f"filter{n}": row_filter.value for n, (row_filter, (_, how, _)) in filters if how != "is not opened"}
        hidden = {statements.HIDDEN: known_secret_pattern()}
        lacking = {"lacking": self.render(self.connection, self.query.lacking)} if self.query.lacking is not None else {}
        return values | hidden | lacking

    @property
    def render(self) -> Callable[[Connection, Expression], str]:
        return fulltext.render_for_entries if self.by_scope else fulltext.render_expression


def search_tables(
    index: Index, text: str, *, scopes: Scopes = EVERYTHING, limit: int = 50, after: str = "", facets: bool = False
) -> SearchPage:
    """Return a page of the tables that match a query (syntax: ``query.py``). Raise InvalidInput if the query is invalid."""
    query = parse_query(text)
    with index.read() as connection:
        return search_in_transaction(connection, text, query, scopes=scopes, limit=limit, after=after, facets=facets)


def suggest_tables(index: Index, text: str, *, scopes: Scopes = EVERYTHING, limit: int = 8) -> list[SearchHit]:
    """Return tables for a query that a user is typing, by source and path; if there are none, tables whose names have similar words.

    Raise InvalidInput if the query is invalid.
    """
    completed = complete_query(text)
    nodes = search_tables(index, completed, scopes=scopes, limit=limit).nodes
    return nodes if nodes or completed == text else search_tables(index, text, scopes=scopes, limit=limit).nodes


def search_in_transaction(
    connection: Connection, text: str, query: Query, *, scopes: Scopes, limit: int, after: str = "", facets: bool = False
) -> SearchPage:
    """``search_tables``, within a transaction. ``query`` is the parsed text."""
    rank, position = _parse_cursor(after)
    context = _make_context(connection, query, scopes, limit)
    page = _EMPTY
    if rank < _TYPO_RANK:
        page = _read_ranks(context, limit, rank=rank, position=position, facets=facets)
        if after or len(page.nodes) >= FEW_RESULTS or page.next or any(hit.match.kind == "name" for hit in page.nodes):
            return page
    words = [word for _, word in list_correctable(query)]
    if not words:
        return page
    unknown = [] if page.nodes else list_unknown(query, partial(_exists, context))
    near = near_words(_get_vocabulary(context), unknown or words)
    if unknown:
        page = _search_with_typos(context, near, limit, rank=rank, position=position, facets=facets) or page
    if not after:
        texts = iter_corrected_texts(text, query, near, together=bool(unknown))
        better = (corrected for corrected in texts if _finds_more(context, corrected, 0 if unknown else len(page.nodes)))
        page = replace(page, did_you_mean=tuple(islice(dict.fromkeys(better), MAX_RETURNED)))
    return page


def _make_context(connection: Connection, query: Query, scopes: Scopes, limit: int) -> _SearchContext:
    if query.lacking is not None and not fulltext.can_match(query.lacking):
        query = replace(query, lacking=None)
    by_scope = (query.expression or query.lacking) is not None and _can_read_by_scope(connection, scopes)
    if query.expression is not None:
        statements.prefer_word_index(connection)
    frequent = _is_frequent(connection, query, scopes, limit)
    return _SearchContext(connection, query, scopes, max(MAX_CANDIDATES, limit), frequent, by_scope)


def _read_ranks(
    context: _SearchContext, limit: int, *, rank: int = 0, position: ResultKey = _BEGIN, facets: bool = False
) -> SearchPage:
    """Return a page of the tables of all ranks after a position in a rank."""
    query = context.query
    counted = FacetCounter() if facets else None
    ranked: list[tuple[int, Any]] = []
    # Each table belongs to its best rank. The next ranks exclude all earlier ranks, except those known to be empty.
    without: list[int] = []
    for number in range(query.rank_count):
        missing = limit + 1 - len(ranked) if number >= rank else 0
        if not missing and (counted is None or counted.full):
            without.append(number)
            continue
        begin = position if number == rank else _BEGIN
        rows = _fetch_rank(context, query.rank_expression(number, without=without), begin, missing, counted)
        ranked += [(number, row) for row in rows]
        if rows or not missing or begin != _BEGIN:
            without.append(number)
    page_rows = ranked[:limit]
    end = json.dumps([page_rows[-1][0], page_rows[-1][1]["source"], page_rows[-1][1]["path"]]) if len(ranked) > limit else None
    capped = any((row["candidates"] or 0) > context.most for _, row in ranked)
    counts = counted.facets() if counted is not None else None
    complete = end is None and not capped and not rank and position == _BEGIN
    total = Total(len(page_rows), exact=True) if complete else None
    if counts is not None:
        total = total_of(counts)
    return SearchPage(_make_hits(context, page_rows), end, counts, capped, total=total)


def _search_with_typos(
    context: _SearchContext, near: NearWords, limit: int, *, rank: int, position: ResultKey, facets: bool
) -> SearchPage | None:
    """Return a page of the tables whose names have words near the unknown words. None if there are none."""
    for level, corrections in enumerate(iter_levels(near), _TYPO_RANK):
        if level < rank:
            continue
        corrected = replace(_with_query(context, correct_query(context.query, corrections), limit), corrections=corrections)
        page = _read_ranks(corrected, limit, position=position if level == rank else _BEGIN, facets=facets)
        if page.nodes:
            # The page has one rank, 0, which is the level in the cursors of this query.
            end = json.dumps([level, *json.loads(page.next)[1:]]) if page.next is not None else None
            return replace(page, next=end)
    return None


def _exists(context: _SearchContext, expression: Expression) -> bool:
    """Return whether a visible table matches an expression."""
    # The words of the sample need no search. It has entries of all scopes.
    if context.scopes.covers_all and is_in_sample(context.connection, expression):
        return True
    query = Query((), expression, (), ())
    return bool(_fetch_candidates(replace(context, query=query, most=0), expression, _BEGIN, 1, None))


def _finds_more(context: _SearchContext, text: str, number: int) -> bool:
    """Return whether a query finds more than ``number`` tables."""
    corrected = _with_query(context, parse_query(text), number + 1)
    return len(_read_ranks(corrected, number + 1).nodes) > number


def _with_query(context: _SearchContext, query: Query, limit: int) -> _SearchContext:
    return replace(context, query=query, frequent=_is_frequent(context.connection, query, context.scopes, limit))


def _get_vocabulary(context: _SearchContext) -> Vocabulary:
    if context.scopes.covers_all:
        return get_vocabulary(context.connection)
    # The number of words that are compared and tried is limited: hidden words would displace visible ones.
    return read_visible_vocabulary(context.connection, context.scopes, MAX_READ)


def _parse_cursor(after: str) -> tuple[int, ResultKey]:
    if not after:
        return 0, _BEGIN
    rank, source, path = parse_position(after, int, str, str)
    return rank, (source, path)


def _fetch_rank(
    context: _SearchContext, expression: Expression | None, last: ResultKey, limit: int, counted: FacetCounter | None
) -> list[Any]:
    """Return the tables that an expression matches after the position ``last``, in order.

    All matches are added to ``counted``, unless it is full.
    """
    if expression is not None and not fulltext.can_match(expression):
        return []
    if counted is not None and counted.full:
        counted = None
    rows: list[Any] = []
    if context.frequent and expression is not None:
        expected = fulltext.estimate_matches(context.connection, expression)
        if counted is not None and _count_by_sample(context, expression, expected, counted):
            counted = None
        if 0 < limit <= expected.scale_to(WALK_SIZE):
            rows = _walk_in_order(context, expression, last, limit)
    if len(rows) < limit:
        # The first page and the facets are about the same tables, so one statement reads both.
        counted_with_page = counted if last == _BEGIN else None
        rows = _fetch_candidates(context, expression, last, limit, counted_with_page)
        counted = None if counted_with_page is not None else counted
    if counted is not None:
        _fetch_page(context, expression, _BEGIN, _BEGIN, 0, counted)
    return rows


def _can_read_by_scope(connection: Connection, scopes: Scopes) -> bool:
    """Return whether the entries in the scopes are few enough to be read one by one.

    The index of words also has hidden tables, so its use would show in the time of a search whether hidden tables have the words.
    """
    if scopes.covers_all:
        return False
    visible = connection.execute(statements.visible_statement(connection, scopes), {"most": MAX_VISIBLE + 1}).scalar_one()
    return int(visible) <= MAX_VISIBLE


def _is_frequent(connection: Connection, query: Query, scopes: Scopes, limit: int) -> bool:
    words = query.completed or query.expression
    if words is None or query.filters or not scopes.covers_all or not fulltext.can_match(words):
        return False
    return fulltext.estimate_matches(connection, words).scale_to(WALK_SIZE) > limit


def _fetch_candidates(
    context: _SearchContext, expression: Expression | None, begin: ResultKey, limit: int, counted: FacetCounter | None
) -> list[Any]:
    """Return published candidates, until there are ``limit`` of them or no further candidates.

    Tables of a draft revision, and tables that were just replaced, have entries but are not published.
    """
    published: list[Any] = []
    last = begin
    while True:
        rows = _fetch_page(context, expression, begin, last, limit, counted)
        published += [row for row in rows if row["published"]]
        if len(rows) < limit or len(published) >= limit:
            return published[:limit]
        last, counted = (rows[-1]["source"], rows[-1]["path"]), None


def _count_by_sample(
    context: _SearchContext, expression: Expression, expected: fulltext.Estimate, counted: FacetCounter
) -> bool:
    """Count the matches in a sample of all tables. Return False if the sample would have too few matches.

    A sample of all tables represents many matches better than the first ones that are found.
    """
    size = min(facets_module.MAX_COUNTED * expected.total / expected.matching, WALK_SIZE)
    # The factor 2: statistics assume independent words, so the real number of matches is usually higher than the estimate.
    if expected.total <= WALK_SIZE or 2 * expected.scale_to(size) < MIN_SAMPLE_MATCHES:
        return False
    values = {"expression": fulltext.render_expression(context.connection, expression), "percent": 100 * size / expected.total}
    row = context.connection.execute(statements.sample_statement(context.connection), values).one()
    if row.matches < MIN_SAMPLE_MATCHES:
        return False
    counted.add(json.loads(row.facets), row.matches, sampled=True)
    return True


def _walk_in_order(context: _SearchContext, expression: Expression, last: ResultKey, limit: int) -> list[Any]:
    """Read entries in order and return the matches. Fewer than ``limit``: the walk was given up, and more matches may exist."""
    rendered = fulltext.render_expression(context.connection, expression)
    rows: Sequence[Any] = ()
    for walked in (FIRST_WALK_SIZE, WALK_SIZE):
        rows = _execute_page(
            context, statements.walk_statement(context.connection), {"expression": rendered, "walked": walked}, last, limit
        )
        if len(rows) == limit or len(rows) * WALK_SIZE < limit * walked:
            break
    return list(rows)


def _fetch_page(
    context: _SearchContext,
    expression: Expression | None,
    begin: ResultKey,
    last: ResultKey,
    limit: int,
    counted: FacetCounter | None,
) -> Sequence[Any]:
    words = _narrow(context, expression)
    statement = statements.page_statement(
        context.connection,
        context.scopes,
        context.forms,
        words=context.words,
        lacking=context.query.lacking is not None,
        by_entry=words.by_entry,
        compared="compared" in words.values,
        facets=counted is not None,
    )
    word_values = {**words.values, "most": context.most + 1} if expression is not None else {}
    range_values = {"begin_source": begin[0], "begin_path": begin[1], "counted": facets_module.MAX_COUNTED + 1}
    rows = _execute_page(context, statement, {**context.values, **word_values, **range_values}, last, limit)
    if counted is None:
        return rows
    counted.add(json.loads(rows[0]["facets"]), rows[0]["matches"])
    # An empty page has one row without a table, for the facets.
    return [row for row in rows if row["source"] is not None]


@dataclass(frozen=True, slots=True)
class _WordCondition:
    """How the entries with the words are read: by the index of words, or one by one; and the values of the bind parameters."""

    by_entry: bool
    values: dict[str, str]


def _narrow(context: _SearchContext, expression: Expression | None) -> _WordCondition:
    """Return how the entries that match an expression are read. Frequent beginnings of words are compared with each entry."""
    connection = context.connection
    if expression is None:
        return _WordCondition(context.by_scope, {})
    if context.by_scope:
        return _WordCondition(True, {"expression": fulltext.render_for_entries(connection, expression)})
    ignored = list_ignored(connection, expression, context.most + 1)
    narrowed = fulltext.relax(expression, ignored) if ignored else expression
    if narrowed is expression or (narrowed is None and connection.dialect.name == "postgresql"):
        return _WordCondition(False, {"expression": fulltext.render_expression(connection, expression)})
    compared = fulltext.render_for_entries(connection, expression)
    if narrowed is None:
        return _WordCondition(True, {"expression": compared})
    return _WordCondition(False, {"expression": fulltext.render_expression(connection, narrowed), "compared": compared})


def _execute_page(
    context: _SearchContext, statement: Select[Any], values: dict[str, Any], last: ResultKey, limit: int
) -> Sequence[Any]:
    position = {"source": last[0], "path": last[1], "limit": limit}
    return context.connection.execute(statement, {**values, **position}).mappings().all()


def _make_hits(context: _SearchContext, ranked: Sequence[tuple[int, Any]]) -> list[SearchHit]:
    query, matchers = context.query, {}
    hits = []
    for number, row in ranked:
        kind = _match_kind(context, number)
        completes = kind == "prefix"
        if completes not in matchers:
            matchers[completes] = Matcher(query, complete_last=completes, corrections=context.corrections)
        key = object_id(row["source"], row["path"])
        match = matchers[completes].match(row, kind)
        stored = build_stored_facts(row["rows"], row["size"], row["written_at"], row["checked_at"])
        node = (key, row["name"], Kind(row["kind"]).value, row["location"], None, row["verified"], row["problem"], stored)
        hits.append(SearchHit(*node, match=match))
    return hits


def _match_kind(context: _SearchContext, number: int) -> MatchKind:
    if context.corrections:
        return "typo"
    tiers = len(context.query.tiers)
    return "name" if tiers and number == 0 else "word" if number <= tiers else "prefix"
