"""Scopes as conditions of a query: what a caller may not see is never read, so no count, facet or page can tell of it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, false, or_, true

from federator.index.bytewise import begins
from federator.model import path_key
from federator.model.identifiers import DELIMITER, ancestors
from federator.model.scopes import Scopes


def inside(connection: Connection, scopes: Scopes, source: ColumnElement[str], path: ColumnElement[str]) -> ColumnElement[bool]:
    """Rows that a scope covers, by their source and their path below it in text form."""
    if scopes.everything:
        return true()
    return or_(
        false(), *(and_(source == prefix[0], below(connection, path, path_key(prefix[1:]))) for prefix in scopes.prefixes)
    )


def shown(
    connection: Connection, scopes: Scopes, source: ColumnElement[str], path: ColumnElement[str], is_table: ColumnElement[int]
) -> ColumnElement[bool]:
    """Rows of the tree that a scope covers, and the namespaces on the way there: of those only the name may be told."""
    if scopes.everything:
        return true()
    ways = {(above[0], path_key(above[1:])) for prefix in scopes.prefixes for above in ancestors(prefix) if above}
    on_the_way = (and_(is_table == 0, source == name, path == key) for name, key in sorted(ways) if key)
    return or_(inside(connection, scopes, source, path), *on_the_way)


def inside_id(connection: Connection, scopes: Scopes, identifier: ColumnElement[str]) -> ColumnElement[bool]:
    """Rows whose object a scope covers, by a path from the tree's root in text form, ``lake_hive$sales$orders``."""
    if scopes.everything:
        return true()
    return or_(false(), *(below(connection, identifier, path_key(prefix)) for prefix in scopes.prefixes))


def sources(scopes: Scopes, name: ColumnElement[str]) -> ColumnElement[bool]:
    """Sources that a scope covers, or some part of which it does."""
    return true() if scopes.everything else name.in_(sorted({prefix[0] for prefix in scopes.prefixes}))


def below(connection: Connection, path: ColumnElement[str], key: str) -> ColumnElement[bool]:
    """Whether a path in text form is ``key`` or below it; the empty key is above all."""
    if not key:
        return true()
    return or_(path == key, begins(connection, path, key + DELIMITER))
