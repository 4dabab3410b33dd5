"""SQL statements of the search: matches, a page of them in order, and their facets.

The full-text index returns matches in no useful order. So at most ``most`` candidates are fetched first, and only these are sorted.
PostgreSQL looks up every table with a word before it returns the first one. For a frequent word, reading all tables in order fills a
page sooner.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Integer,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    tuple_,
)

from federator.model.scopes import Scopes
from federator.runtime.redaction import MASKED_PARTS
from federator.store import fulltext
from federator.store import tables as t
from federator.store.sql import cache_statement
from federator.store.stores import has_facts
from federator.store.verifications import UNVERIFIED
from federator.store.visibility import is_covered
from federator.views.search.fields import RowFilter


class FilterForm(NamedTuple):
    """A filter without its value, which is a bind parameter: ``filter0`` for the first filter."""

    column: str
    comparison: Literal["like", "is", "is not opened"]
    negated: bool


#: bind parameter of the expression for known secrets (``redaction.known_secret_pattern``)
HIDDEN = "hidden"

_SETTINGS = {
    "plan_cache_mode": "force_custom_plan", "jit": "off", "max_parallel_workers_per_gather": "0", "enable_seqscan": "off",
    "enable_hashjoin": "off", "enable_mergejoin": "off",
}  # fmt: skip
_PLANNER_STATEMENT = select(*(func.set_config(name, value, True) for name, value in _SETTINGS.items()))

e, r, s, d = t.search_entry.c, t.record.c, t.source.c, t.dataset.c


def filter_form(row_filter: RowFilter) -> FilterForm:
    """Return the part of a filter that the statement depends on."""
    if row_filter.column == "state" and row_filter.value == UNVERIFIED:
        return FilterForm(row_filter.column, "is not opened", row_filter.negated)
    return FilterForm(row_filter.column, row_filter.operator, row_filter.negated)


def prefer_word_index(connection: Connection) -> None:
    """Make PostgreSQL's planner start from the full-text index, in this transaction.

    The planner overestimates combinations of many words, and would scan a million tables to find none.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_PLANNER_STATEMENT)


@cache_statement
def page_statement(
    connection: Connection, scopes: Scopes, forms: tuple[FilterForm, ...], *, words: bool, lacking: bool, by_entry: bool,
    compared: bool = False, facets: bool = False,
) -> Select[Any]:  # fmt: skip
    """Return the select of a page: at most ``limit`` entries after (``source``, ``path``), with the columns to display.

    ``published`` tells whether an entry's record is published. ``candidates`` is the number of candidates after (``begin_source``,
    ``begin_path``); it is null without ``words``, when entries are read in order. With ``by_entry``, the entries in the
    scopes are read, and not the index of words. With ``compared``, the index of words only narrows them, and the entries are then
    compared with the bind parameter of this name. ``lacking`` leaves out the entries that match the bind parameter of this name.

    With ``facets`` the first row has the distribution of all candidates (without words, of ``counted`` matches) and the number of
    ``matches``. An empty page has one row without a table.
    """
    matching = _select_matching(
        connection, scopes, forms, (e.id, e.source, e.path), words=words, lacking=lacking, by_entry=by_entry, compared=compared
    )
    if words:
        # The expression keeps the planner from the index by source and path: only the words may lead to the tables.
        after_begin = _after_position(e.source.concat(""), e.path, "begin_")
        candidates = matching.where(after_begin).limit(bindparam("most", type_=Integer)).cte("candidate_entries")
        listed = select(candidates, func.count().over().label("candidates")).subquery()
        position = (listed.c.source, listed.c.path)
        first = _limit_candidates(select(listed).where(_after_position(*position)), *position)
    else:
        candidates = matching.limit(bindparam("counted", type_=Integer)).cte("candidate_entries")
        first = _limit_candidates(
            matching.add_columns(null().label("candidates")).where(_after_position(e.source, e.path)), e.source, e.path
        )
    rows = _with_display_columns(connection, first)
    return _with_facets(connection, rows, candidates) if facets else rows


@cache_statement
def visible_statement(connection: Connection, scopes: Scopes) -> Select[Any]:
    """Return the select of the number of entries in the scopes, up to ``most``."""
    entries = select(e.id).where(is_covered(connection, scopes, e.source, e.path)).limit(bindparam("most", type_=Integer))
    return select(func.count()).select_from(entries.subquery())


@cache_statement
def walk_statement(connection: Connection) -> Select[Any]:
    """Return ``page_statement`` for all scopes and a query of words only, over the next ``walked`` entries in order.

    Only published entries are selected.
    """
    following = select(t.search_entry).where(_after_position(e.source, e.path)).order_by(e.source, e.path)
    passed = following.limit(bindparam("walked", type_=Integer)).subquery()
    # A scalar subquery is evaluated only for entries with the words, until the page is full.
    published = (
        select(_is_published()).select_from(t.record.join(t.source, _source_join(connection))).where(r.id == passed.c.id)
    )
    entries = select(passed.c.id, passed.c.source, passed.c.path, null().label("candidates"))
    matching = entries.where(fulltext.matches_words(connection, passed.c.words), published.scalar_subquery())
    return _with_display_columns(connection, _limit_candidates(matching, passed.c.source, passed.c.path))


@cache_statement
def sample_statement(connection: Connection) -> Select[Any]:
    """Return ``facets`` and ``matches`` of ``page_statement`` over a sample of ``percent`` of PostgreSQL's entries.

    Each execution uses the same sample.
    """
    sample = t.search_entry.tablesample(func.system(bindparam("percent", type_=Float)), seed=literal_column("0"))
    matching = select(sample.c.id).where(fulltext.matches_words(connection, sample.c.words))
    return select(*_count_columns(connection, matching.cte("candidate_entries")))


def _after_position(source: ColumnElement[str], path: ColumnElement[str], prefix: str = "") -> ColumnElement[bool]:
    return tuple_(source, path) > tuple_(bindparam(f"{prefix}source", type_=Text), bindparam(f"{prefix}path", type_=Text))


def _limit_candidates(entries: Select[Any], *position: ColumnElement[str]) -> Subquery:
    return entries.order_by(*position).limit(bindparam("limit", type_=Integer)).subquery()


def _with_display_columns(connection: Connection, first: Subquery) -> Select[Any]:
    f = first.c
    columns = (f.source, f.path, f.candidates, r.name, r.kind, r.location, r.problem, r.properties, r.doc, r.owner, r.schema,
               d.state.label("verified"), d.rows, d.size, d.changed_at.label("written_at"), d.checked_at)  # fmt: skip
    # Outer joins keep entries without a published record, so that the caller can distinguish them from the end of the page.
    joined = first.outerjoin(t.record, r.id == f.id).outerjoin(t.source, _source_join(connection))
    joined = joined.outerjoin(t.dataset, has_facts(r.source, r.canonical))
    return select(*columns, _is_published().label("published")).select_from(joined).order_by(f.source, f.path)


def _with_facets(connection: Connection, rows: Select[Any], candidates: FromClause) -> Select[Any]:
    totals, page = select(*_count_columns(connection, candidates)).subquery(), rows.subquery()
    position = (page.c.source, page.c.path)
    # The JSON of the facets may be long, so only the first row has it.
    facets = case((func.row_number().over(order_by=position) == 1, totals.c.facets)).label("facets")
    joined = totals.outerjoin(page, true())
    return select(facets, totals.c.matches, page).select_from(joined).order_by(*position)


def _count_columns(connection: Connection, candidates: FromClause) -> tuple[ColumnElement[Any], ...]:
    distribution, matches = (
        _facet_distribution(connection, candidates).scalar_subquery(),
        select(func.count()).select_from(candidates).scalar_subquery(),
    )
    return (distribution.label("facets"), matches.label("matches"))


def _facet_distribution(connection: Connection, candidates: FromClause) -> Select[Any]:
    """Return a select of JSON: the number of published entries by source, namespace, state and owner together."""
    records = candidates.join(t.record, r.id == candidates.c.id).join(t.source, _source_join(connection))
    facets = (r.source, _namespace().label("namespace"), func.coalesce(d.state, UNVERIFIED).label("state"), r.owner)
    counts = select(*facets, func.count().label("n")).select_from(
        records.outerjoin(t.dataset, has_facts(r.source, r.canonical))
    )
    groups = counts.where(_is_published()).group_by(r.source, r.parent, d.state, r.owner).subquery()
    if connection.dialect.name == "sqlite":
        return select(func.json_group_array(func.json_array(*groups.c)))
    return select(func.coalesce(cast(func.json_agg(func.json_build_array(*groups.c)), Text), "[]"))


def _select_matching(
    connection: Connection,
    scopes: Scopes,
    forms: tuple[FilterForm, ...],
    columns: tuple[Any, ...],
    *,
    words: bool,
    lacking: bool,
    by_entry: bool,
    compared: bool,
) -> Select[Any]:
    joined: Any = fulltext.search_entry_source(connection) if words and not by_entry else t.search_entry
    conditions = [is_covered(connection, scopes, e.source, e.path)]
    if words:
        matches = fulltext.matches_entry_words if by_entry else fulltext.matches_words
        conditions.append(matches(connection, e.words))
    if compared:
        conditions.append(fulltext.matches_entry_words(connection, e.words, "compared"))
    if lacking:
        conditions.append(fulltext.lacks_words(connection, e.id, e.words, by_entry=by_entry))
    if any(form.column not in ("source", "path") for form in forms):
        joined = joined.join(t.record, r.id == e.id)
    conditions += [_filter_condition(connection, form, f"filter{number}") for number, form in enumerate(forms)]
    return select(*columns).select_from(joined).where(*conditions)


def _source_join(connection: Connection) -> ColumnElement[bool]:
    # On SQLite the expression forces one direction: from a record to its source, never from a source to its records.
    return s.name == (r.source.concat("") if connection.dialect.name == "sqlite" else r.source)


def _is_published() -> ColumnElement[bool]:
    return and_(r.valid_from <= s.revision, or_(r.valid_to.is_(None), r.valid_to > s.revision))


def _filter_condition(connection: Connection, form: FilterForm, name: str) -> ColumnElement[bool]:
    condition = _positive_condition(connection, form, bindparam(name, type_=Text))
    # A table without a location matches no location, so it matches the negation of every one.
    return func.coalesce(condition, false()).is_(false()) if form.negated else condition


def _positive_condition(connection: Connection, form: FilterForm, value: ColumnElement[str]) -> ColumnElement[bool]:
    column, comparison, _ = form
    if column == "state":
        inspected = exists().where(has_facts(r.source, r.canonical))
        return inspected.where(d.state == value) if comparison == "is" else ~inspected
    if comparison == "is":
        # Besides states, only sources are compared for equality.
        return e.source == value
    lower = func.unicode_lower if connection.dialect.name == "sqlite" else func.lower
    pattern = lower(value)
    if column == "location":
        # The plain location is a part of the whole one, so most rows are left by the first comparison, which costs less.
        return and_(*(lower(text).like(pattern, escape="\\") for text in (r.location, _plain_location(connection))))
    if column in ("name", "source"):
        return lower({"name": r.name, "source": e.source}[column]).like(pattern, escape="\\")
    full_path = lower(e.source.concat("$").concat(e.path) if column == "path" else _namespace())
    # A pattern matches from the first level or from any other level on.
    return or_(full_path.like(pattern, escape="\\"), full_path.like(literal("%$").concat(pattern), escape="\\"))


def _plain_location(connection: Connection) -> ColumnElement[str]:
    """Return the location without what responses mask. If patterns found secrets, they could be guessed letter by letter."""
    if connection.dialect.name == "sqlite":
        return func.plain_location(r.location, type_=Text)
    location: ColumnElement[str] = func.regexp_replace(r.location, bindparam(HIDDEN, type_=Text), "", type_=Text)
    for part in MASKED_PARTS:
        location = func.regexp_replace(location, part, "", "i", type_=Text)
    return location


def _namespace() -> ColumnElement[str]:
    return case((r.parent == "", r.source), else_=r.source.concat("$").concat(r.parent))
