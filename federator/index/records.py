"""Reading records: the current state through the index over open rows, any past state through the intervals.

A source's state at revision P is every row with ``valid_from <= P`` that was not closed by P. While the next revision is being
written, some rows are closed by it already: they are found by a second branch, which reads the few rows closed after P. Both
branches are index look-ups, so the current state costs the same after a thousand revisions as after one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    RowMapping,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
)

from federator.index import tables as t
from federator.index import visible
from federator.index.bulk import chunks
from federator.index.prepared import built_once
from federator.model import path_key
from federator.model.identifiers import Path
from federator.model.scopes import EVERYTHING, Scopes

r = t.record.c
_PUBLISHED = select(t.source.c.revision).where(t.source.c.name == bindparam("source"))


def published(connection: Connection, source: str) -> int:
    """The source's published revision; 0 before the first crawl."""
    return connection.execute(_PUBLISHED, {"source": source}).scalar() or 0


def at_revision(source: str, revision: int, *conditions: ColumnElement[bool], columns: Sequence[Any] = ()) -> Select[Any]:
    """Rows of ``record`` as of a revision, as one selectable with the columns of the table (or ``columns``)."""
    wanted = list(columns) or list(t.record.columns)
    # "+ 0" keeps planners from reading history by the revisions' index: nearly every row there ever was satisfies the bound.
    scope = and_(r.source == source, r.valid_from + 0 <= revision, *conditions)
    state = union_all(
        select(*wanted).where(scope, r.valid_to.is_(None)), select(*wanted).where(scope, r.valid_to > revision)
    ).subquery("state")
    return select(state)


def children(
    connection: Connection, source: str, namespace: Path, *, after: str = "", limit: int = 1000, revision: int | None = None,
    scopes: Scopes = EVERYTHING,
) -> list[RowMapping]:  # fmt: skip
    """A namespace's child namespaces and tables, by path; keyset paging with ``after`` = the last path. Of each what an entry of the
    tree shows, with ``verified``: the state that verification found.

    Those that a scope covers, and the namespaces on the way to what it does.
    """
    at = published(connection, source) if revision is None else revision
    wanted = {"source": source, "parent": path_key(namespace), "after": after, "at": at, "limit": limit}
    return list(connection.execute(_children(connection, scopes), wanted).mappings())


@built_once
def _children(connection: Connection, scopes: Scopes) -> Select[Any]:
    """Each branch is a walk along an index, so that a page costs what it shows."""
    at, limit = bindparam("at", type_=Integer), bindparam("limit", type_=Integer)
    shown = visible.shown(connection, scopes, r.source, r.path, r.is_table)
    mine = and_(r.source == bindparam("source"), r.parent == bindparam("parent"), r.path > bindparam("after"), r.path != "")
    columns = (r.path, r.is_table, r.name, r.kind, r.location, r.canonical, r.problem)
    base = select(*columns).where(mine, r.valid_from + 0 <= at, shown).order_by(r.path, r.is_table).limit(limit)
    branches = (base.where(r.valid_to.is_(None)).subquery(), base.where(r.valid_to > at).subquery())
    both = union_all(*(select(branch) for branch in branches)).subquery()
    page = select(both).order_by(both.c.path, both.c.is_table).limit(limit).subquery()
    verified = select(page, t.dataset.c.state.label("verified"))
    joined = verified.join(t.dataset, t.dataset.c.canonical == page.c.canonical, isouter=True)
    return joined.order_by(page.c.path, page.c.is_table)


def get(connection: Connection, source: str, path: Path, *, is_table: bool, revision: int | None = None) -> RowMapping | None:
    """One record's row, or None."""
    at = published(connection, source) if revision is None else revision
    wanted = {"source": source, "path": path_key(path), "is_table": int(is_table), "at": at}
    return connection.execute(_one(connection), wanted).mappings().first()


@built_once
def _one(_: Connection) -> Select[Any]:
    at = bindparam("at", type_=Integer)
    mine = and_(r.source == bindparam("source"), r.path == bindparam("path"), r.is_table == bindparam("is_table"))
    base = select(t.record).where(mine, r.valid_from + 0 <= at)
    return select(union_all(base.where(r.valid_to.is_(None)), base.where(r.valid_to > at)).subquery())


def subtree(
    connection: Connection, source: str, *, is_table: bool | None = None, revision: int | None = None
) -> Iterator[RowMapping]:
    """Every record of a source, by path, streamed."""
    at = published(connection, source) if revision is None else revision
    conditions = [] if is_table is None else [r.is_table == int(is_table)]
    state = at_revision(source, at, *conditions).subquery()
    query = select(state).order_by(state.c.path, state.c.is_table).execution_options(yield_per=5000)
    yield from connection.execute(query).mappings()


def declarations(
    connection: Connection, canonical: str, *, sources: Sequence[str], scopes: Scopes = EVERYTHING
) -> list[RowMapping]:
    """Every current declaration of one Dataset that a scope covers, by source and path."""
    found = connection.execute(_declarations(connection, scopes), {"place": canonical, "sources": list(sources)}).mappings()
    return sorted(found, key=lambda row: (row["source"], row["path"]))


@built_once
def _declarations(connection: Connection, scopes: Scopes) -> Select[Any]:
    s = t.source.c
    seen = visible.inside(connection, scopes, r.source, r.path)
    named = s.name.in_(bindparam("sources", expanding=True))
    scope = and_(r.canonical == bindparam("place"), named, r.valid_from + 0 <= s.revision, seen)
    base = select(r.source, r.path).where(scope)
    # The place leads to few rows, the source to all of its own. SQLite has no statistics that say so: it is left no other way.
    there = base.where(r.valid_to.is_(None), r.is_table + 0 == 1, s.name == r.source.concat(""))
    pending = base.where(r.valid_to > s.revision, r.is_table == 1, s.name == r.source)
    return select(union_all(there, pending).subquery())


def counts(connection: Connection, source: str, scopes: Scopes = EVERYTHING) -> tuple[int, int]:
    """How many namespaces and tables a source has now, of those that a scope covers."""
    seen = visible.inside(connection, scopes, r.source, r.path)
    state = at_revision(source, published(connection, source), seen, columns=[r.is_table]).subquery()
    rows = connection.execute(select(state.c.is_table, func.count(literal_column("*"))).group_by(state.c.is_table)).all()
    by_kind = {int(is_table): int(count) for is_table, count in rows}
    return by_kind.get(0, 0), by_kind.get(1, 0)


def namespaces(connection: Connection, source: str) -> set[str]:
    """Text forms of every namespace that a source has now."""
    state = at_revision(source, published(connection, source), r.is_table == 0, columns=[r.path])
    return set(connection.execute(state).scalars())


def canonicals(connection: Connection, source: str) -> Iterator[tuple[str, str | None]]:
    """Path and canonical location of every table that a source has now, streamed."""
    state = at_revision(source, published(connection, source), r.is_table == 1, columns=[r.path, r.canonical])
    for row in connection.execute(state.execution_options(yield_per=5000)):
        yield row.path, row.canonical


def paths_at(connection: Connection, source: str, canonicals: Sequence[str]) -> dict[str, list[str]]:
    """A source's tables at some locations: paths by canonical location."""
    found: dict[str, list[str]] = {}
    at = published(connection, source)
    for part in chunks(canonicals):
        wanted = r.canonical.in_(part)
        for path, canonical in connection.execute(
            at_revision(source, at, wanted, r.is_table == 1, columns=[r.path, r.canonical])
        ):
            found.setdefault(canonical, []).append(path)
    return found
