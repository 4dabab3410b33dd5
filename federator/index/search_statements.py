"""The statements of the search, each put together once: what matches, a page of it in order, and how it is spread.

What leads from words to tables gives them in no order that anybody asked for. So candidates are taken first, up to ``most`` of them,
and only these are put in order. PostgreSQL looks up every table that has a word before it gives the first one: where a word is
frequent, a walk in order past all tables fills a page sooner.
"""

from __future__ import annotations

from typing import Any, Literal

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
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    tuple_,
)

from federator.index import inverted
from federator.index import tables as t
from federator.index.looks import UNVERIFIED
from federator.index.prepared import built_once
from federator.index.query import Filter
from federator.index.visible import inside
from federator.model.scopes import Scopes

#: a filter without its value, which is the bind parameter ``filter0`` for the first
Form = tuple[str, Literal["like", "is", "is not opened"]]

_SETTINGS = {
    "plan_cache_mode": "force_custom_plan", "jit": "off", "max_parallel_workers_per_gather": "0", "enable_seqscan": "off",
    "enable_hashjoin": "off", "enable_mergejoin": "off",
}  # fmt: skip
_FOLLOWING = select(*(func.set_config(name, value, True) for name, value in _SETTINGS.items()))

e, r, s, d = t.search_entry.c, t.record.c, t.source.c, t.dataset.c


def form(wanted: Filter) -> Form:
    """What of a filter the statement depends on."""
    if wanted.column == "state" and wanted.value == UNVERIFIED:
        return (wanted.column, "is not opened")
    return (wanted.column, wanted.how)


def follow_the_words(connection: Connection) -> None:
    """For the transaction: from the words to the rows, and from each row to its record. PostgreSQL's planner takes many words at once
    to be far more common than they are, and walks past a million tables to find none."""
    if connection.dialect.name == "postgresql":
        connection.execute(_FOLLOWING)


@built_once
def page(connection: Connection, scopes: Scopes, forms: tuple[Form, ...], *, words: bool, facets: bool = False) -> Select[Any]:
    """Entries after (``source``, ``path``), at most ``limit``: with what is shown of them, whether their record is ``published``, and
    out of how many ``candidates`` after (``begin_source``, ``begin_path``). Without ``words`` to go by they are read in order, and
    ``candidates`` is null.

    With ``facets`` the first row also says how all candidates are spread (without words, ``counted`` matches), and how many ``matches``
    that are; where the page is empty there is one row without a table.
    """
    found = _matching(connection, scopes, forms, (e.id, e.source, e.path), words=words)
    if words:
        # What leads to the tables are the words, and never their order.
        after_begin = _after(e.source.concat(""), e.path, "begin_")
        taken = found.where(after_begin).limit(bindparam("most", type_=Integer)).cte("taken")
        listed = select(taken, func.count().over().label("candidates")).subquery()
        place = (listed.c.source, listed.c.path)
        first = _first(select(listed).where(_after(*place)), *place)
    else:
        taken = found.limit(bindparam("counted", type_=Integer)).cte("taken")
        first = _first(found.add_columns(null().label("candidates")).where(_after(e.source, e.path)), e.source, e.path)
    rows = _shown(connection, first)
    return _with_facets(connection, rows, taken) if facets else rows


@built_once
def walk(connection: Connection) -> Select[Any]:
    """``page`` by words alone for who sees everything, of what is published among the next ``walked`` entries."""
    following = select(t.search_entry).where(_after(e.source, e.path)).order_by(e.source, e.path)
    passed = following.limit(bindparam("walked", type_=Integer)).subquery()
    # Asked of each table that has the words, and of no more than fill the page.
    published = select(_published()).select_from(t.record.join(t.source, _source_of(connection))).where(r.id == passed.c.id)
    found = select(passed.c.id, passed.c.source, passed.c.path, null().label("candidates"))
    said = inverted.said(connection, passed.c.words)
    return _shown(connection, _first(found.where(said, published.scalar_subquery()), passed.c.source, passed.c.path))


@built_once
def sample(connection: Connection) -> Select[Any]:
    """``facets`` and ``matches`` as of ``page``, over ``percent`` of PostgreSQL's entries: the same ones each time."""
    part = t.search_entry.tablesample(func.system(bindparam("percent", type_=Float)), seed=literal_column("0"))
    return select(*_counts(connection, select(part.c.id).where(inverted.said(connection, part.c.words)).cte("taken")))


def _after(source: ColumnElement[str], path: ColumnElement[str], which: str = "") -> ColumnElement[bool]:
    return tuple_(source, path) > tuple_(bindparam(f"{which}source", type_=Text), bindparam(f"{which}path", type_=Text))


def _first(entries: Select[Any], *place: ColumnElement[str]) -> Subquery:
    return entries.order_by(*place).limit(bindparam("limit", type_=Integer)).subquery()


def _shown(connection: Connection, first: Subquery) -> Select[Any]:
    f = first.c
    shown = (f.source, f.path, f.candidates, r.name, r.kind, r.location, r.problem, d.state.label("verified"))
    # By outer joins: what is not published, or not there any more, is told apart from the end of the page.
    joined = first.outerjoin(t.record, r.id == f.id).outerjoin(t.source, _source_of(connection))
    joined = joined.outerjoin(t.dataset, d.canonical == r.canonical)
    return select(*shown, _published().label("published")).select_from(joined).order_by(f.source, f.path)


def _with_facets(connection: Connection, rows: Select[Any], taken: FromClause) -> Select[Any]:
    of_all, page = select(*_counts(connection, taken)).subquery(), rows.subquery()
    place = (page.c.source, page.c.path)
    # It is long: once is enough.
    spread = case((func.row_number().over(order_by=place) == 1, of_all.c.facets)).label("facets")
    both = of_all.outerjoin(page, true())
    return select(spread, of_all.c.matches, page).select_from(both).order_by(*place)


def _counts(connection: Connection, taken: FromClause) -> tuple[ColumnElement[Any], ...]:
    spread, matches = _spread(connection, taken).scalar_subquery(), select(func.count()).select_from(taken).scalar_subquery()
    return (spread.label("facets"), matches.label("matches"))


def _spread(connection: Connection, taken: FromClause) -> Select[Any]:
    """How many of the entries are published and have which source, namespace, state and owner together, as JSON."""
    found = taken.join(t.record, r.id == taken.c.id).join(t.source, _source_of(connection))
    kinds = (r.source, _namespace().label("namespace"), func.coalesce(d.state, UNVERIFIED).label("state"), r.owner)
    counted = select(*kinds, func.count().label("n")).select_from(found.outerjoin(t.dataset, d.canonical == r.canonical))
    groups = counted.where(_published()).group_by(r.source, r.parent, d.state, r.owner).subquery()
    if connection.dialect.name == "sqlite":
        return select(func.json_group_array(func.json_array(*groups.c)))
    return select(func.coalesce(cast(func.json_agg(func.json_build_array(*groups.c)), Text), "[]"))


def _matching(
    connection: Connection, scopes: Scopes, forms: tuple[Form, ...], columns: tuple[Any, ...], *, words: bool
) -> Select[Any]:
    joined: Any = inverted.entries(connection) if words else t.search_entry
    conditions = [inside(connection, scopes, e.source, e.path)]
    if words:
        conditions.append(inverted.said(connection, e.words))
    if any(column not in ("source", "path") for column, _ in forms):
        joined = joined.join(t.record, r.id == e.id)
    conditions += [_condition(connection, wanted, f"filter{number}") for number, wanted in enumerate(forms)]
    return select(*columns).select_from(joined).where(*conditions)


def _source_of(connection: Connection) -> ColumnElement[bool]:
    # The source's row is looked up from the record's, and never the records from the source's.
    return s.name == (r.source.concat("") if connection.dialect.name == "sqlite" else r.source)


def _published() -> ColumnElement[bool]:
    return and_(r.valid_from <= s.revision, or_(r.valid_to.is_(None), r.valid_to > s.revision))


def _condition(connection: Connection, wanted: Form, name: str) -> ColumnElement[bool]:
    column, how = wanted
    value = bindparam(name, type_=Text)
    if column == "state":
        opened = exists().where(d.canonical == r.canonical)
        return opened.where(d.state == value) if how == "is" else ~opened
    if how == "is":
        return e.source == value
    lower = func.unicode_lower if connection.dialect.name == "sqlite" else func.lower
    pattern = lower(value)
    if column in ("name", "location", "source"):
        return lower({"name": r.name, "location": r.location, "source": e.source}[column]).like(pattern, escape="\\")
    whole = lower(e.source.concat("$").concat(e.path) if column == "path" else _namespace())
    # Matched from the root, or from any level on.
    return or_(whole.like(pattern, escape="\\"), whole.like(literal("%$").concat(pattern), escape="\\"))


def _namespace() -> ColumnElement[str]:
    return case((r.parent == "", r.source), else_=r.source.concat("$").concat(r.parent))
