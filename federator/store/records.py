"""Queries of records: the current state of a source, and its past states.

The state of a source at revision P is every row with ``valid_from <= P`` that P or an earlier revision did not close. A draft revision
closes rows before it is published, so a second branch reads the few rows closed after P. Both branches are index look-ups: reading the
current state costs the same after a thousand revisions as after one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    union_all,
)

from federator.model import Kind, NamespaceRecord, Record, TableRecord, object_id, parse_path_key, path_key
from federator.model.identifiers import Path
from federator.model.rows import namespace_from_row, table_from_row
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import tables as t
from federator.store import visibility
from federator.store.sql import cache_statement, chunked, unindexed
from federator.store.stores import has_facts

r = t.record.c
s = t.source.c


@dataclass(frozen=True, slots=True)
class IndexedRecord:
    """A record of a revision, with its stored ``digest`` and ``canonical`` location (None for a namespace).

    It has this content since revision ``since_revision``.
    """

    record: Record
    digest: str
    canonical: str | None
    since_revision: int


@dataclass(frozen=True, slots=True)
class ChildEntry:
    """A namespace or a table in a listing of its parent. ``path`` is its path key, ``verified`` its verification state."""

    path: str
    is_table: bool
    name: str
    kind: Kind
    location: str | None
    canonical: str | None
    problem: str | None
    verified: str | None
    rows: int | None
    size: int | None
    written_at: float | None
    checked_at: float | None


# Orders of children besides that of their paths, with the value of those that lack one.
_LEAST_VALUES: dict[str, str | int | float] = {"state": "", "rows": 0, "size": 0, "written": 0.0}

_PUBLISHED = select(t.source.c.revision).where(t.source.c.name == bindparam("source"))


def published_revision(connection: Connection, source: str) -> int:
    """Return the published revision of a source; 0 before its first crawl."""
    return connection.execute(_PUBLISHED, {"source": source}).scalar() or 0


def select_at_revision(
    source: str, revision: int, *conditions: ColumnElement[bool], columns: Sequence[Any] = ()
) -> Select[Any]:
    """Return a select of the ``record`` rows as of a revision, with ``columns`` or all columns of the table."""
    selected = list(columns) or list(t.record.columns)
    scope = and_(r.source == source, unindexed(r.valid_from) <= revision, *conditions)
    state = union_all(
        select(*selected).where(scope, r.valid_to.is_(None)), select(*selected).where(scope, r.valid_to > revision)
    ).subquery("state")
    return select(state)


def list_children(
    connection: Connection, source: str, namespace: Path, *, after: str = "", limit: int = 1000, revision: int | None = None,
    scopes: Scopes = EVERYTHING,
) -> list[ChildEntry]:  # fmt: skip
    """List the child namespaces and tables of a namespace that ``scopes`` make visible, by path.

    ``after`` is the last path of the previous page.
    """
    revision_number = published_revision(connection, source) if revision is None else revision
    parameters = {"source": source, "parent": path_key(namespace), "after": after, "at": revision_number, "limit": limit}
    return [_child_from_row(row) for row in connection.execute(_select_children(connection, scopes), parameters)]


def list_sorted_children(
    connection: Connection, source: str, namespace: Path, order: str, *, descending: bool, after: ChildPosition | None,
    limit: int, revision: int, scopes: Scopes,
) -> list[tuple[ChildPosition, ChildEntry]]:  # fmt: skip
    """List children by ``state``, ``rows``, ``size`` or ``written``, each with its position. Those without a value come last.

    The cost of a page depends on the number of children, because what is stored has no index by namespace.
    """
    start = after if after is not None else ChildPosition(-1, _LEAST_VALUES[order], "", 0)
    parameters = {
        "source": source, "parent": path_key(namespace), "after": "", "at": revision, "limit": limit,
        "lacks": start.lacks, "value": start.value, "path": start.path, "is_table": start.is_table,
    }  # fmt: skip
    rows = connection.execute(_select_sorted_children(connection, scopes, order, descending), parameters)
    return [(ChildPosition(row.lacks, row.value, row.path, row.is_table), _child_from_row(row)) for row in rows]


@dataclass(frozen=True, slots=True)
class ChildPosition:
    """A position in a sorted listing of children. ``lacks`` is 1 for a child without a value, and -1 before the first one."""

    lacks: int
    value: str | int | float
    path: str
    is_table: int


def _child_from_row(row: Any) -> ChildEntry:
    return ChildEntry(
        row.path, bool(row.is_table), row.name, Kind(row.kind), row.location, row.canonical, row.problem, row.verified, row.rows,
        row.size, row.written_at, row.checked_at,
    )  # fmt: skip


@cache_statement
def _select_children(connection: Connection, scopes: Scopes) -> Select[Any]:
    # Each branch reads one index in order, so the cost of a page depends only on its size.
    limit = bindparam("limit", type_=Integer)
    branches = (query.order_by(r.path, r.is_table).limit(limit).subquery() for query in _select_siblings(connection, scopes))
    both = union_all(*(select(branch) for branch in branches)).subquery()
    page = select(both).order_by(both.c.path, both.c.is_table).limit(limit).subquery()
    return _with_facts(page).order_by(page.c.path, page.c.is_table)


@cache_statement
def _select_sorted_children(connection: Connection, scopes: Scopes, order: str, descending: bool) -> Select[Any]:
    siblings = _with_facts(union_all(*_select_siblings(connection, scopes)).subquery()).subquery()
    column = siblings.c[{"state": "verified", "written": "written_at"}.get(order, order)]
    lacks, value = case((column.is_(None), 1), else_=0), func.coalesce(column, _LEAST_VALUES[order])
    rows = select(siblings, lacks.label("lacks"), value.label("value")).subquery()
    at = rows.c
    beyond = at.value < bindparam("value") if descending else at.value > bindparam("value")
    following = tuple_(at.path, at.is_table) > tuple_(bindparam("path"), bindparam("is_table"))
    after = or_(beyond, and_(at.value == bindparam("value"), following))
    page = select(rows).where(or_(at.lacks > bindparam("lacks"), and_(at.lacks == bindparam("lacks"), after)))
    by_value = at.value.desc() if descending else at.value
    return page.order_by(at.lacks, by_value, at.path, at.is_table).limit(bindparam("limit", type_=Integer))


def _select_siblings(connection: Connection, scopes: Scopes) -> tuple[Select[Any], Select[Any]]:
    """Return selects of the children that a revision has: open rows, and rows that a later revision has closed."""
    at = bindparam("at", type_=Integer)
    visible = visibility.is_visible(connection, scopes, r.source, r.path, r.is_table)
    siblings = and_(r.source == bindparam("source"), r.parent == bindparam("parent"), r.path > bindparam("after"), r.path != "")
    columns = (r.path, r.is_table, r.name, r.kind, r.location, r.canonical, r.problem)
    base = select(*columns).where(siblings, unindexed(r.valid_from) <= at, visible)
    return base.where(r.valid_to.is_(None)), base.where(r.valid_to > at)


def _with_facts(children: Any) -> Select[Any]:
    """Return a select of children with what verification found at their locations."""
    d = t.dataset.c
    facts = (d.state.label("verified"), d.rows, d.size, d.changed_at.label("written_at"), d.checked_at)
    return select(children, *facts).select_from(
        children.outerjoin(t.dataset, has_facts(bindparam("source"), children.c.canonical))
    )


def find_record(
    connection: Connection, source: str, path: Path, *, is_table: bool, revision: int | None = None
) -> IndexedRecord | None:
    """Return one record, of the published revision or of another. None if the revision does not contain it."""
    revision_number = published_revision(connection, source) if revision is None else revision
    parameters = {"source": source, "path": path_key(path), "is_table": int(is_table), "at": revision_number}
    row = connection.execute(_select_record(connection), parameters).mappings().first()
    if row is None:
        return None
    return IndexedRecord(_record_from_row(source, row), row["digest"], row["canonical"], row["valid_from"])


def find_table(connection: Connection, source: str, path: Path) -> TableRecord | None:
    """Return a table of the published revision. None if it does not contain it."""
    current = find_record(connection, source, path, is_table=True)
    return current.record if current is not None and isinstance(current.record, TableRecord) else None


def find_namespace(connection: Connection, source: str, path: Path) -> NamespaceRecord | None:
    """Return a namespace of the published revision. None if it does not contain it."""
    current = find_record(connection, source, path, is_table=False)
    return current.record if current is not None and isinstance(current.record, NamespaceRecord) else None


def _record_from_row(source: str, row: RowMapping) -> Record:
    return table_from_row(source, dict(row)) if row["is_table"] else namespace_from_row(source, dict(row))


@cache_statement
def _select_record(_: Connection) -> Select[Any]:
    at = bindparam("at", type_=Integer)
    same_object = and_(r.source == bindparam("source"), r.path == bindparam("path"), r.is_table == bindparam("is_table"))
    base = select(t.record).where(same_object, unindexed(r.valid_from) <= at)
    return select(union_all(base.where(r.valid_to.is_(None)), base.where(r.valid_to > at)).subquery())


def list_existing_tables(connection: Connection, source: str, revision: int, paths: Collection[Path]) -> set[Path]:
    """Return those of the paths that are tables of a source at a revision."""
    existing: set[Path] = set()
    for chunk in chunked([path_key(path) for path in paths]):
        query = select_at_revision(source, revision, r.path.in_(chunk), r.is_table == 1, columns=[r.path])
        existing |= {parse_path_key(key) for key in connection.execute(query).scalars()}
    return existing


def iter_marked_records(connection: Connection, source: str, key_prefix: str, comment_prefix: str) -> Iterator[Record]:
    """Stream the current records of a source, by path, in which a property's key begins with ``key_prefix``, or the comment
    contains ``comment_prefix``.

    Records without such a key may be among them: the text of a property's value may look like a key.
    """
    marked = or_(r.properties.contains(f'"{key_prefix}', autoescape=True), r.doc.contains(comment_prefix, autoescape=True))
    state = select_at_revision(source, published_revision(connection, source), marked).subquery()
    query = select(state).order_by(state.c.path, state.c.is_table)
    for row in connection.execute(query.execution_options(yield_per=5000)).mappings():
        yield _record_from_row(source, row)


def list_declarations(
    connection: Connection, canonical_location: str, *, sources: Sequence[str], scopes: Scopes = EVERYTHING
) -> list[str]:
    """List the object ids of one dataset's current declarations in ``sources`` that ``scopes`` cover, by source and path."""
    rows = connection.execute(
        _select_declarations(connection, scopes), {"canonical": canonical_location, "sources": list(sources)}
    )
    return [object_id(source, path) for source, path in sorted(tuple(row) for row in rows)]


@cache_statement
def _select_declarations(connection: Connection, scopes: Scopes) -> Select[Any]:
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    selected = s.name.in_(bindparam("sources", expanding=True))
    scope = and_(r.canonical == bindparam("canonical"), selected, unindexed(r.valid_from) <= s.revision, covered)
    base = select(r.source, r.path).where(scope)
    # A canonical location selects few rows, a source selects many. SQLite has no statistics that show this, so the expressions below
    # leave it only the index on the canonical location.
    current = base.where(r.valid_to.is_(None), r.is_table + 0 == 1, s.name == r.source.concat(""))
    pending = base.where(r.valid_to > s.revision, r.is_table == 1, s.name == r.source)
    return select(union_all(current, pending).subquery())


def count_objects(connection: Connection, source: str, scopes: Scopes = EVERYTHING) -> tuple[int, int]:
    """Return the numbers of namespaces and of tables that a source has now and ``scopes`` cover."""
    revision, is_open = published_revision(connection, source), r.valid_to.is_(None)
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    drafts = select(t.revision.c.number).where(t.revision.c.source == source, t.revision.c.number > revision)

    def count(sign: int, *conditions: ColumnElement[bool]) -> Select[Any]:
        objects = (func.count(literal_column("*")) * sign).label("objects")
        return select(r.is_table, objects).where(covered, *conditions).group_by(r.is_table)

    # The index of open rows counts them alone. To compare their revisions, each row would have to be read. The few rows of drafts are
    # found by their revision: no index of open rows may be used for them.
    counts = union_all(
        count(1, r.source == source, is_open),
        count(-1, r.source == source, unindexed(r.valid_to).is_(None), r.valid_from.in_(drafts)),
        count(1, r.source == source, r.valid_to > revision, r.valid_from <= revision),
    ).subquery()
    rows = connection.execute(select(counts.c.is_table, func.sum(counts.c.objects)).group_by(counts.c.is_table)).all()
    by_kind = {int(is_table): int(total) for is_table, total in rows}
    return by_kind.get(0, 0), by_kind.get(1, 0)


def list_namespace_keys(connection: Connection, source: str) -> set[str]:
    """Return the path keys of all namespaces that a source has now."""
    state = select_at_revision(source, published_revision(connection, source), r.is_table == 0, columns=[r.path])
    return set(connection.execute(state).scalars())


def list_paths_by_location(connection: Connection, source: str, canonicals: Sequence[str]) -> dict[str, list[str]]:
    """Return the path keys of a source's tables at some canonical locations, by canonical location."""
    paths: dict[str, list[str]] = {}
    revision = published_revision(connection, source)
    for chunk in chunked(canonicals):
        at_locations = r.canonical.in_(chunk)
        for path, canonical in connection.execute(
            select_at_revision(source, revision, at_locations, r.is_table == 1, columns=[r.path, r.canonical])
        ):
            paths.setdefault(canonical, []).append(path)
    return paths


def select_current_tables(columns: Sequence[Any], *conditions: ColumnElement[bool]) -> list[Select[Any]]:
    """Return two selects of the published tables of all sources: open rows, and rows that a draft revision has closed."""
    scope = and_(r.source == s.name, unindexed(r.valid_from) <= s.revision, r.is_table == 1, *conditions)
    base = select(*columns).where(scope)
    return [base.where(r.valid_to.is_(None)), base.where(r.valid_to > s.revision)]


def list_declarations_at(
    connection: Connection, locations: Sequence[str], scopes: Scopes = EVERYTHING
) -> dict[str, list[TableRecord]]:
    """Return the declarations at each canonical location that ``scopes`` cover, by source and path.

    A declaration at a location alias counts for the location that it stands for.
    """
    declarations: dict[str, list[TableRecord]] = {}
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    for chunk in chunked(locations):
        resolved = resolve_alias_spellings(connection, chunk)
        for query in select_current_tables([t.record], r.canonical.in_(list(resolved)), covered):
            for row in connection.execute(query).mappings():
                declarations.setdefault(resolved[row["canonical"]], []).append(table_from_row(row["source"], dict(row)))
    return {location: sorted(tables, key=lambda table: (table.source, table.key)) for location, tables in declarations.items()}


def resolve_alias_spellings(connection: Connection, locations: Sequence[str]) -> dict[str, str]:
    """Return the locations in ``record`` that mean one of ``locations``, each with the location that it means."""
    a = t.alias.c
    aliased = set(connection.execute(select(a.canonical).where(a.canonical.in_(locations))).scalars())
    aliases = connection.execute(select(a.canonical, a.place).where(a.place.in_(locations)))
    own = {location: location for location in locations if location not in aliased}
    return own | {row.canonical: row.place for row in aliases}
