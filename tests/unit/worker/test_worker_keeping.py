"""A live worker, with Spark, builds the due reports and prunes the history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from federator.settings import Settings
from federator.store import Index, reports, runs, verifications
from federator.store import tables as t
from federator.worker import worker as worker_module
from tests.fixtures.index_content import fill, table
from tests.fixtures.waiting import wait_until
from tests.unit.worker.test_worker import working

KEPT = """
[history]
keep_days = 1
schedule = "@every 1h"
[reports.weekly]
kind = "inventory"
schedule = "@every 1h"
formats = ["json", "csv"]
"""


@pytest.fixture
def old(index: Index) -> Index:
    """Two revisions and two verification states of a location; the first of each is two days old."""
    fill(index, "lake", table("lake", "sales", "orders", owner="anna"))
    fill(index, "lake", table("lake", "sales", "orders", owner="ben"))
    nothing = dict.fromkeys(("message", "version", "rows", "fragments", "schema"))
    location = "s3://lake/sales/orders.lance"
    for state, days in (("valid", 3), ("missing", 2)):
        row = {"canonical": location, "location": location, "state": state, "checked_at": time.time() - days * 86_400}
        with index.write() as connection:
            verifications.save_verifications(connection, [{**nothing, **row, "checked_through": "lake", "access": ""}])
    with index.write() as connection:
        connection.execute(update(t.revision).values(published_at=time.time() - 2 * 86_400))
    return index


def test_reports_and_pruning_are_done_when_due(
    spark: None, configure: Callable[..., Settings], old: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session is that of all tests.
    monkeypatch.setattr(worker_module, "stop_warm_session", lambda: None)
    assert _past(old) == (1, 1)
    with working(configure(mirror=KEPT)):
        wait_until(lambda: len([run for run in runs.list_recent_runs(old) if run.finished_at]) == 2, seconds=300)
    done = {run.kind: (run.state, run.trigger, run.error) for run in runs.list_recent_runs(old)}
    assert done == dict.fromkeys(("report", "prune"), ("ok", "schedule", None))
    assert _past(old) == (0, 0)
    with old.read() as connection:
        (report,) = reports.list_reports(connection, name="weekly")
    figures = json.loads((Path(report.directory) / "report.json").read_text(encoding="utf-8"))
    assert (figures["report"], figures["details"]["rows"], [file.name for file in report.files]) == (
        "inventory", 1, ["inventory.csv", "report.json"],
    )  # fmt: skip


def _past(index: Index) -> tuple[int, int]:
    """Rows of records, and of looks, that only the past had."""
    with index.read() as connection:
        closed = connection.execute(select(func.count()).where(t.record.c.valid_to.is_not(None))).scalar_one()
        return closed, connection.execute(select(func.count()).select_from(t.dataset_past)).scalar_one()
