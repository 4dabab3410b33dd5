"""The entries of the search: one row for each table's record, made while its revision is still unseen.

A search shows an entry only where the published revision holds its record, so that making entries early and removing them late changes
no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select

from federator.index import tables as t
from federator.index.bulk import ROWS, chunks, insert_rows
from federator.index.engine import Index
from federator.index.inverted import quoted
from federator.index.leases import Lease
from federator.index.words import lexemes

# PostgreSQL's planner must know which words are common before the next search; its own clock comes by later.
_WORTH_ANALYZING = 10_000

r, e = t.record.c, t.search_entry.c
_COLUMNS = (r.id, r.source, r.path, r.location, r.properties, r.doc, r.owner, r.schema)


def add(index: Index, lease: Lease, source: str, number: int) -> int:
    """Makes the entries of a revision that is being written; returns how many."""
    added = 0
    mine = (r.source == source) & (r.valid_from == number) & (r.is_table == 1)
    with index.read() as reading:
        rows = reading.execution_options(stream_results=True, yield_per=5000).execute(select(*_COLUMNS).where(mine))
        for chunk in chunks(_entries(rows), ROWS):
            with index.write() as connection:
                lease.check(connection)
                _insert(connection, chunk)
            added += len(chunk)
    return added


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
    query = select(*_COLUMNS).join(t.source, published).where(current, r.is_table == 1).order_by(r.id)
    made, last = 0, 0
    while rows := connection.execute(query.where(r.id > last).limit(ROWS)).all():
        _insert(connection, list(_entries(rows)))
        made, last = made + len(rows), rows[-1].id
    return made


def _entries(rows: Iterable[Any]) -> Iterator[tuple[int, str, str, list[str]]]:
    for key, source, path, location, properties, doc, owner, schema in rows:
        yield key, source, path, lexemes(source, path, location, properties, doc, owner, schema)


def _insert(connection: Connection, entries: Sequence[tuple[int, str, str, list[str]]]) -> None:
    # A tsvector is written as its lexemes in quotes, FTS5 takes the words as they are.
    written = str if connection.dialect.name == "sqlite" else lambda word: f"'{quoted(word)}'"
    rows = ((key, source, path, " ".join(map(written, words))) for key, source, path, words in entries)
    insert_rows(connection, t.search_entry, ("id", "source", "path", "words"), rows)


def _delete(connection: Connection, ended: ColumnElement[bool]) -> None:
    connection.execute(delete(t.search_entry).where(e.id.in_(select(r.id).where(ended, r.is_table == 1))))
