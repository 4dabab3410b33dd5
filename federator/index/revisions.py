"""Publishing: a source's next revision is written in chunks while nobody sees it, then one small transaction makes it current.

A revision that was never published (its process died) is swept before the next one begins: what it inserted is removed and what it
closed is opened again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from federator.connector import StateError
from federator.index import search_entries, words
from federator.index import tables as t
from federator.index.bulk import ROWS, chunks, insert_rows, next_ids
from federator.index.engine import Index
from federator.index.leases import Lease
from federator.model import Record
from federator.model.rows import RECORD_COLUMNS, record_row

#: what ``add_records`` takes of a record; ``words`` is what it is found by, as ``words.of_row`` has it
INCOMING = (*RECORD_COLUMNS, "observed_at", "words")
_PATH = INCOMING.index("path")


@dataclass(frozen=True, slots=True)
class Draft:
    """A revision that is being written."""

    source: str
    number: int


def register(index: Index, source: str, impl: str, config_digest: str) -> None:
    """Makes a configured source known. A changed configuration forgets proven misses: another principal may see less."""
    with index.write() as connection:
        known = connection.execute(select(t.source.c.config_digest).where(t.source.c.name == source)).scalar()
        if known is None:
            row = {"name": source, "impl": impl, "config_digest": config_digest, "state": "never"}
            connection.execute(insert(t.source), [row])
        elif known != config_digest:
            values = {"impl": impl, "config_digest": config_digest, "cursor": None}
            connection.execute(update(t.source).where(t.source.c.name == source).values(values))
            connection.execute(delete(t.absence).where(t.absence.c.source == source))


def check_configuration(connection: Connection, source: str, config_digest: str) -> None:
    """Raise StateError if a source was configured differently when it was last crawled: its misses are of that configuration."""
    known = connection.execute(select(t.source.c.config_digest).where(t.source.c.name == source)).scalar()
    if known not in (None, config_digest):
        raise StateError(
            f"the source {source!r} is configured differently since it was last crawled, so a plan that was made before proves nothing",
            hint="federator plan",
        )


def set_source(connection: Connection, source: str, values: Mapping[str, Any]) -> None:
    """Changes columns of a source's row, in the caller's transaction."""
    connection.execute(update(t.source).where(t.source.c.name == source).values(dict(values)))


def begin(index: Index, lease: Lease, source: str, run_id: str, read_began_at: float) -> Draft:
    """Opens the next revision; sweeps what a dead process left."""
    sweep(index, lease, source)
    with index.write() as connection:
        lease.check(connection)
        last = connection.execute(select(func.max(t.revision.c.number)).where(t.revision.c.source == source)).scalar() or 0
        row = {"source": source, "number": last + 1, "run_id": run_id, "state": "open", "read_began_at": read_began_at}
        connection.execute(insert(t.revision), [row])
    return Draft(source, last + 1)


def incoming(record: Record, observed_at: float | None = None) -> tuple[Any, ...]:
    """A record as ``add_records`` takes it."""
    row = record_row(record)
    return (*(row[name] for name in RECORD_COLUMNS), observed_at, words.of_row(record.source, row))


def add_records(index: Index, lease: Lease, draft: Draft, rows: Iterable[Sequence[Any]]) -> int:
    """Inserts records, each a sequence in the order of ``INCOMING``, and their entries in the search; returns how many.

    A record that replaces another must have been closed before (``close_records``).
    """
    names = ["id", *INCOMING[:-1], "source", "valid_from"]
    source, number = draft.source, draft.number

    def write(connection: Connection, chunk: list[Sequence[Any]]) -> None:
        ids = next_ids(connection, t.record, len(chunk))
        numbered = list(zip(ids, chunk, strict=True))
        insert_rows(connection, t.record, names, ((key, *row[:-1], source, number) for key, row in numbered))
        search_entries.add(connection, [(key, source, row[_PATH], row[-1]) for key, row in numbered if row[-1] is not None])

    return _in_chunks(index, lease, rows, write)


def close_records(index: Index, lease: Lease, draft: Draft, keys: Iterable[tuple[int, str]]) -> int:
    """Ends the validity of open records, given as ``(is_table, path)``; returns how many."""
    r = t.record.c
    key = (r.source == draft.source) & (r.is_table == bindparam("key_is_table")) & (r.path == bindparam("key_path"))
    statement = update(t.record).where(key, r.valid_to.is_(None), r.valid_from < draft.number).values(valid_to=draft.number)

    def write(connection: Connection, chunk: list[tuple[int, str]]) -> None:
        connection.execute(statement, [{"key_is_table": is_table, "key_path": path} for is_table, path in chunk])

    return _in_chunks(index, lease, keys, write)


def publish(
    index: Index, lease: Lease, draft: Draft, *, added: int, changed: int, removed: int, values: Mapping[str, Any],
    evidence: Mapping[str, Any] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Makes the draft current: the one transaction that readers notice. ``values`` are further columns of ``source``, ``evidence`` of
    ``revision``."""
    now = time.time()
    with index.write() as connection:
        lease.check(connection)
        state = {"state": "published", "published_at": now, "added": added, "changed": changed, "removed": removed}
        connection.execute(update(t.revision).where(_is(draft)).values({**state, **evidence}))
        set_source(connection, draft.source, {"revision": draft.number, "published_at": now, **values})
    search_entries.trim(index, draft.source, draft.number, added=added + changed)


def sweep(index: Index, lease: Lease, source: str) -> int:
    """Removes every trace of revisions that were begun and never published; returns how many there were."""
    with index.write() as connection:
        lease.check(connection)
        query = select(t.revision.c.number).where(t.revision.c.source == source, t.revision.c.state == "open")
        numbers = list(connection.execute(query).scalars())
        for number in numbers:
            _undo(connection, Draft(source, number))
    return len(numbers)


def _undo(connection: Connection, draft: Draft) -> None:
    search_entries.drop(connection, draft.source, draft.number)
    for table in (t.record, t.coverage):
        mine = table.c.source == draft.source
        connection.execute(delete(table).where(mine, table.c.valid_from == draft.number))
        connection.execute(update(table).where(mine, table.c.valid_to == draft.number).values(valid_to=None))
    connection.execute(update(t.revision).where(_is(draft)).values(state="swept"))


def _is(draft: Draft) -> Any:
    return (t.revision.c.source == draft.source) & (t.revision.c.number == draft.number)


def _in_chunks(index: Index, lease: Lease, rows: Iterable[Any], write: Any) -> int:
    written = 0
    for chunk in chunks(rows, ROWS):
        with index.write() as connection:
            lease.check(connection)
            write(connection, chunk)
        written += len(chunk)
    return written
