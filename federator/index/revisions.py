"""Publishing: a source's next revision is written in chunks while nobody sees it, then one small transaction makes it current.

A revision that was never published (its process died) is swept before the next one begins: what it inserted is removed and what it
closed is opened again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from federator.index import search_entries
from federator.index import tables as t
from federator.index.bulk import ROWS, chunks, insert_rows
from federator.index.engine import Index
from federator.index.leases import Lease
from federator.model.rows import RECORD_COLUMNS


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


def add_records(index: Index, lease: Lease, draft: Draft, rows: Iterable[Sequence[Any]]) -> int:
    """Inserts records, each a sequence in the order of ``RECORD_COLUMNS`` plus ``observed_at``; returns how many.

    A record that replaces another must have been closed before (``close_records``).
    """
    names = [*RECORD_COLUMNS, "observed_at", "source", "valid_from"]
    tail = (draft.source, draft.number)
    return _in_chunks(
        index,
        lease,
        rows,
        lambda connection, chunk: insert_rows(connection, t.record, names, ((*row, *tail) for row in chunk)),
    )


def close_records(index: Index, lease: Lease, draft: Draft, keys: Iterable[tuple[int, str]]) -> int:
    """Ends the validity of open records, given as ``(is_table, path)``; returns how many."""
    r = t.record.c
    key = (r.source == draft.source) & (r.is_table == bindparam("key_is_table")) & (r.path == bindparam("key_path"))
    statement = update(t.record).where(key, r.valid_to.is_(None), r.valid_from < draft.number).values(valid_to=draft.number)

    def write(connection: Connection, chunk: list[tuple[int, str]]) -> None:
        connection.execute(statement, [{"key_is_table": is_table, "key_path": path} for is_table, path in chunk])

    return _in_chunks(index, lease, keys, write)


def publish(
    index: Index, lease: Lease, draft: Draft, *, added: int, changed: int, removed: int, values: Mapping[str, Any]
) -> None:
    """Makes the draft current: the one transaction that readers notice. ``values`` are further columns of ``source``.

    What the search needs of it is made before, so that it is found from that moment on.
    """
    entries = search_entries.add(index, lease, draft.source, draft.number)
    now = time.time()
    with index.write() as connection:
        lease.check(connection)
        state = {"state": "published", "published_at": now, "added": added, "changed": changed, "removed": removed}
        connection.execute(update(t.revision).where(_is(draft)).values(state))
        set_source(connection, draft.source, {"revision": draft.number, "published_at": now, **values})
    search_entries.trim(index, draft.source, draft.number, added=entries)


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
