"""Names for the Lance protocol's listings: keyset pages of the published state, within a caller's scopes.

Names of one namespace come in the order in which the database has their paths (SQLite: by code points, PostgreSQL: by its collation),
so that a page is a walk along an index. It begins after a name: what comes and goes between pages is neither lost nor shown twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, select, union_all

from federator.index import coverage, records, visible
from federator.index import tables as t
from federator.model import Evidence, Kind, Path, parse_key, path_key
from federator.model.scopes import Scopes

r = t.record.c
#: verification's states of a place where no table has been written
UNWRITTEN = ("declared_only", "empty", "missing")


def namespaces(connection: Connection, source: str, namespace: Path, *, after: str, limit: int, scopes: Scopes) -> list[str]:
    """The names of a namespace's child namespaces that a scope covers or has on its way, after the name ``after``."""
    shown = visible.shown(connection, scopes, r.source, r.path, r.is_table)
    conditions = [*_children(namespace, after), r.is_table == 0, r.path != "", shown]
    return [path[-1] for path in _paths(connection, source, conditions, limit)]


def tables(
    connection: Connection, source: str, namespace: Path, *, after: str, limit: int, scopes: Scopes, written: bool = False,
    managed: bool = False,
) -> list[str]:  # fmt: skip
    """The names of a namespace's Lance tables that a scope covers, after the name ``after``; described or not.

    ``written``: without those that verification found to be declared only; ``managed``: also those whose catalog manages them.
    """
    conditions = [*_children(namespace, after), *_lance(connection, scopes, written=written, managed=managed)]
    return [path[-1] for path in _paths(connection, source, conditions, limit)]


def all_tables(
    connection: Connection, source: str, *, after: Path, limit: int, scopes: Scopes, written: bool = False
) -> list[Path]:
    """Every Lance table of a source that a scope covers, by path, after the path ``after``."""
    conditions = [r.path > path_key(after), *_lance(connection, scopes, written=written)]
    return _paths(connection, source, conditions, limit)


def below(connection: Connection, source: str, namespace: Path) -> list[tuple[Path, bool]]:
    """Everything that a source has inside a namespace, at any depth: paths, and whether each is a table."""
    inside = and_(r.path != path_key(namespace), visible.below(connection, r.path, path_key(namespace)))
    state = records.at_revision(
        source, records.published(connection, source), inside, r.path != "", columns=[r.path, r.is_table]
    )
    return [(parse_key(path), bool(is_table)) for path, is_table in connection.execute(state)]


def unread(connection: Connection, source: str, namespace: Path) -> Evidence | None:
    """Why nothing is known of a namespace's children, where its listing failed; None where a listing was had."""
    found = coverage.read(connection, source, records.published(connection, source), only=[path_key(namespace)])
    told = found.get(path_key(namespace))
    return told.presence if told is not None and told.presence.code is not None else None


def crawled(connection: Connection, source: str) -> bool:
    """Whether a source was ever crawled."""
    return connection.execute(select(t.source.c.crawled_at).where(t.source.c.name == source)).scalar() is not None


def _children(namespace: Path, after: str) -> list[ColumnElement[bool]]:
    found = [r.parent == path_key(namespace)]
    return [*found, r.path > path_key((*namespace, after))] if after else found


def _lance(connection: Connection, scopes: Scopes, *, written: bool, managed: bool = False) -> list[ColumnElement[bool]]:
    found = [r.is_table == 1, visible.inside(connection, scopes, r.source, r.path)]
    if not managed:
        found.append(r.kind != Kind.MANAGED_TABLE.value)
    if written:
        d = t.dataset.c
        found.append(~exists().where(d.canonical == r.canonical, d.state.in_(UNWRITTEN)))
    return found


def _paths(connection: Connection, source: str, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Path]:
    """Paths in order. Each branch is a walk along an index, so that a page costs what it shows."""
    at = records.published(connection, source)
    base = select(r.path).where(r.source == source, r.valid_from + 0 <= at, *conditions).order_by(r.path).limit(limit)
    branches: list[Any] = [base.where(r.valid_to.is_(None)).subquery(), base.where(r.valid_to > at).subquery()]
    state = union_all(*(select(branch.c.path) for branch in branches)).subquery()
    found = connection.execute(select(state.c.path).order_by(state.c.path).limit(limit)).scalars()
    return [parse_key(path) for path in found]
