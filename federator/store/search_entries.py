"""Search entries: one row per record of a table.

An entry is inserted with its record, in the draft revision. A search returns an entry only if the published revision contains its
record. So entries may be inserted early and deleted late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, exists, func, or_, select

from federator.model.identifiers import DELIMITER
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.fulltext import FTS5_WORDS, render_tsvector
from federator.store.leases import Lease
from federator.store.lexemes import COLUMNS, row_lexemes
from federator.store.sql import ROWS_PER_CHUNK, bulk_insert, byte_ordered, chunked
from federator.store.vocabulary import extract_new_vocabulary, extract_vocabulary, insert_vocabulary, lexemes_text

# After this many new entries, PostgreSQL's planner needs fresh statistics before the next search; autovacuum runs too late.
_ANALYZE_THRESHOLD = 10_000


class SearchEntry(NamedTuple):
    """A row of ``search_entry``: the id of its record, the record's source and path key, and its lexemes (``lexemes.row_lexemes``)."""

    id: int
    source: str
    path: str
    words: str


r, e = t.record.c, t.search_entry.c
_ROW = (r.id, r.source, r.is_table, *(r[name] for name in COLUMNS))


def insert_entries(connection: Connection, entries: Sequence[SearchEntry]) -> set[str]:
    """Insert entries. Return their vocabulary, which the caller inserts."""
    names = SearchEntry._fields
    if connection.dialect.name == "sqlite":
        bulk_insert(connection, t.search_entry, names, entries)
        bulk_insert(connection, FTS5_WORDS, ("rowid", "words"), ((entry.id, entry.words) for entry in entries))
    else:
        rows = (entry._replace(words=render_tsvector(entry.words)) for entry in entries)
        bulk_insert(connection, t.search_entry, names, rows)
    return extract_new_vocabulary(entry.words for entry in entries)


def insert_missing_entries(index: Index, lease: Lease, source: str, draft: int) -> int:
    """Insert the entries of those tables of a draft revision that have none, page by page. Return their number."""
    has_no_entry = ~exists(select(e.id).where(e.id == r.id))
    draft_tables = select(*_ROW).where(r.source == source, r.valid_from == draft, r.is_table == 1, has_no_entry)
    inserted, last = 0, 0
    while True:
        with index.write() as connection:
            lease.require_held(connection)
            last, count = _insert_page(connection, draft_tables, last)
            if not count:
                return inserted
            inserted += count


def delete_draft_entries(connection: Connection, source: str, draft: int) -> None:
    """Delete the entries of a draft revision that will not be published. Call this before its records are deleted."""
    _delete_where(connection, (r.source == source) & (r.valid_from == draft))


def delete_replaced_entries(index: Index, source: str, revision: int, *, added: int) -> None:
    """Delete the entries of the records that a published revision or its predecessor closed. ``added`` entries were inserted for it."""
    with index.write() as connection:
        _delete_where(connection, (r.source == source) & r.valid_to.in_([revision - 1, revision]))
    if added >= _ANALYZE_THRESHOLD and not index.is_sqlite:
        with index.write() as connection:
            connection.exec_driver_sql("ANALYZE search_entry")


def backfill_entries(connection: Connection) -> int:
    """Insert the entries of all current records into an index without entries, filled by a version that had no search.

    If there are entries and no vocabulary, insert the vocabulary. Return the number of inserted entries.
    """
    if connection.execute(select(e.id).limit(1)).scalar() is not None:
        if connection.execute(select(t.search_vocabulary.c.word).limit(1)).scalar() is None:
            _backfill_vocabulary(connection)
        return 0
    published = and_(t.source.c.name == r.source, r.valid_from <= t.source.c.revision)
    current = or_(r.valid_to.is_(None), r.valid_to > t.source.c.revision)
    query = select(*_ROW).join(t.source, published).where(current, r.is_table == 1)
    inserted = last = 0
    while True:
        last, count = _insert_page(connection, query, last)
        if not count:
            return inserted
        inserted += count


def count_tables_below(connection: Connection, source: str, namespaces: Sequence[str], limit: int) -> dict[str, int]:
    """Return the number of tables below each of some namespaces of a source, by path key, at most ``limit`` for each.

    The entries of a draft revision count already, and those of replaced records until they are deleted. One index of the database,
    in the order of bytes, has all entries of a namespace side by side, so the cost depends only on the numbers that are returned.
    """
    namespace = t.record.alias()
    n = namespace.c
    key = byte_ordered(connection, n.path)
    below = (e.source == n.source, e.path > key.concat(DELIMITER), e.path < key.concat(chr(ord(DELIMITER) + 1)))
    tables = select(e.path).where(*below).distinct().limit(limit).correlate(namespace).subquery()
    number = select(func.count()).select_from(tables).scalar_subquery()
    counts: dict[str, int] = {}
    for chunk in chunked(namespaces):
        query = select(n.path, number).where(n.source == source, n.is_table == 0, n.path.in_(chunk), n.valid_to.is_(None))
        counts |= {row.path: row[1] for row in connection.execute(query)}
    return counts


def _insert_page(connection: Connection, tables: Select[Any], after: int) -> tuple[int, int]:
    """Insert the entries of the next rows of ``tables`` after an id. Return their last id and their number."""
    rows = connection.execute(tables.where(r.id > after).order_by(r.id).limit(ROWS_PER_CHUNK)).mappings().all()
    with_lexemes = ((row, row_lexemes(row["source"], {**row})) for row in rows)
    entries = [SearchEntry(row["id"], row["source"], row["path"], words) for row, words in with_lexemes if words is not None]
    insert_vocabulary(connection, insert_entries(connection, entries))
    return (rows[-1]["id"] if rows else after), len(rows)


def _backfill_vocabulary(connection: Connection) -> None:
    query = select(e.id, lexemes_text(connection, e.words)).order_by(e.id)
    last = 0
    while rows := connection.execute(query.where(e.id > last).limit(ROWS_PER_CHUNK)).all():
        insert_vocabulary(connection, extract_vocabulary(text for _, text in rows))
        last = rows[-1][0]


def _delete_where(connection: Connection, condition: ColumnElement[bool]) -> None:
    connection.execute(delete(t.search_entry).where(e.id.in_(select(r.id).where(condition, r.is_table == 1))))
