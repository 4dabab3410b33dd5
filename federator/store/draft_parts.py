"""Parts of a draft revision, which Spark tasks write in parallel, each in one transaction. PostgreSQL only.

The draft's row is the fence. A task locks it as shared and requires that the draft is open, so publishing and sweeping wait for the
task's transaction, and a task that begins later writes nothing. The row of the part is inserted first: a second attempt of the part
waits for the first one, and then finds it written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql

from federator.connector import StateError
from federator.model import fold_digest
from federator.store import tables as t
from federator.store.draft_rows import INCOMING_COLUMNS, DraftRevision, close_open_records, insert_records
from federator.store.engine import Index
from federator.store.leases import LeaseLost, limit_transaction_time
from federator.store.vocabulary import insert_vocabulary

_IS_TABLE, _PATH, _DIGEST = (INCOMING_COLUMNS.index(name) for name in ("is_table", "path", "digest"))


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part in the index: the number of its records, their folded digest, and the number of its tables without a search entry."""

    part: int
    records: int
    digest: int
    unindexed: int


_COLUMNS = [t.draft_part.c[field.name] for field in fields(WrittenPart)]


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes parts of a draft. Picklable, for Spark's tasks. The lease is that of the process that publishes the draft.

    ``replaces`` is False if the index has no open record with the key of a new one.
    """

    draft: DraftRevision
    lease_name: str
    lease_token: int
    replaces: bool = True

    def write(self, index: Index, part: int, chunks: Iterable[Sequence[Sequence[Any]]]) -> WrittenPart:
        """Write a part in one transaction. A record replaces the open one with its key.

        ``chunks`` are rows in the order of ``INCOMING_COLUMNS``. A table without words gets no search entry. If an earlier attempt has
        written the part, write nothing and return what it has written. Raise LeaseLost if the lease was lost, and StateError if the
        draft was published or swept.
        """
        with index.write() as connection:
            limit_transaction_time(connection)
            self._require_open(connection)
            row = {"source": self.draft.source, "number": self.draft.number, "part": part}
            unwritten = {**row, "records": 0, "digest": 0, "unindexed": 0}
            claim = postgresql.insert(t.draft_part).values(unwritten).on_conflict_do_nothing().returning(t.draft_part.c.part)
            if connection.execute(claim).first() is None:
                return next(written for written in list_parts(connection, self.draft) if written.part == part)
            records, digest, unindexed, vocabulary = 0, 0, 0, set[str]()
            for chunk in chunks:
                if self.replaces:
                    close_open_records(connection, self.draft, ((row[_IS_TABLE], row[_PATH]) for row in chunk))
                vocabulary |= insert_records(connection, self.draft, chunk)
                records += len(chunk)
                digest ^= fold_digest(row[_DIGEST] for row in chunk)
                unindexed += sum(row[_IS_TABLE] == 1 and row[-1] is None for row in chunk)
            written = WrittenPart(part, records, digest, unindexed)
            values = {"records": records, "digest": digest, "unindexed": unindexed}
            same_part = t.draft_part.c.part == part
            connection.execute(update(t.draft_part).where(_is_of(self.draft), same_part).values(values))
            insert_vocabulary(connection, vocabulary)
        return written

    def _require_open(self, connection: Connection) -> None:
        query = select(t.revision.c.state).where(self.draft.row).with_for_update(read=True)
        state = connection.execute(query).scalar()
        if state != "open":
            raise StateError(f"revision {self.draft.number} of {self.draft.source!r} is not a draft any more: {state}")
        # Without a lock: its holder must be able to renew it, and a successor has to lock the draft's row.
        token = connection.execute(select(t.lease.c.token).where(t.lease.c.name == self.lease_name)).scalar()
        if token != self.lease_token:
            raise LeaseLost(f"the lease {self.lease_name!r} was lost to another process")


def list_parts(connection: Connection, draft: DraftRevision) -> list[WrittenPart]:
    """Return the parts of a draft, by number."""
    query = select(*_COLUMNS).where(_is_of(draft)).order_by(t.draft_part.c.part)
    return [WrittenPart(*row) for row in connection.execute(query)]


def require_parts(connection: Connection, draft: DraftRevision, parts: Collection[WrittenPart], records: int) -> None:
    """Raise StateError unless exactly ``parts`` are in the index, and have this number of records together.

    Call it after the draft's row was locked for publishing, when no task is writing.
    """
    stored = list_parts(connection, draft)
    stored_records = sum(part.records for part in stored)
    if stored != sorted(parts, key=lambda part: part.part) or stored_records != records:
        raise StateError(
            f"revision {draft.number} of {draft.source!r} is incomplete: {stored_records:,} of {records:,} records in"
            f" {len(stored)} of {len(parts)} parts",
            hint="run it again; if it happens again, report it",
        )


def delete_parts(connection: Connection, draft: DraftRevision) -> None:
    """Delete the rows about the parts of a draft, not their records."""
    connection.execute(delete(t.draft_part).where(_is_of(draft)))


def _is_of(draft: DraftRevision) -> Any:
    return (t.draft_part.c.source == draft.source) & (t.draft_part.c.number == draft.number)
