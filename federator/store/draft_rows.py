"""The rows of a draft revision. Every writer inserts and closes records with these functions, in its own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, update

from federator.model import Record
from federator.model.rows import RECORD_COLUMNS, record_to_row
from federator.store import lexemes, search_entries
from federator.store import tables as t
from federator.store.sql import allocate_ids, bulk_insert, chunked

#: the columns of an incoming row; ``words`` has the lexemes of a table (``lexemes.row_lexemes``)
INCOMING_COLUMNS = (*RECORD_COLUMNS, "observed_at", "words")
_PATH = INCOMING_COLUMNS.index("path")


@dataclass(frozen=True, slots=True)
class DraftRevision:
    """A revision that is being written and is not visible."""

    source: str
    number: int

    @property
    def row(self) -> Any:
        """Return the condition that selects the row of the draft in ``revision``."""
        return (t.revision.c.source == self.source) & (t.revision.c.number == self.number)


def incoming_row(record: Record, observed_at: float | None = None) -> tuple[Any, ...]:
    """Return a record as an incoming row."""
    row = record_to_row(record)
    return (*(row[name] for name in RECORD_COLUMNS), observed_at, lexemes.row_lexemes(record.source, row))


def insert_records(connection: Connection, draft: DraftRevision, rows: Sequence[Sequence[Any]]) -> set[str]:
    """Insert records and the search entries of those with words. ``rows`` have the order of ``INCOMING_COLUMNS``.

    Return the vocabulary of the entries. Insert it at the end of the transaction: its words are locked until then.
    """
    names = ["id", *INCOMING_COLUMNS[:-1], "source", "valid_from"]
    ids = allocate_ids(connection, t.record, len(rows))
    numbered = list(zip(ids, rows, strict=True))
    bulk_insert(connection, t.record, names, ((key, *row[:-1], draft.source, draft.number) for key, row in numbered))
    entries = [
        search_entries.SearchEntry(key, draft.source, row[_PATH], row[-1]) for key, row in numbered if row[-1] is not None
    ]
    return search_entries.insert_entries(connection, entries)


def close_open_records(connection: Connection, draft: DraftRevision, keys: Iterable[tuple[int, str]]) -> None:
    """End the validity of open records with the given keys, each ``(is_table, path)``."""
    r = t.record.c
    paths: dict[int, list[str]] = {}
    for is_table, path in keys:
        paths.setdefault(is_table, []).append(path)
    for is_table, same_kind in paths.items():
        for chunk in chunked(same_kind):
            key = (r.source == draft.source) & (r.is_table == is_table) & r.path.in_(chunk)
            is_earlier = r.valid_to.is_(None) & (r.valid_from < draft.number)
            connection.execute(update(t.record).where(key, is_earlier).values(valid_to=draft.number))
