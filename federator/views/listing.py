"""Listings for the Lance protocol: pages of published names within a principal's scopes.

Names have the database's order of their path keys (SQLite: code points, PostgreSQL: its collation), so that a page reads an index in
order. A page begins after a name, so objects that appear or disappear between pages cause no gaps and no duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, or_, select, union_all

from federator.model import Evidence, Kind, Path, parse_path_key, path_key
from federator.model.scopes import Scopes
from federator.store import coverage, records, visibility
from federator.store import tables as t
from federator.store.sql import unindexed
from federator.store.stores import has_facts

r = t.record.c
#: verification states of locations without a written table
UNWRITTEN_STATES = ("declared_only", "empty", "missing")


def list_namespace_names(
    connection: Connection, source: str, namespace: Path, *, after: str, limit: int, scopes: Scopes
) -> list[str]:
    """List the names of a namespace's child namespaces that ``scopes`` make visible, after the name ``after``."""
    visible = visibility.is_visible(connection, scopes, r.source, r.path, r.is_table)
    conditions = [*_child_conditions(namespace, after), r.is_table == 0, r.path != "", visible]
    return [path[-1] for path in _list_paths(connection, source, conditions, limit)]


def list_table_names(
    connection: Connection, source: str, namespace: Path, *, after: str, limit: int, scopes: Scopes, written: bool = False,
    managed: bool = False,
) -> list[str]:  # fmt: skip
    """List the names of a namespace's Lance tables that ``scopes`` cover, after the name ``after``.

    ``written`` leaves out tables that verification found unwritten. ``managed`` includes tables that their catalog manages.
    """
    conditions = [
        *_child_conditions(namespace, after),
        *_lance_conditions(connection, scopes, written=written, managed=managed),
    ]
    return [path[-1] for path in _list_paths(connection, source, conditions, limit)]


def list_all_table_paths(
    connection: Connection, source: str, *, after: Path, limit: int, scopes: Scopes, written: bool = False
) -> list[Path]:
    """List the paths of a source's Lance tables that ``scopes`` cover, after the path ``after``."""
    conditions = [r.path > path_key(after), *_lance_conditions(connection, scopes, written=written)]
    return _list_paths(connection, source, conditions, limit)


def list_descendants(connection: Connection, source: str, namespace: Path) -> list[tuple[Path, bool]]:
    """List the objects inside a namespace at any depth: their paths, and whether each is a table."""
    inside = and_(r.path != path_key(namespace), visibility.is_at_or_below(connection, r.path, path_key(namespace)))
    state = records.select_at_revision(
        source, records.published_revision(connection, source), inside, r.path != "", columns=[r.path, r.is_table]
    )
    return [(parse_path_key(path), bool(is_table)) for path, is_table in connection.execute(state)]


def find_listing_failure(connection: Connection, source: str, namespace: Path) -> Evidence | None:
    """Return the evidence of a failed listing of a namespace. None if the listing did not fail."""
    known = coverage.read_coverage(
        connection, source, records.published_revision(connection, source), only=[path_key(namespace)]
    )
    row = known.get(path_key(namespace))
    return row.presence if row is not None and row.presence.code is not None else None


def is_crawled(connection: Connection, source: str) -> bool:
    """Return whether a source was ever crawled."""
    return connection.execute(select(t.source.c.crawled_at).where(t.source.c.name == source)).scalar() is not None


def _child_conditions(namespace: Path, after: str) -> list[ColumnElement[bool]]:
    conditions = [r.parent == path_key(namespace)]
    return [*conditions, r.path > path_key((*namespace, after))] if after else conditions


def _lance_conditions(
    connection: Connection, scopes: Scopes, *, written: bool, managed: bool = False
) -> list[ColumnElement[bool]]:
    conditions = [r.is_table == 1, visibility.is_covered(connection, scopes, r.source, r.path)]
    if not managed:
        # A managed table with a problem is read-only (TableRecord.is_read_only).
        conditions.append(or_(r.kind != Kind.MANAGED_TABLE.value, r.problem.is_not(None)))
    if written:
        d = t.dataset.c
        conditions.append(~exists().where(has_facts(r.source, r.canonical), d.state.in_(UNWRITTEN_STATES)))
    return conditions


def _list_paths(connection: Connection, source: str, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Path]:
    """List paths in order. Each branch reads an index in order, so the cost of a page depends only on its size."""
    revision = records.published_revision(connection, source)
    base = (
        select(r.path).where(r.source == source, unindexed(r.valid_from) <= revision, *conditions).order_by(r.path).limit(limit)
    )
    branches: list[Any] = [base.where(r.valid_to.is_(None)).subquery(), base.where(r.valid_to > revision).subquery()]
    state = union_all(*(select(branch.c.path) for branch in branches)).subquery()
    keys = connection.execute(select(state.c.path).order_by(state.c.path).limit(limit)).scalars()
    return [parse_path_key(key) for key in keys]
