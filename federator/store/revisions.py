"""Publication of revisions: draft in chunks, publish in one transaction.

Readers do not see a draft revision. A draft that was never published, because its process died, is swept before the next one begins:
its inserted rows are deleted and the rows that it closed are opened again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update

from federator.connector import StateError
from federator.store import draft_parts, search_entries
from federator.store import tables as t
from federator.store.draft_parts import WrittenPart
from federator.store.draft_rows import DraftRevision as DraftRevision
from federator.store.draft_rows import close_open_records, insert_records
from federator.store.draft_rows import incoming_row as incoming_row
from federator.store.engine import Index
from federator.store.leases import Lease
from federator.store.sql import ROWS_PER_CHUNK, chunked
from federator.store.vocabulary import insert_vocabulary

#: how long publishing and sweeping wait for tasks that write into the draft. The server ends idle ones after ``LEASE_TTL_SECONDS``.
LOCK_WAIT_SECONDS = 300.0


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


def add_records(index: Index, lease: Lease, draft: DraftRevision, rows: Iterable[Sequence[Any]]) -> int:
    """Insert records and their search entries. Return their number. ``rows`` have the order of ``draft_rows.INCOMING_COLUMNS``.

    Close a record that is to be replaced first (``close_records``).
    """

    def write(connection: Connection, chunk: list[Sequence[Any]]) -> None:
        insert_vocabulary(connection, insert_records(connection, draft, chunk))

    return _write_in_chunks(index, lease, rows, write)


def close_records(index: Index, lease: Lease, draft: DraftRevision, keys: Iterable[tuple[int, str]]) -> int:
    """End the validity of open records with the given keys, each ``(is_table, path)``. Return the number of keys."""
    return _write_in_chunks(index, lease, keys, lambda connection, chunk: close_open_records(connection, draft, chunk))


def publish_draft(
    index: Index, lease: Lease, draft: DraftRevision, *, added: int, changed: int, removed: int, values: Mapping[str, Any],
    evidence: Mapping[str, Any] = MappingProxyType({}), parts: Collection[WrittenPart] | None = None,
) -> None:  # fmt: skip
    """Make the draft current in one transaction.

    ``values`` are further columns of the ``source`` row, ``evidence`` of the ``revision`` row. ``parts`` are those that tasks have
    written, with all new and changed records; None if this process has written them. Raise StateError if the index has other parts.
    """
    now = time.time()
    with index.write() as connection:
        state = {"state": "published", "published_at": now, "added": added, "changed": changed, "removed": removed}
        _limit_lock_wait(connection)
        # First, because it waits for the tasks that still write into the draft: a locked lease could not be renewed meanwhile.
        connection.execute(update(t.revision).where(draft.row).values({**state, **evidence}))
        lease.require_held(connection)
        if parts is not None:
            draft_parts.require_parts(connection, draft, parts, added + changed)
            draft_parts.delete_parts(connection, draft)
        update_source(connection, draft.source, {"revision": draft.number, "published_at": now, **values})
    search_entries.delete_replaced_entries(index, draft.source, draft.number, added=added + changed)


def sweep_unpublished(index: Index, lease: Lease, source: str) -> int:
    """Delete the draft revisions of a source that were never published. Return their number."""
    with index.write() as connection:
        _limit_lock_wait(connection)
        # First, because it waits for the tasks that still write into a draft: a locked lease could not be renewed meanwhile.
        is_draft = (t.revision.c.source == source) & (t.revision.c.state == "open")
        swept = update(t.revision).where(is_draft).values(state="swept").returning(t.revision.c.number)
        numbers = list(connection.execute(swept).scalars())
        lease.require_held(connection)
        for number in numbers:
            _revert_draft(connection, DraftRevision(source, number))
    return len(numbers)


def _revert_draft(connection: Connection, draft: DraftRevision) -> None:
    draft_parts.delete_parts(connection, draft)
    search_entries.delete_draft_entries(connection, draft.source, draft.number)
    for table in (t.record, t.coverage):
        same_source = table.c.source == draft.source
        connection.execute(delete(table).where(same_source, table.c.valid_from == draft.number))
        connection.execute(update(table).where(same_source, table.c.valid_to == draft.number).values(valid_to=None))


def _limit_lock_wait(connection: Connection) -> None:
    """Fail instead of waiting forever for a task that is frozen, or whose machine was lost, in the middle of a statement."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = {int(LOCK_WAIT_SECONDS * 1000)}"))


def _write_in_chunks(index: Index, lease: Lease, rows: Iterable[Any], write: Any) -> int:
    written = 0
    for chunk in chunked(rows, ROWS_PER_CHUNK):
        with index.write() as connection:
            lease.require_held(connection)
            write(connection, chunk)
        written += len(chunk)
    return written
