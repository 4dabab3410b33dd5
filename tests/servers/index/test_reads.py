"""Reads of the current state, which do not get slower with history, on both databases."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import event, update

from federator.model.scopes import Scopes
from federator.store import Connection, Index, coverage, draft_rows, records, revisions, runs
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.views.runs import RunFilter, list_visible_runs
from federator.views.visibility import Visibility
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.index_reads import iter_records


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


class TestHistory:
    """1,000 revisions with changes: what reads the current state does not read them."""

    REVISIONS = 1000

    @pytest.fixture
    def old(self, index: Index) -> Index:
        fill(index, "lake", namespace("lake", "s"), *(table("lake", "s", f"t{i}") for i in range(20)))
        with acquire_lease(index, "source:lake") as lease:
            # Written as a thousand runs would have left it, in one go.
            draft = revisions.begin_draft(index, lease, "lake", "run", time.time())
            closed = [
                (*revisions.incoming_row(table("lake", "s", f"t{i % 20}", doc=str(n)))[:-1], n)
                for n in range(3, self.REVISIONS)
                for i in (n, n + 7)
            ]
            names = [*draft_rows.INCOMING_COLUMNS[:-1], "valid_from"]
            with index.write() as connection:
                rows = [
                    {**dict(zip(names, values, strict=True)), "source": "lake", "valid_to": values[-1] + 1} for values in closed
                ]
                connection.execute(t.record.insert(), rows)
                entry = {
                    "source": "lake",
                    "presence": "complete",
                    "presence_reason": "",
                    "detail": "complete",
                    "detail_reason": "",
                }
                history = [
                    {**entry, "namespace": "s", "records": n, "valid_from": n, "valid_to": n + 1}
                    for n in range(1, self.REVISIONS)
                ]
                now = {**entry, "namespace": "s", "records": 20, "valid_from": self.REVISIONS, "valid_to": None}
                connection.execute(t.coverage.insert(), [*history, now])
                connection.execute(update(t.revision).where(t.revision.c.number == draft.number).values(number=self.REVISIONS))
            draft = revisions.DraftRevision("lake", self.REVISIONS)
            revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={})
        if not index.is_sqlite:
            # What PostgreSQL does on its own; SQLite must choose well without.
            with index.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("ANALYZE")
        return index

    def test_current_reads_use_the_partial_indexes(self, old: Index) -> None:
        reads: dict[str, Callable[[Connection], Any]] = {
            "get": lambda c: records.find_record(c, "lake", ("s", "t1"), is_table=True),
            "children": lambda c: records.list_children(c, "lake", ("s",)),
            "namespaces": lambda c: records.list_namespace_keys(c, "lake"),
            "subtree": lambda c: list(iter_records(c, "lake")),
            "declarations": lambda c: records.list_declarations(c, "s3://lake/s/t1.lance", sources=["lake"]),
            "coverage": lambda c: coverage.read_coverage(c, "lake", self.REVISIONS),
        }
        bad = {name: plan for name, read in reads.items() if (plan := history_read(old, read))}
        assert bad == {}
        # It finds the rows of drafts by their revision.
        counts = history_read(old, lambda connection: records.count_objects(connection, "lake"))
        assert all("ix_record_revision" in line or " revision" in line for line in counts), counts

    def test_a_draft_is_not_counted(self, old: Index) -> None:
        with acquire_lease(old, "source:lake") as lease:
            draft = revisions.begin_draft(old, lease, "lake", "run", time.time())
            revisions.close_records(old, lease, draft, [(1, "s$t1"), (1, "s$t2"), (1, "s$t3")])
            rows = [revisions.incoming_row(table("lake", "s", name)) for name in ("t1", "new")]
            revisions.add_records(old, lease, draft, [*rows, revisions.incoming_row(namespace("lake", "n"))])
            with old.read() as connection:
                assert records.count_objects(connection, "lake") == (1, 20)
            revisions.publish_draft(old, lease, draft, added=2, changed=1, removed=2, values={})
        with old.read() as connection:
            assert records.count_objects(connection, "lake") == (2, 19)

    def test_the_state_is_the_last_one(self, old: Index) -> None:
        with old.read() as connection:
            assert records.count_objects(connection, "lake") == (1, 20)
            assert coverage.read_coverage(connection, "lake", self.REVISIONS)["s"].records == 20
            assert coverage.read_coverage(connection, "lake", 500)["s"].records == 500


def test_runs_in_a_state_are_found_by_few_queries(index: Index) -> None:
    """A caller may name a state that no run has: then all visible runs are read."""
    for number in range(150):
        run = runs.insert_run(index, "crawl", trigger="schedule", actor="schedule")
        runs.record_source_result(index, run, "lake", state="failed" if number == 3 else "ok", tables=1)
        runs.finish_run(index, run, "ok", summary={})
    viewer, statements = Visibility("ann", Scopes((("lake",),))), []
    event.listen(index.engine, "before_cursor_execute", note := lambda *_: statements.append(None))
    found = [
        len(list_visible_runs(index, viewer, limit=2, filters=RunFilter(state=state))) for state in ("nope", "failed", "ok")
    ]
    event.remove(index.engine, "before_cursor_execute", note)
    assert found == [0, 1, 2]
    assert len(statements) < 20


def test_a_connection_that_wrote_gives_the_writers_cache_back(sqlite_index: Index) -> None:
    def cache() -> list[int]:
        with ExitStack() as stack:
            opened = [stack.enter_context(sqlite_index.read()) for _ in range(3)]
            return [connection.exec_driver_sql("PRAGMA cache_size").scalar_one() for connection in opened]

    read = set(cache())
    with sqlite_index.write() as connection:
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar_one() not in read
    assert set(cache()) == read


def history_read(index: Index, read: Callable[[Connection], Any]) -> list[str]:
    """The parts of a read's plans that touch records or coverage other than through a partial index."""
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        statements.append((statement, parameters))

    explain = "EXPLAIN QUERY PLAN " if index.is_sqlite else "EXPLAIN "
    with index.read() as connection:
        event.listen(connection, "before_cursor_execute", note)
        read(connection)
        event.remove(connection, "before_cursor_execute", note)
        lines: list[str] = []
        for statement, parameters in statements:
            lines += [str(found[-1]) for found in connection.exec_driver_sql(explain + statement, parameters)]
    partial = (
        "ux_record_open",
        "ix_record_children",
        "ix_record_canonical",
        "ix_record_closed",
        "ux_coverage_open",
        "ix_coverage_closed",
    )
    access = (
        r"(SEARCH|SCAN) (record|coverage)\b"
        if index.is_sqlite
        else r"(Seq Scan on|Index (Only )?Scan using|Bitmap Index Scan on)"
    )
    touching = [
        line for line in lines if re.search(access, line) and not re.search(r"on (source|source_store|dataset)\b", line)
    ]
    assert touching
    return [line for line in touching if not any(name in line for name in partial)]
