"""Publication of revisions: draft in chunks, publish in one transaction.

Readers do not see a draft revision. A draft that was never published, because its process died, is swept before the next one begins:
its inserted rows are deleted and the rows that it closed are opened again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from federator.connector import StateError
from federator.model import Record
from federator.model.rows import RECORD_COLUMNS, record_to_row
from federator.store import lexemes, search_entries
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.leases import Lease
from federator.store.sql import ROWS_PER_CHUNK, allocate_ids, bulk_insert, chunked

#: the columns of a row for ``add_records``; ``words`` has the lexemes of a table (``lexemes.row_lexemes``)
INCOMING_COLUMNS = (*RECORD_COLUMNS, "observed_at", "words")
_PATH = INCOMING_COLUMNS.index("path")


@dataclass(frozen=True, slots=True)
class DraftRevision:
    """A revision that is being written and is not visible."""

    source: str
    number: int


def register_source(index: Index, source: str, impl: str, config_digest: str) -> None:
    """Add or update the row of a configured source.

    A changed configuration deletes the source's misses and feed cursor: other credentials may see less.
    """
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
    """Raise StateError if the configuration of a source changed after its last crawl: its misses belong to the old one."""
    known = connection.execute(select(t.source.c.config_digest).where(t.source.c.name == source)).scalar()
    if known not in (None, config_digest):
        raise StateError(
            f"the configuration of source {source!r} changed after its last crawl, so an older plan cannot be applied",
            hint="make a new plan: federator plan",
        )


def update_source(connection: Connection, source: str, values: Mapping[str, Any]) -> None:
    """Update columns of a source's row, in the caller's transaction."""
    connection.execute(update(t.source).where(t.source.c.name == source).values(dict(values)))


def begin_draft(index: Index, lease: Lease, source: str, run_id: str, read_began_at: float) -> DraftRevision:
    """Begin the next revision as a draft. Sweep a draft that a dead process left."""
    sweep_unpublished(index, lease, source)
    with index.write() as connection:
        lease.require_held(connection)
        last = connection.execute(select(func.max(t.revision.c.number)).where(t.revision.c.source == source)).scalar() or 0
        row = {"source": source, "number": last + 1, "run_id": run_id, "state": "open", "read_began_at": read_began_at}
        connection.execute(insert(t.revision), [row])
    return DraftRevision(source, last + 1)


def incoming_row(record: Record, observed_at: float | None = None) -> tuple[Any, ...]:
    """Return a record as a row for ``add_records``."""
    row = record_to_row(record)
    return (*(row[name] for name in RECORD_COLUMNS), observed_at, lexemes.row_lexemes(record.source, row))


def add_records(index: Index, lease: Lease, draft: DraftRevision, rows: Iterable[Sequence[Any]]) -> int:
    """Insert records and their search entries. Return their number. ``rows`` have the order of ``INCOMING_COLUMNS``.

    Close a record that is to be replaced first (``close_records``).
    """
    names = ["id", *INCOMING_COLUMNS[:-1], "source", "valid_from"]
    source, number = draft.source, draft.number

    def write(connection: Connection, chunk: list[Sequence[Any]]) -> None:
        ids = allocate_ids(connection, t.record, len(chunk))
        numbered = list(zip(ids, chunk, strict=True))
        bulk_insert(connection, t.record, names, ((key, *row[:-1], source, number) for key, row in numbered))
        search_entries.insert_entries(
            connection, [(key, source, row[_PATH], row[-1]) for key, row in numbered if row[-1] is not None]
        )

    return _write_in_chunks(index, lease, rows, write)


def close_records(index: Index, lease: Lease, draft: DraftRevision, keys: Iterable[tuple[int, str]]) -> int:
    """End the validity of open records with the given keys, each ``(is_table, path)``. Return the number of keys."""
    r = t.record.c
    key = (r.source == draft.source) & (r.is_table == bindparam("key_is_table")) & (r.path == bindparam("key_path"))
    statement = update(t.record).where(key, r.valid_to.is_(None), r.valid_from < draft.number).values(valid_to=draft.number)

    def write(connection: Connection, chunk: list[tuple[int, str]]) -> None:
        connection.execute(statement, [{"key_is_table": is_table, "key_path": path} for is_table, path in chunk])

    return _write_in_chunks(index, lease, keys, write)


def publish_draft(
    index: Index, lease: Lease, draft: DraftRevision, *, added: int, changed: int, removed: int, values: Mapping[str, Any],
    evidence: Mapping[str, Any] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Make the draft current in one transaction.

    ``values`` are further columns of the ``source`` row, ``evidence`` of the ``revision`` row.
    """
    now = time.time()
    with index.write() as connection:
        lease.require_held(connection)
        state = {"state": "published", "published_at": now, "added": added, "changed": changed, "removed": removed}
        connection.execute(update(t.revision).where(_is_draft_row(draft)).values({**state, **evidence}))
        update_source(connection, draft.source, {"revision": draft.number, "published_at": now, **values})
    search_entries.delete_replaced_entries(index, draft.source, draft.number, added=added + changed)


def sweep_unpublished(index: Index, lease: Lease, source: str) -> int:
    """Delete the draft revisions of a source that were never published. Return their number."""
    with index.write() as connection:
        lease.require_held(connection)
        query = select(t.revision.c.number).where(t.revision.c.source == source, t.revision.c.state == "open")
        numbers = list(connection.execute(query).scalars())
        for number in numbers:
            _revert_draft(connection, DraftRevision(source, number))
    return len(numbers)


def _revert_draft(connection: Connection, draft: DraftRevision) -> None:
    search_entries.delete_draft_entries(connection, draft.source, draft.number)
    for table in (t.record, t.coverage):
        same_source = table.c.source == draft.source
        connection.execute(delete(table).where(same_source, table.c.valid_from == draft.number))
        connection.execute(update(table).where(same_source, table.c.valid_to == draft.number).values(valid_to=None))
    connection.execute(update(t.revision).where(_is_draft_row(draft)).values(state="swept"))


def _is_draft_row(draft: DraftRevision) -> Any:
    return (t.revision.c.source == draft.source) & (t.revision.c.number == draft.number)


def _write_in_chunks(index: Index, lease: Lease, rows: Iterable[Any], write: Any) -> int:
    written = 0
    for chunk in chunked(rows, ROWS_PER_CHUNK):
        with index.write() as connection:
            lease.require_held(connection)
            write(connection, chunk)
        written += len(chunk)
    return written
