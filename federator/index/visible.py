"""Scopes as conditions of a query: what a caller may not see is never read, so no count, facet or page can tell of it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, false, or_, true

from federator.model import path_key
from federator.model.identifiers import DELIMITER
from federator.model.scopes import Scopes


def inside(connection: Connection, scopes: Scopes, source: ColumnElement[str], path: ColumnElement[str]) -> ColumnElement[bool]:
    """Rows that a scope covers, by their source and their path below it in text form."""
    if scopes.everything:
        return true()
    return or_(
        false(), *(and_(source == prefix[0], below(connection, path, path_key(prefix[1:]))) for prefix in scopes.prefixes)
    )


def below(connection: Connection, path: ColumnElement[str], key: str) -> ColumnElement[bool]:
    """Whether a path in text form is ``key`` or below it; the empty key is above all."""
    if not key:
        return true()
    # What sorts between two texts is a matter of the collation, which only SQLite has as bytes by itself.
    ordered = path if connection.dialect.name == "sqlite" else path.collate("C")
    return or_(path == key, and_(ordered > key + DELIMITER, ordered < key + chr(ord(DELIMITER) + 1)))
