"""Stages of runs, and crawls by day."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from federator.connector import StateError
from federator.connector.call_metrics import CallCounts, CallMeter
from federator.model import TableRecord
from federator.model.scopes import Scopes
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan
from federator.service import Federator
from federator.settings import Settings
from federator.stages.context import RunContext
from federator.stages.result import ProgressEvent, RunResult
from federator.store import Index, plans, run_stages, runs
from federator.store import tables as t
from tests.unit.api.conftest import Api
from tests.unit.api.test_overview import api_over
from tests.unit.api.worlds import as_caller


def _crawl(index: Index, days_ago: float, source: str, *, state: str, tables: int) -> None:
    started_at = (time.time() // 86_400 - days_ago) * 86_400 + 60
    run = runs.RunHandle(f"{int(started_at * 1000):011x}-{source}-{state}", "crawl", "api")
    row = {"id": run.id, "kind": "crawl", "state": state, "trigger": "cli", "actor": "api", "started_at": started_at}
    with index.write() as connection:
        connection.execute(t.run.insert(), [row])
        stage = {"run_id": run.id, "stage": "crawl", "subject": source, "state": state, "started_at": started_at}
        connection.execute(t.run_stage.insert(), [stage])
        # A crawl that read nothing has no result for its source.
        if state != "failed":
            connection.execute(t.run_source.insert(), [{"run_id": run.id, "source": source, "state": state, "tables": tables}])


def test_growth_and_failures_are_counted_by_day(either_index: Index, tmp_path: Path) -> None:
    _crawl(either_index, 40, "lake", state="ok", tables=1)
    _crawl(either_index, 2, "lake", state="ok", tables=7)
    _crawl(either_index, 2, "lake", state="partial", tables=9)
    _crawl(either_index, 1, "lake", state="failed", tables=0)
    body = api_over(either_index, tmp_path).json("/api/v1/overview/history")
    (lake,) = body["sources"]
    figures = [(day["crawls"], day["partial"], day["failed"], day["tables"]) for day in lake["days"]]
    assert (lake["source"], figures) == ("lake", [(2, 1, 0, 9), (1, 0, 1, None)])
    assert lake["days"][0]["date"] < lake["days"][1]["date"]


@pytest.mark.parametrize(
    ("scopes", "shown"),
    [(["lake"], ["lake"]), (["lake$sales", "copy$s$t"], []), ([], []), (["lake", "copy"], ["copy", "lake"])],
)
def test_the_history_is_that_of_sources_in_scope(
    either_index: Index, tmp_path: Path, scopes: list[str], shown: list[str]
) -> None:
    """Neither an entry nor the ETag depends on another source."""
    api = api_over(either_index, tmp_path)
    caller = as_caller(api.app, either_index, "viewer", Scopes.parse(scopes), "history")
    for source in shown:
        _crawl(either_index, 2, source, state="ok", tables=7)
    before = caller.get("/api/v1/overview/history")
    for source in {"lake", "copy", "vault"} - set(shown):
        _crawl(either_index, 1, source, state="ok", tables=9)
        _crawl(either_index, 3, source, state="failed", tables=0)
    after = caller.get("/api/v1/overview/history")
    assert [source["source"] for source in after.json()["sources"]] == shown
    assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])


def test_stages_of_a_run_have_times_and_calls(api: Api, index: Index) -> None:
    run = runs.insert_run(index, "sync", actor="api")
    run_stages.start_stage(index, run.id, "crawl", "lake")
    run_stages.finish_stage(index, run.id, "crawl", "lake", state="ok", detail="20 tables", calls=42, errors=1)
    run_stages.start_stage(index, run.id, "plan", "m")
    crawl, plan = api.json(f"/api/v1/runs/{run.id}")["stages"]
    assert (crawl["stage"], crawl["subject"], crawl["state"], crawl["calls"], crawl["errors"]) == ("crawl", "lake", "ok", 42, 1)
    assert crawl["started_at"] <= crawl["finished_at"] <= plan["started_at"]
    assert (plan["state"], plan["finished_at"], plan["calls"]) == ("running", None, None)
    runs.finish_run(index, run, "failed", summary={})
    assert api.json(f"/api/v1/runs/{run.id}")["stages"][1]["state"] == "interrupted"


def test_a_stage_records_its_calls_and_its_failure(api: Api, index: Index, settings_of: Callable[..., Settings]) -> None:
    run, meter = runs.insert_run(index, "sync", actor="api"), CallMeter()
    context = RunContext(settings_of(), index, lambda _: None, threading.Event(), run, RunResult(run.id, "sync"))
    meter.record_call("lake", "list_tables", 0.1)
    meter.record_call("lake", "describe_table", 0.1, {"17": 1})
    counts: CallCounts = meter.drain()
    with context.stage("crawl", "lake") as done:
        assert api.json(f"/api/v1/runs/{run.id}")["stages"][0]["state"] == "running"
        done("partial", "1 table", counts)
    with pytest.raises(StateError), context.stage("plan", "m"):
        raise StateError("the target is away")
    crawl, plan = api.json(f"/api/v1/runs/{run.id}")["stages"]
    assert (crawl["state"], crawl["detail"], crawl["calls"], crawl["errors"]) == ("partial", "1 table", 2, 1)
    assert (plan["state"], plan["detail"], plan["calls"]) == ("failed", "the target is away", None)


def test_the_stage_that_applies_a_plan_names_it(index: Index, settings_of: Callable[..., Settings]) -> None:
    rule = settings_of().mirror_rule("m")
    new = TableRecord("copy", ("sales", "new"), "s3://lake/new")
    change = Change(Action.DECLARE_TABLE, "copy", "sales$new", "lake", "sales$new", "new at the origin", after=new)
    plan = Plan(rule.name, rule.digest, 1, 1, (change,))
    with index.write() as connection:
        body = json.dumps(plan.to_json())
        plans.save_plan(connection, digest=plan.digest, mirror="m", run_id="r", state="ready", body=body)
        connection.execute(t.source.update().values(config_digest=settings_of().source("lake").digest))
    applied: list[str | None] = []

    def report(event: ProgressEvent) -> None:
        if event.stage == "change":
            with index.read() as connection:
                applied.extend(connection.execute(select(t.run_stage.c.plan).where(t.run_stage.c.stage == "apply")).scalars())

    federator = Federator(settings_of(), index, report)
    result = federator.apply([(plan, plan.digest)])
    assert applied == [plan.digest], result.errors
