"""Reading the current state after one revision and after a thousand with changes."""

from __future__ import annotations

import random
import time
from pathlib import Path

from federator.model import NamespaceRecord, TableRecord
from federator.store import Index, migrations, open_index, records, revisions
from federator.store.leases import Lease, acquire_lease
from tests.bench.measure import Row, ratio, seconds

TABLES, REVISIONS, CHANGES, READS = 5_000, 1_000, 100, 300


def run(directory: Path) -> list[Row]:
    index = open_index(f"sqlite:///{directory / 'index.db'}")
    migrations.upgrade_schema(index)
    revisions.register_source(index, "lake", "memory", "x")
    with acquire_lease(index, "source:lake") as lease:
        everything = [
            revisions.incoming_row(NamespaceRecord("lake", ("sales",))),
            *(revisions.incoming_row(_table(number, 0)) for number in range(TABLES)),
        ]
        _publish(index, lease, everything, [])
        pages, gets = _reads(index)
        for number in range(1, REVISIONS):
            changed = random.Random(number).sample(range(TABLES), CHANGES)
            rows = [revisions.incoming_row(_table(table, number)) for table in changed]
            _publish(index, lease, rows, [(1, _table(table, 0).key) for table in changed])
    late_pages, late_gets = _reads(index)
    return [
        ratio(f"a page of 100 tables after {REVISIONS:,} revisions, against after one", pages, late_pages, 1.5),
        ratio(f"one table after {REVISIONS:,} revisions, against after one", gets, late_gets, 1.5),
    ]


def _table(number: int, version: int) -> TableRecord:
    return TableRecord("lake", ("sales", f"t{number:05d}"), f"s3://lake/t{number}.lance", {"v": str(version)})


def _publish(index: Index, lease: Lease, rows: list[tuple[object, ...]], closed: list[tuple[int, str]]) -> None:
    draft = revisions.begin_draft(index, lease, "lake", "bench", time.time())
    revisions.close_records(index, lease, draft, closed)
    revisions.add_records(index, lease, draft, rows)
    revisions.publish_draft(index, lease, draft, added=len(rows), changed=0, removed=0, values={})


def _reads(index: Index) -> tuple[list[float], list[float]]:
    chosen = random.Random(0)
    pages, gets = [], []
    for _ in range(READS):
        name = f"t{chosen.randrange(TABLES):05d}"
        with index.read() as connection:
            pages.append(
                seconds(lambda: records.list_children(connection, "lake", ("sales",), after=f"sales${name}", limit=100))  # noqa: B023
            )
            gets.append(seconds(lambda: records.find_record(connection, "lake", ("sales", name), is_table=True)))  # noqa: B023
    return pages, gets
