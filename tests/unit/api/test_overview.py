"""The overview: what needs attention, on both databases."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from federator.api.app import create_app
from federator.model import ROOT, Coverage, failed_evidence
from federator.settings import parse_settings
from federator.store import Index, coverage, revisions, runs, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.worker.triggers import overdue_since
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api.conftest import Api

_HOUR = 3600.0


def _verify(index: Index, **states: str) -> None:
    rows = [
        {
            "canonical": f"s3://lake/sales/{name}.lance", "location": f"s3://lake/sales/{name}.lance", "state": state, "message": None,
            "version": 1, "rows": 1, "fragments": 1, "schema": None, "checked_at": time.time(), "checked_through": "lake",
        }
        for name, state in states.items()
    ]  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, rows)


def _fill(index: Index) -> None:
    fill(index, "lake", namespace("lake", "sales"), *(table("lake", "sales", f"t{number}") for number in range(4)))
    fill(index, "copy", namespace("copy", "sales"), table("copy", "sales", "t0", location="s3://lake/sales/t0.lance"))
    _verify(index, t0="valid", t1="missing", t2="corrupt")
    with acquire_lease(index, "source:lake") as lease:
        draft, denied = revisions.begin_draft(index, lease, "lake", "run-2", 0.0), failed_evidence(15, "denied")
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [Coverage("lake", ROOT), Coverage("lake", ("hr",), denied, denied)], {})
        values = {"state": "partial", "message": "hr: denied"}
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values=values)
    row = {"source": "copy", "other": "lake$sales$t0", "detail": "", "first_seen": 5.0, "last_seen": 6.0}
    with index.write() as connection:
        connection.execute(
            t.drift.insert(),
            [
                {**row, "kind": "location_differs", "subject": "copy$sales$t0", "severity": "high"},
                {**row, "kind": "properties_differ", "subject": "copy$sales$t0", "severity": "low"},
            ],
        )
        notification = {
            "id": "n", "channel": "ops", "grouped": "", "state": "dead", "severity": "error", "events": 1, "body": "{}",
            "created_at": 7.0, "due_at": 7.0, "attempts": 8, "error": "410",
        }  # fmt: skip
        connection.execute(t.notification.insert(), [notification])


def api_over(index: Index, folder: Path, **sources: Any) -> Api:
    memory = {"impl": "federator.testing:CONNECTOR"}
    raw = {
        "instance": {"id": "test"},
        "index": {"url": index.engine.url.render_as_string(hide_password=False)},
        "sources": {name: {**memory, "store": f"overview-{name}", **sources.get(name, {})} for name in ("lake", "copy", "new")},
    }
    app = create_app(parse_settings(raw, folder / "federator.toml"))
    app.state.index.close()
    app.state.index = index
    return Api(app)


def test_everything_that_needs_attention_is_listed_the_worst_first(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    overview = api_over(either_index, tmp_path).json("/api/v1/overview")
    assert [(item["kind"], item["state"], item["count"]) for item in overview["attention"]] == [
        ("drift", "high", 1), ("tables", "corrupt", 1), ("tables", "missing", 1), ("notifications", "dead", 1),
        ("source", "partial", 1), ("drift", "low", 1), ("source", "never", 1),
    ]  # fmt: skip
    assert (overview["tables"], overview["drift"]) == (5, {"high": 1, "low": 1})
    assert overview["states"] == {"corrupt": 1, "missing": 1, "unverified": 1, "valid": 2}
    states = {source["name"]: source["states"] for source in overview["sources"]}
    assert states == {"copy": {"valid": 1}, "lake": {"corrupt": 1, "missing": 1, "unverified": 1, "valid": 1}, "new": {}}
    (partial,) = [item for item in overview["attention"] if item["state"] == "partial"]
    assert (partial["subject"], partial["detail"]) == ("lake", "hr: denied")


def test_a_draft_revision_is_not_counted(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    before = api.json("/api/v1/overview")["states"]
    with either_index.write() as connection:
        closed = t.record.update().where(t.record.c.source == "lake", t.record.c.name == "t1")
        revision = connection.execute(t.source.select().where(t.source.c.name == "lake")).mappings().one()["revision"]
        connection.execute(closed.values(valid_to=revision + 1))
    assert api.json("/api/v1/overview")["states"] == before
    with either_index.write() as connection:
        connection.execute(t.source.update().where(t.source.c.name == "lake").values(revision=revision + 1))
    assert api.json("/api/v1/overview")["states"] == {"corrupt": 1, "unverified": 1, "valid": 2}


def test_a_source_that_is_not_crawled_as_scheduled_is_overdue(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path, copy={"schedule": "@every 15m"})
    with either_index.write() as connection:
        connection.execute(t.source.update().where(t.source.c.name == "copy").values(crawled_at=time.time() - _HOUR))
    (item,) = [each for each in api.json("/api/v1/overview")["attention"] if each["subject"] == "copy"]
    assert (item["kind"], item["state"]) == ("source", "overdue")


def test_active_runs_are_counted(either_index: Index, tmp_path: Path) -> None:
    api = api_over(either_index, tmp_path)
    run = runs.insert_run(either_index, "crawl", trigger="request", actor="ann")
    assert api.json("/api/v1/overview")["active_runs"] == 1
    runs.finish_run(either_index, run, "ok", summary={})
    assert api.json("/api/v1/overview")["active_runs"] == 0


@pytest.mark.parametrize(
    ("schedule", "last_at", "now", "due"),
    [
        ("@every 15m", 0.0, 1800.0, None), ("@every 15m", 0.0, 1801.0, 1800.0), ("0 * * * *", 60.0, 2 * _HOUR, None),
        ("0 * * * *", 60.0, 2 * _HOUR + 1, 2 * _HOUR), ("0 0 * * *", 0.0, 24 * _HOUR, None),
    ],
)  # fmt: skip
def test_a_crawl_is_overdue_from_the_second_missed_start(schedule: str, last_at: float, now: float, due: float | None) -> None:
    assert overdue_since(schedule, last_at, now) == due
