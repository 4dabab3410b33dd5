"""Parts of a draft revision that several writers write at once, on PostgreSQL."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Table, func, select, text, update
from sqlalchemy.exc import DBAPIError

from federator.connector import StateError
from federator.model import Record
from federator.runtime.redaction import register_secret
from federator.store import Index, leases, revisions, search_entries
from federator.store import tables as t
from federator.store.draft_parts import PartWriter, WrittenPart
from federator.store.draft_rows import DraftRevision
from federator.store.failures import describe_failure
from federator.store.leases import Lease, LeaseLost, acquire_lease
from tests.fixtures.index_content import fill, namespace, published_content, table
from tests.fixtures.lease_processes import another, read_line

Rows = list[tuple[Any, ...]]
_WAIT_SECONDS = 60


@pytest.fixture
def index(postgres_index: Callable[..., Index]) -> Index:
    return postgres_index()


def rows(*contents: Record) -> Rows:
    return [revisions.incoming_row(content) for content in contents]


OLD = [namespace("lake", "s"), *(table("lake", "s", f"t{number}") for number in range(4))]
NEW = [namespace("lake", "n"), *(table("lake", "n", f"New_{number}", doc="orders") for number in range(5)), table("lake", "s", "t1", doc="later")]  # fmt: skip  # noqa: E501


@contextmanager
def draft_of(index: Index) -> Iterator[tuple[Lease, DraftRevision, PartWriter]]:
    """A draft after a published revision of ``OLD``, under a lease."""
    fill(index, "lake", *OLD)
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", time.time())
        yield lease, draft, PartWriter(draft, lease.name, lease.token)


def publish(index: Index, lease: Lease, draft: DraftRevision, parts: Sequence[WrittenPart] | None) -> None:
    revisions.publish_draft(index, lease, draft, added=6, changed=1, removed=0, values={}, parts=parts)


def count(index: Index, of: Table) -> int:
    with index.read() as connection:
        return connection.execute(select(func.count()).select_from(of)).scalar_one()


def wait_for_lock(index: Index) -> None:
    """Wait until a connection waits for a lock."""
    query = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    for _ in range(_WAIT_SECONDS * 50):
        with index.read() as connection:
            if connection.execute(query).scalar_one():
                return
        time.sleep(0.02)
    raise AssertionError("no connection waits for a lock")


class Attempt:
    """An attempt to write a part, which has written its rows and does not commit before it is released."""

    def __init__(self, pool: ThreadPoolExecutor, writer: PartWriter, index: Index, part: int, written: Rows) -> None:
        self.has_written, self._release = threading.Event(), threading.Event()
        self._error: Exception | None = None
        self.result: Future[WrittenPart] = pool.submit(writer.write, index, part, self._chunks(written))

    def _chunks(self, written: Rows) -> Iterator[Rows]:
        yield written
        self.has_written.set()
        assert self._release.wait(_WAIT_SECONDS)
        if self._error is not None:
            raise self._error

    def release(self, error: Exception | None = None) -> None:
        self._error = error
        self._release.set()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def test_parts_make_the_same_index_as_one_writer(postgres_index: Callable[..., Index], pool: ThreadPoolExecutor) -> None:
    contents = []
    for in_parts in (False, True):
        index, parts = postgres_index(), None
        with draft_of(index) as (lease, draft, writer):
            if in_parts:
                chunks = [[rows(*NEW[:2]), rows(*NEW[2:3])], [rows(*NEW[3:])]]
                pending = [pool.submit(writer.write, index, part, written) for part, written in enumerate(chunks)]
                parts = [each.result(_WAIT_SECONDS) for each in pending]
            else:
                revisions.close_records(index, lease, draft, [(1, "s$t1")])
                revisions.add_records(index, lease, draft, rows(*NEW))
            publish(index, lease, draft, parts)
        contents.append(published_content(index))
    assert contents[0] == contents[1]
    assert len(contents[0]["records"]) == len(OLD) + len(NEW)
    assert ("new",) in contents[0]["vocabulary"]


def test_an_attempt_that_fails_before_its_commit_leaves_nothing(index: Index, pool: ThreadPoolExecutor) -> None:
    with draft_of(index) as (lease, draft, writer):
        failing = Attempt(pool, writer, index, 0, rows(*NEW))
        assert failing.has_written.wait(_WAIT_SECONDS)
        failing.release(OSError("the executor lost its disk"))
        with pytest.raises(OSError, match="lost its disk"):
            failing.result.result(_WAIT_SECONDS)
        assert (count(index, t.record), count(index, t.draft_part)) == (len(OLD), 0)
        publish(index, lease, draft, [writer.write(index, 0, [rows(*NEW)])])
    assert count(index, t.record) == len(OLD) + len(NEW)


@pytest.mark.parametrize("first_fails", [False, True])
def test_two_attempts_at_once_write_a_part_once(index: Index, pool: ThreadPoolExecutor, *, first_fails: bool) -> None:
    with draft_of(index) as (lease, draft, writer):
        first = Attempt(pool, writer, index, 0, rows(*NEW))
        assert first.has_written.wait(_WAIT_SECONDS)
        second = pool.submit(writer.write, index, 0, [rows(*NEW)])
        wait_for_lock(index)
        first.release(OSError("killed") if first_fails else None)
        written = second.result(_WAIT_SECONDS)
        assert written.records == len(NEW)
        assert first.result.exception(_WAIT_SECONDS) is not None if first_fails else first.result.result() == written
        assert writer.write(index, 0, [rows(*NEW[:1])]) == written
        publish(index, lease, draft, [written])
    assert count(index, t.record) == len(OLD) + len(NEW)


def test_publishing_waits_for_an_attempt_and_refuses_what_it_does_not_expect(index: Index, pool: ThreadPoolExecutor) -> None:
    with draft_of(index) as (lease, draft, writer):
        expected = writer.write(index, 0, [rows(*NEW)])
        late = Attempt(pool, writer, index, 1, rows(table("lake", "n", "late")))
        assert late.has_written.wait(_WAIT_SECONDS)
        publishing = pool.submit(publish, index, lease, draft, [expected])
        wait_for_lock(index)
        late.release()
        late.result.result(_WAIT_SECONDS)
        with pytest.raises(StateError, match=r"incomplete: 8 of 7 records in 2 of 1 parts"):
            publishing.result(_WAIT_SECONDS)
        for parts in ([], [WrittenPart(0, 7, 1, 0)]):
            with pytest.raises(StateError, match="incomplete"):
                publish(index, lease, draft, parts)
    assert published_content(index)["source"] == [("lake", 1, "ok")]


def test_publishing_and_sweeping_give_up_on_a_frozen_attempt(
    index: Index, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revisions, "LOCK_WAIT_SECONDS", 0.2)
    with draft_of(index) as (lease, draft, writer):
        frozen = Attempt(pool, writer, index, 0, rows(*NEW))
        assert frozen.has_written.wait(_WAIT_SECONDS)
        for end in (
            lambda: publish(index, lease, draft, []),
            lambda: revisions.sweep_unpublished(index, lease, "lake"),
        ):
            with pytest.raises(DBAPIError) as caught:
                end()
            assert "another process kept it locked" in str(describe_failure(caught.value))
        frozen.release()
        publish(index, lease, draft, [frozen.result.result(_WAIT_SECONDS)])


def test_the_server_ends_an_attempt_that_freezes_between_two_statements(
    index: Index, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with draft_of(index) as (lease, draft, writer):
        monkeypatch.setattr(leases, "LEASE_TTL_SECONDS", 3.0)
        frozen = Attempt(pool, writer, index, 0, rows(*NEW))
        assert frozen.has_written.wait(_WAIT_SECONDS)
        written = pool.submit(writer.write, index, 0, [rows(*NEW)]).result(_WAIT_SECONDS)
        frozen.release()
        with pytest.raises(DBAPIError):
            frozen.result.result(_WAIT_SECONDS)
        monkeypatch.undo()
        publish(index, lease, draft, [written])
    assert count(index, t.record) == len(OLD) + len(NEW)


def test_an_attempt_that_wakes_after_publishing_has_no_effect(index: Index) -> None:
    with draft_of(index) as (lease, draft, writer):
        publish(index, lease, draft, [writer.write(index, 0, [rows(*NEW)])])
        published = published_content(index)
        for part in (0, 1):
            with pytest.raises(StateError, match="revision 2 of 'lake' is not a draft any more: published"):
                writer.write(index, part, [rows(table("lake", "n", "late"))])
    assert published_content(index) == published


def test_a_lost_lease_stops_writers_and_the_successor_sweeps_their_parts(index: Index, pool: ThreadPoolExecutor) -> None:
    with draft_of(index) as (lease, draft, writer):
        writer.write(index, 0, [rows(*NEW[:2])])
        late = Attempt(pool, writer, index, 1, rows(*NEW[2:]))
        assert late.has_written.wait(_WAIT_SECONDS)
        with index.write() as connection:
            connection.execute(update(t.lease).where(t.lease.c.name == lease.name).values(token=lease.token + 1))
        with pytest.raises(LeaseLost):
            writer.write(index, 2, [rows(*NEW[:1])])
        successor = Lease(lease.name, "another", lease.token + 1)
        sweeping = pool.submit(revisions.sweep_unpublished, index, successor, "lake")
        wait_for_lock(index)
        late.release()
        late.result.result(_WAIT_SECONDS)
        assert sweeping.result(_WAIT_SECONDS) == 1
        with pytest.raises(StateError, match="not a draft any more: swept"):
            PartWriter(draft, lease.name, lease.token + 1).write(index, 2, [rows(*NEW[:1])])
    swept = published_content(index)
    assert len(swept["records"]) == len(OLD) == len(swept["entries"]) + 1
    assert {row[-1] for row in swept["records"]} == {None}
    assert not swept["parts"]


def test_the_lease_can_be_renewed_while_parts_are_written(index: Index, pool: ThreadPoolExecutor) -> None:
    with draft_of(index) as (lease, draft, writer):
        attempt = Attempt(pool, writer, index, 0, rows(*NEW))
        assert attempt.has_written.wait(_WAIT_SECONDS)
        with index.write() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '10s'"))
            connection.execute(update(t.lease).where(t.lease.c.name == lease.name).values(expires_at=time.time() + 600))
        attempt.release()
        publish(index, lease, draft, [attempt.result.result(_WAIT_SECONDS)])


def test_the_parts_of_a_killed_driver_are_swept(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_TTL_SECONDS", 0.6)
    monkeypatch.setattr(leases, "CALL_DEADLINE_SECONDS", 0.6)
    fill(index, "lake", *OLD)
    before = published_content(index)
    script = """
from federator.store import revisions
from federator.store.draft_parts import PartWriter
from tests.fixtures.index_content import table
draft = revisions.begin_draft(index, lease, "lake", "run-2", time.time())
writer = PartWriter(draft, lease.name, lease.token)
for part in range(2):
    writer.write(index, part, [[revisions.incoming_row(table("lake", "s", f"t{part}", doc="new"))]])
print("written", flush=True)
time.sleep(60)
"""
    with another(index, script, lease="source:lake") as process:
        assert read_line(process) == "written"
        assert (count(index, t.record), count(index, t.draft_part)) == (len(OLD) + 2, 2)
        os.kill(process.pid, 9)
        process.wait()
    with acquire_lease(index, "source:lake", wait=_WAIT_SECONDS) as lease:
        assert revisions.sweep_unpublished(index, lease, "lake") == 1
    after = published_content(index)
    del before["revisions"], after["revisions"], before["vocabulary"], after["vocabulary"]
    assert after == before


def test_tables_that_tasks_left_out_are_indexed_without_secrets(index: Index) -> None:
    register_secret("onlyTheDriverKnows")
    suspects = [table("lake", "n", "New_0", doc="has onlyTheDriverKnows inside"), table("lake", "n", "New_1", doc="harmless")]
    with draft_of(index) as (lease, draft, writer):
        without_words = [(*row[:-1], None) for row in rows(*suspects)]
        part = writer.write(index, 0, [[*rows(NEW[0], *NEW[3:]), *without_words]])
        assert part.unindexed == 2
        assert search_entries.insert_missing_entries(index, lease, "lake", draft.number) == 2
        publish(index, lease, draft, [part])
    words = {row[1]: row[2] for row in published_content(index)["entries"]}
    assert "'aharmless'" in words["n$New_1"]
    assert "'ainside'" in words["n$New_0"]
    assert "onlythedriverknows" not in str(words)


def test_words_that_two_writers_add_at_once_do_not_block_them_in_a_circle(index: Index, pool: ThreadPoolExecutor) -> None:
    """Each writes its tables in another order."""
    names = [f"word{letter * 5}" for letter in "abcdefghij"]
    with draft_of(index) as (_, _, writer):
        for turn in range(5):
            contents = [rows(*(table("lake", f"p{turn}x{part}", name) for name in names)) for part in range(2)]
            chunked = [[[row] for row in contents[0]], [[row] for row in reversed(contents[1])]]
            written = [pool.submit(writer.write, index, 2 * turn + part, chunks) for part, chunks in enumerate(chunked)]
            assert [each.result(_WAIT_SECONDS).records for each in written] == [len(names)] * 2
    assert {(name,) for name in names} <= {*published_content(index)["vocabulary"]}
