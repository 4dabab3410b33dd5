"""Texts by their bytes: what sorts between two of them is a matter of the collation, which only SQLite has as bytes by itself."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_


def ordered(connection: Connection, column: ColumnElement[str]) -> ColumnElement[str]:
    """A column to be compared and sorted by its bytes."""
    return column if connection.dialect.name == "sqlite" else column.collate("C")


def begins(connection: Connection, column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Whether a text begins with ``prefix``, which is not empty, and goes on; an index on the column by bytes serves it."""
    by_bytes = ordered(connection, column)
    return and_(by_bytes > prefix, by_bytes < prefix[:-1] + chr(ord(prefix[-1]) + 1))
