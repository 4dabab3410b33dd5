"""The memory of a full drift detection does not grow with the tables in the ledger."""

from __future__ import annotations

import tracemalloc
from dataclasses import asdict

from sqlalchemy import insert

from federator.planning.rule import MirrorRule
from federator.store import Index, revisions
from federator.store import tables as t
from federator.store.drift_detection import detect_drift
from tests.fixtures.index_content import owned

FEW, MANY = 10_000, 30_000


def peak(index: Index, number: int) -> int:
    """The most bytes of Python objects at once while a mirror's tables are compared, of which neither side has one any more."""
    rules = {"m": MirrorRule(name="m", origin="a", target="b")}
    with index.read() as connection:
        tracemalloc.start()
        try:
            assert sum(1 for _ in detect_drift(connection, rules)) == number
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_three_times_the_tables_need_the_same_memory(either_index: Index) -> None:
    for name in ("a", "b"):
        revisions.register_source(either_index, name, "memory", "digest")
    peaks: list[int] = []
    for first, last in ((0, FEW), (FEW, MANY)):
        entries = [asdict(owned("a", f"s$t{number:06}", "b")) for number in range(first, last)]
        with either_index.write() as connection:
            connection.execute(insert(t.ledger), entries)
        del entries
        # The first detection also imports modules.
        peak(either_index, last)
        peaks.append(peak(either_index, last))
    # Statements that wait for the garbage collection vary.
    assert peaks[1] < 1.5 * peaks[0], peaks
