"""The entries of the search: one row for each table's record, made with it, while its revision is still unseen.

A search shows an entry only where the published revision holds its record, so that making entries early and removing them late changes
no answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select

from federator.index import tables as t
from federator.index.bulk import ROWS, insert_rows
from federator.index.engine import Index
from federator.index.inverted import WORDS, tsvector
from federator.index.words import COLUMNS, of_row

# PostgreSQL's planner must know which words are common before the next search; its own clock comes by later.
_WORTH_ANALYZING = 10_000

_ENTRY = ("id", "source", "path", "words")

r, e = t.record.c, t.search_entry.c
_ROW = (r.id, r.source, r.is_table, *(r[name] for name in COLUMNS))


def add(connection: Connection, entries: Sequence[tuple[int, str, str, str]]) -> None:
    """Makes entries: the record's id, its source, its path, and its words (``words.of_row``)."""
    if connection.dialect.name == "sqlite":
        insert_rows(connection, t.search_entry, _ENTRY, entries)
        insert_rows(connection, WORDS, ("rowid", "words"), ((entry[0], entry[3]) for entry in entries))
    else:
        insert_rows(connection, t.search_entry, _ENTRY, ((*entry[:3], tsvector(entry[3])) for entry in entries))


def drop(connection: Connection, source: str, number: int) -> None:
    """Removes the entries of a revision that will not be published; before its records."""
    _delete(connection, (r.source == source) & (r.valid_from == number))


def trim(index: Index, source: str, number: int, *, added: int) -> None:
    """Removes the entries whose records a published revision, or the one before it, ended."""
    with index.write() as connection:
        _delete(connection, (r.source == source) & r.valid_to.in_([number - 1, number]))
    if added >= _WORTH_ANALYZING and not index.sqlite:
        with index.write() as connection:
            connection.exec_driver_sql("ANALYZE search_entry")


def make_all(connection: Connection) -> int:
    """Makes the entries of every current record where there is none at all: an index that was filled before there was a search."""
    if connection.execute(select(e.id).limit(1)).scalar() is not None:
        return 0
    published = and_(t.source.c.name == r.source, r.valid_from <= t.source.c.revision)
    current = or_(r.valid_to.is_(None), r.valid_to > t.source.c.revision)
    query = select(*_ROW).join(t.source, published).where(current, r.is_table == 1).order_by(r.id)
    made, last = 0, 0
    while rows := connection.execute(query.where(r.id > last).limit(ROWS)).mappings().all():
        worded = ((row, of_row(row["source"], {**row})) for row in rows)
        add(connection, [(row["id"], row["source"], row["path"], words) for row, words in worded if words is not None])
        made, last = made + len(rows), rows[-1]["id"]
    return made


def _delete(connection: Connection, ended: ColumnElement[bool]) -> None:
    connection.execute(delete(t.search_entry).where(e.id.in_(select(r.id).where(ended, r.is_table == 1))))
