"""Runs, requests, plans, jobs and probes over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from federator import audit
from federator.api.app import create_app
from federator.model.scopes import EVERYTHING
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.settings import Settings
from federator.store import Index, audit_log, job_states, open_index, plans, requests, run_stages, runs, tokens
from tests.unit.api import worlds
from tests.unit.api.conftest import Api


def add_plan(index: Index, state: str, *, mirror: str = "m", run: str = "r") -> str:
    plan = Plan(mirror, "d", 1, 1, holds=(Hold("max_delete_percent", "too much"),) if state == "held" else ())
    with index.write() as connection:
        plans.save_plan(connection, digest=plan.digest, mirror=mirror, run_id=run, state=state, body=json.dumps(plan.to_json()))
    return plan.digest


def test_a_run_is_asked_for_and_queued(api: Api, index: Index) -> None:
    response = api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]})
    assert response.status_code == 202
    request = response.json()
    assert (request["kind"], request["state"], request["run_id"]) == ("crawl", "queued", None)
    assert api.json(response.headers["location"]) == request
    with index.read() as connection:
        (row,) = requests.list_queued(connection, requests.RUN_KINDS)
    assert (row.id, row.argument, row.actor) == (request["id"], {"sources": ["lake"]}, "api")
    api.post("/api/v1/runs", json={"kind": "crawl", "full": True})
    with index.read() as connection:
        assert requests.list_queued(connection, requests.RUN_KINDS)[-1].argument == {"full": True}


def test_equal_requests_are_one_and_those_of_a_principal_are_bounded(api: Api, index: Index) -> None:
    first = api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).json()
    assert api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).json()["id"] == first["id"]
    assert api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake", "lake"]}).json()["id"] == first["id"]
    with index.write() as connection:
        assert requests.claim_request(connection, first["id"])
        for number in range(19):
            requests.queue_request(connection, "crawl", {"sources": [f"s{number}"]}, actor="api")
    refused = api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]})
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["code"]) == (429, "5", 21)
    with index.write() as connection:
        requests.set_request_state(connection, first["id"], requests.DONE)
    assert api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "crawl", "sources": ["nope"]}, {"kind": "sync", "mirrors": ["nope"]}, {"kind": "crawl", "mirrors": ["m"]},
        {"kind": "drop"}, {"kind": "crawl", "more": 1}, {}, [], {"kind": "apply"}, {"kind": "crawl", "sources": ["\0"]},
        {"kind": "crawl", "sources": "lake"}, {"kind": "sync", "full": True},
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_is_refused_at_once(api: Api, index: Index, body: object) -> None:
    response = api.post("/api/v1/runs", json=body)
    assert (response.status_code, response.json()["code"]) == (400, 13)
    with index.read() as connection:
        assert requests.list_queued(connection, requests.RUN_KINDS) == []


def test_texts_that_are_no_unicode_are_refused(api: Api) -> None:
    content = b'{"kind":"crawl","sources":["\\ud800"],"\\udfff":1}'
    response = api.post("/api/v1/runs", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400


def test_runs_are_listed_newest_first_with_pages(api: Api, index: Index) -> None:
    created = [runs.insert_run(index, "crawl", actor=f"a{number}") for number in range(5)]
    runs.finish_run(index, created[0], "ok", summary={"tables": 3})
    result: list[str] = []
    url = "/api/v1/runs?limit=2"
    while True:
        page = api.json(url)
        result += [run["id"] for run in page["runs"]]
        if page["next"] is None:
            break
        url = f"/api/v1/runs?limit=2&cursor={page['next']}"
    assert sorted(result, reverse=True) == result
    assert set(result) == {run.id for run in created}


def test_a_list_says_what_each_run_is_about(api: Api, index: Index) -> None:
    crawl, sync = runs.insert_run(index, "crawl"), runs.insert_run(index, "sync")
    for run, stage, subject in ((crawl, "crawl", "lake"), (crawl, "verify", "lake"), (sync, "crawl", "copy")):
        run_stages.start_stage(index, run.id, stage, subject)

    def subjects(query: str = "") -> dict[str, list[str]]:
        return {run["id"]: run["subjects"] for run in api.json(f"/api/v1/runs{query}")["runs"]}

    assert subjects() == {crawl.id: ["lake"], sync.id: ["copy"]}, "a sync that has planned nothing yet reads its sources"
    run_stages.start_stage(index, sync.id, "plan", "m")
    assert subjects() == {crawl.id: ["lake"], sync.id: ["m"]}
    assert subjects("?subject=lake") == {crawl.id: ["lake"]}
    assert list(subjects("?subject=m")) == list(subjects("?subject=copy")) == [sync.id]
    assert subjects("?subject=nope") == {}

    def problems() -> tuple[str | None, str | None]:
        by_run = {run["id"]: run["problem"] for run in api.json("/api/v1/runs")["runs"]}
        return by_run[sync.id], by_run[crawl.id]

    assert problems() == (None, None)
    for subject, state, detail in (("copy", "partial", "1 listing failed"), ("lake", "failed", "lake cannot be reached")):
        run_stages.start_stage(index, sync.id, "crawl", subject)
        run_stages.finish_stage(index, sync.id, "crawl", subject, state=state, detail=detail, calls=1, errors=1)
    assert problems() == ("lake cannot be reached", None)
    runs.finish_run(index, crawl, "failed", summary={"errors": {"drift": "no index"}})
    assert problems() == ("lake cannot be reached", "no index")
    runs.finish_run(index, sync, "failed", summary={}, error="no Spark")
    assert problems() == ("no Spark", "no index")


def test_one_run_says_its_progress_and_then_its_summary(api: Api, index: Index) -> None:
    run = runs.insert_run(index, "crawl")
    runs.set_progress(index, run, "crawl lake: running")
    assert api.json(f"/api/v1/runs/{run.id}")["progress"] == "crawl lake: running"
    runs.record_source_result(index, run, "lake", revision=3, state="ok", tables=7)
    runs.finish_run(index, run, "ok", summary={"tables": 7})
    detail = api.json(f"/api/v1/runs/{run.id}")
    assert (detail["state"], detail["progress"], detail["summary"], detail["sources"][0]["tables"]) == (
        "ok",
        None,
        {"tables": 7},
        7,
    )
    assert detail["finished_at"].endswith("Z")
    assert api.get(f"/api/v1/runs/{run.id[:6]}").status_code == 404


def test_a_run_of_a_worker_can_be_cancelled(api: Api, index: Index) -> None:
    run = runs.insert_run(index, "crawl")
    assert api.post(f"/api/v1/runs/{run.id}/cancel").status_code == 409
    with index.write() as connection:
        request = requests.queue_request(connection, "crawl", {}, actor="api")
        requests.set_request_state(connection, request.id, requests.RUNNING, run_id=run.id)
    assert api.post(f"/api/v1/runs/{run.id}/cancel").status_code == 202
    with index.read() as connection:
        (control,) = requests.list_queued(connection, requests.CONTROL_KINDS)
    assert (control.kind, control.argument) == ("cancel", {"request": request.id})


@pytest.mark.parametrize("number", ["0", "-1", "x", str(2**63), "1"])
def test_requests_that_are_none(api: Api, number: str) -> None:
    assert api.get(f"/api/v1/requests/{number}").status_code == (404 if number == "1" else 400)


def test_a_held_plan_is_approved_and_then_applied(api: Api, index: Index) -> None:
    digest = add_plan(index, "held")
    assert api.json(f"/api/v1/plans/{digest}")["plan"]["held"] == ["max_delete_percent: too much"]
    assert api.post("/api/v1/runs", json={"kind": "apply", "plans": [digest]}).status_code == 409
    decided = api.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": f'"{digest}"'}).json()
    assert (decided["state"], decided["decided_by"]) == ("approved", "api")
    assert api.post("/api/v1/runs", json={"kind": "apply", "plans": [digest]}).status_code == 202
    audit.seal_pending(index)
    assert "plan_approved" in [row.kind for row in audit_log.list_events(index)]


def test_a_rejected_plan_is_not_applied_and_an_applied_one_not_decided(api: Api, index: Index) -> None:
    digest = add_plan(index, "ready")
    assert api.post(f"/api/v1/plans/{digest}/reject", headers={"If-Match": f'"{digest}"'}).json()["state"] == "rejected"
    assert api.post("/api/v1/runs", json={"kind": "apply", "plans": [digest]}).status_code == 409
    with index.write() as connection:
        plans.record_decision(connection, digest, "applied", "ann")
    assert api.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": f'"{digest}"'}).status_code == 409
    assert api.get(f"/api/v1/plans/{digest[:8]}").status_code == 404
    assert api.post("/api/v1/plans/none/approve", headers={"If-Match": "none"}).status_code == 404


def test_what_a_revoked_token_has_queued_is_not_executed(index: Index, settings_of: Callable[..., Settings]) -> None:
    settings = settings_of(serve={"auth": "required"})
    for name in ("ann", "ben"):
        api = worlds.as_caller(create_app(settings), index, "operator", EVERYTHING, name)
        assert api.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).status_code == 202
    tokens.revoke_token(index, "ann", actor="tests")
    with index.read() as connection:
        assert [request.actor for request in requests.list_queued(connection, requests.RUN_KINDS)] == ["token:ben"]


@pytest.mark.parametrize("action", ["pause", "cancel"])
def test_the_controls_of_a_principal_are_bounded(api: Api, index: Index, action: str) -> None:
    """The worker's loop executes them before anything else, 100 at a time: many of one principal would delay another's cancellation."""
    run = runs.insert_run(index, "crawl")
    with index.write() as connection:
        request = requests.queue_request(connection, "crawl", {}, actor="api")
        requests.set_request_state(connection, request.id, requests.RUNNING, run_id=run.id)
    url = "/api/v1/jobs/sync:m/pause" if action == "pause" else f"/api/v1/runs/{run.id}/cancel"
    assert {api.post(url).status_code for _ in range(20)} == {202}
    assert api.post(url).status_code == 429


def test_a_job_says_when_it_is_due_next(api: Api, index: Index) -> None:
    def sync() -> dict[str, Any]:
        return next(job for job in api.json("/api/v1/jobs")["jobs"] if job["name"] == "sync:m")

    assert sync()["next_at"] is None
    with index.write() as connection:
        job_states.record_job_start(connection, "sync:m", "r")
    started, due = (datetime.fromisoformat(sync()[key]) for key in ("last_started_at", "next_at"))
    assert due - started == timedelta(minutes=15)
    with index.write() as connection:
        job_states.set_paused(connection, "sync:m", True)
    assert sync()["next_at"] is None


def test_jobs_are_shown_paused_and_resumed(api: Api, index: Index) -> None:
    with index.write() as connection:
        job_states.set_paused(connection, "sync:m", True)
    crawl, sync = api.json("/api/v1/jobs")["jobs"]
    assert (crawl["name"], crawl["schedule"], crawl["paused"]) == ("crawl:lake", "*/15 * * * *", False)
    assert (sync["name"], sync["paused"]) == ("sync:m", True)
    assert api.post("/api/v1/jobs/sync:m/resume").json()["kind"] == "resume"
    assert api.post("/api/v1/jobs/crawl:lake/pause").status_code == 202
    assert api.post("/api/v1/jobs/nope/pause").status_code == 404
    request = api.post("/api/v1/jobs/crawl:lake/run").json()
    with index.read() as connection:
        assert requests.get_request(connection, request["id"]).argument == {"sources": ["lake"], "job": "crawl:lake"}
    assert api.post("/api/v1/jobs/nope/run").status_code == 404


def test_probes(api: Api, settings_of: Callable[..., Settings], tmp_path: Path) -> None:
    assert api.json("/healthz") == api.json("/readyz") == {"status": "ok"}
    away = Api(create_app(settings_of(index={"url": "sqlite:///empty.db"})))
    assert away.get("/healthz").status_code == 200
    assert away.get("/readyz").json()["detail"] == "the index has no tables yet"
    response = away.get("/api/v1/tree")
    assert (response.status_code, response.json()["title"]) == (503, "Index unavailable")


def test_a_database_that_is_away_is_a_problem_503(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "s3cret")
    url = "postgresql+psycopg://nobody:${DATABASE_PASSWORD}@127.0.0.1:1/none"
    away = Api(create_app(settings_of(index={"url": url})))
    assert away.get("/healthz").status_code == 200
    for path in ("/readyz", "/api/v1/tree", "/api/v1/runs"):
        response = away.get(path)
        assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
        assert "s3cret" not in response.text


def test_an_outage_of_a_catalog_does_not_matter(api: Api, settings_of: Callable[..., Settings]) -> None:
    hive = {"impl": "hive3", "hive3.uri": "thrift://127.0.0.1:1"}
    app = Api(create_app(settings_of(sources={"lake": hive, "copy": hive}, mirrors={})))
    assert app.get("/readyz").status_code == 200
    assert app.json("/api/v1/tables/lake$sales$orders")["freshness"]["state"] == "partial"


def test_the_process_never_imports_spark(api: Api, tmp_path: Path) -> None:
    open_index("sqlite:///federator.db", base=tmp_path).close()
    (tmp_path / "federator.toml").write_text('[sources.lake]\nimpl = "federator.testing:CONNECTOR"\n')
    script = """
import sys
import asyncio, httpx
import federator.api.server
from federator.api.app import create_app
async def ask():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app()), base_url="http://localhost") as client:
        for url in ("/ui/", "/docs", "/api/v1/tree?path=lake&depth=2", "/api/v1/sources", "/api/v1/runs", "/api/v1/jobs", "/readyz"):
            assert (await client.get(url)).status_code == 200, url
        assert (await client.post("/api/v1/runs", json={"kind": "crawl"})).status_code == 202
asyncio.run(ask())
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("pyspark", "py4j", "pandas", "lance")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_the_id_of_a_request_does_not_count_requests(api: Api) -> None:
    first, second = (api.post("/api/v1/runs", json={"kind": "crawl", "full": full}).json()["id"] for full in (False, True))
    assert second - first > 1
    assert 2**50 < first < second < 2**53


def test_runs_are_filtered_by_kind_state_and_start(api: Api, index: Index) -> None:
    made = {}
    for kind, state in (("crawl", "ok"), ("crawl", "failed"), ("sync", "ok")):
        handle = runs.insert_run(index, kind, trigger="cli", actor="api")
        runs.finish_run(index, handle, state, summary={})
        made[kind, state] = handle.id

    def ids(**filters: str) -> list[str]:
        found, cursor = [], None
        while True:
            page = api.json("/api/v1/runs", params={**filters, "limit": "1", **({"cursor": cursor} if cursor else {})})
            found += [run["id"] for run in page["runs"]]
            if (cursor := page["next"]) is None:
                return [run for run in found if run in made.values()]

    assert ids(kind="crawl") == [made["crawl", "failed"], made["crawl", "ok"]]
    assert ids(state="ok") == [made["sync", "ok"], made["crawl", "ok"]]
    assert ids(kind="sync", state="failed") == []
    assert len(ids(since="-1h")) == 3
    assert ids(since="now") == []
    refused = api.get("/api/v1/runs?since=yesterday")
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
