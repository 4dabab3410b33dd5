"""Scopes as SQL conditions.

Rows that a principal may not see are never read, not even for a count or a facet. Without scopes, no row is visible.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, false, or_, true

from federator.model import path_key
from federator.model.identifiers import DELIMITER, iter_ancestors
from federator.model.scopes import Scopes
from federator.store.sql import has_prefix


def is_covered(
    connection: Connection, scopes: Scopes, source: ColumnElement[str], path: ColumnElement[str]
) -> ColumnElement[bool]:
    """Return the condition that a scope covers a row, by its source and its path key."""
    if scopes.covers_all:
        return true()
    return or_(
        false(),
        *(and_(source == prefix[0], is_at_or_below(connection, path, path_key(prefix[1:]))) for prefix in scopes.prefixes),
    )


def is_visible(
    connection: Connection, scopes: Scopes, source: ColumnElement[str], path: ColumnElement[str], is_table: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that a scope covers a row of the tree, or that the row is a namespace above a scope.

    Only the name of a namespace above a scope may be shown.
    """
    if scopes.covers_all:
        return true()
    # The tree root and the roots of sources are no rows of the tree.
    ancestors = {ancestor for prefix in scopes.prefixes for ancestor in iter_ancestors(prefix) if len(ancestor) > 1}
    above_scope = (and_(is_table == 0, source == above[0], path == path_key(above[1:])) for above in sorted(ancestors))
    return or_(is_covered(connection, scopes, source, path), *above_scope)


def is_covered_id(connection: Connection, scopes: Scopes, identifier: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a scope covers a row, by its object id, for example ``lake_hive$sales$orders``."""
    if scopes.covers_all:
        return true()
    return or_(false(), *(is_at_or_below(connection, identifier, path_key(prefix)) for prefix in scopes.prefixes))


def is_visible_source(scopes: Scopes, name: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a scope covers a source, or a part of it."""
    return true() if scopes.covers_all else name.in_(sorted({prefix[0] for prefix in scopes.prefixes}))


def is_at_or_below(connection: Connection, path: ColumnElement[str], key: str) -> ColumnElement[bool]:
    """Return the condition that a path key is ``key`` or below it. The empty key is above all paths."""
    if not key:
        return true()
    return or_(path == key, has_prefix(connection, path, key + DELIMITER))
