"""History over HTTP: ``as_of`` of the tree, a table and the datasets, and differences, within the principal's scopes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from federator.api.app import create_app
from federator.model import Scopes
from federator.model.report_kinds import ReportKind
from federator.model.scopes import EVERYTHING
from federator.settings import Settings
from federator.store import Index, reports, retention, runs, tokens
from federator.store.leases import acquire_lease
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api import worlds
from tests.unit.api.conftest import Api


@pytest.fixture
def changed_at(index: Index) -> float:
    """A time after which a table was added, one moved and one taken away."""
    at = time.time()
    fill(
        index, "lake", table("lake", "sales", "t00", location="s3://b/new"), table("lake", "hr", "new"), gone=[("sales", "t01")]
    )
    return at


def when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def test_the_tree_and_a_table_as_they_were(api: Api, changed_at: float) -> None:
    request = {"path": "lake$sales", "as_of": when(changed_at)}
    names, cursor = [], None
    while True:
        page = api.json("/api/v1/tree", params={**request, "limit": 10, **({"cursor": cursor} if cursor else {})})
        names += [node["name"] for node in page["nodes"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert (len(names), "t01" in names) == (27, True)
    assert "t01" not in [node["name"] for node in api.json("/api/v1/tree", params={"path": "lake$sales"})["nodes"]]
    was = api.json("/api/v1/tables/lake%24sales%24t00", params={"as_of": when(changed_at)})
    assert (was["location"], was["revision"]) == ("s3://lake/sales/t00.lance", 2)
    assert api.json("/api/v1/tables/lake%24sales%24t00")["location"] == "s3://b/new"
    assert api.json("/api/v1/tree", params={"as_of": "1970-01-02"})["nodes"] == []
    secret = api.json("/api/v1/tables/lake%24sales%24orders", params={"as_of": when(changed_at)})
    assert "hunter2" not in str(secret)
    locations = api.json("/api/v1/datasets", params={"as_of": when(changed_at), "limit": 1000})["datasets"]
    assert "s3://lake/sales/t01.lance" in [location["location"] for location in locations]
    (declared,) = api.json("/api/v1/datasets/s3%3A%2F%2Flake%2Fsales%2Ft01.lance", params={"as_of": when(changed_at)})[
        "declarations"
    ]
    assert declared["id"] == "lake$sales$t01"


@pytest.mark.parametrize("view", ["source", "merged"])
def test_both_trees_as_they_were_go_several_levels_deep(api: Api, index: Index, changed_at: float, view: str) -> None:
    fill(index, "copy", namespace("copy", "sales"), table("copy", "sales", "t01", location="s3://copy/t01"))
    request = {"view": view, "depth": 3, "as_of": when(changed_at)}
    whole = api.json("/api/v1/tree", params=request)
    assert whole["as_of"] == datetime.fromtimestamp(changed_at, UTC).isoformat().replace("+00:00", "Z")
    level = whole["nodes"] if view == "merged" else whole["nodes"][0]["children"]
    spaces = {node["name"]: [child["name"] for child in node["children"]] for node in level}
    assert (len(spaces["sales"]), "t01" in spaces["sales"]) == (27, True)
    few = api.json("/api/v1/tree", params={**request, "path": "lake" if view == "source" else "", "depth": 2, "limit": 5})
    (part,) = [node for node in few["nodes"] if node["next"]]
    # A page that goes on where the first one ended shows the same moment, whatever is now.
    fill(index, "lake", gone=[(part["name"], name) for name in spaces[part["name"]][-2:]])
    rest = api.json("/api/v1/tree", params={**request, "depth": 1, "path": part["id"], "cursor": part["next"]})
    assert [node["name"] for node in part["children"] + rest["nodes"]] == spaces[part["name"]]
    assert api.get("/api/v1/tree", params={**request, "path": "lake$nope" if view == "source" else "nope"}).status_code == 404


def test_the_merged_view_knows_old_conflicts(api: Api, index: Index, changed_at: float) -> None:
    fill(index, "copy", namespace("copy", "sales"), table("copy", "sales", "t00", location="s3://lake/sales/t00.lance"))

    def t00(**params: str) -> tuple[bool, list[str]]:
        page = api.json("/api/v1/tree", params={"view": "merged", "path": "sales", "limit": 1000, **params})
        (result,) = [node for node in page["nodes"] if node["name"] == "t00"]
        return result["conflict"], [home["id"] for home in result["homes"]]

    assert t00() == (True, ["copy$sales$t00", "lake$sales$t00"])
    assert t00(as_of=when(changed_at)) == (False, ["lake$sales$t00"])


def test_differences(api: Api, changed_at: float) -> None:
    request = {"from": when(changed_at), "to": "now", "limit": 2}
    page = api.json("/api/v1/diff", params=request)
    rest = api.json("/api/v1/diff", params={**request, "cursor": page["next"]})
    assert [(d["id"], d["how"], d["by"]) for d in page["differences"] + rest["differences"]] == [
        ("lake$hr$new", "added", None), ("lake$sales$t00", "changed", None), ("lake$sales$t01", "removed", None),
    ]  # fmt: skip
    assert page["totals"] == {"added": 1, "removed": 1, "changed": 1}
    assert page["differences"][1]["fields"][0]["after"] == "s3://b/new"
    assert rest["next"] is None
    newest = api.json("/api/v1/diff", params={**request, "newest": True})
    assert [d["id"] for d in newest["differences"]] == ["lake$hr$new", "lake$sales$t00"]
    assert newest["next"] is None
    refused = api.get("/api/v1/diff", params={**request, "newest": True, "cursor": page["next"]})
    assert refused.status_code == 400
    only = api.json("/api/v1/diff", params={"from": when(changed_at), "path": "lake$sales", "kind": "removed"})
    assert [d["id"] for d in only["differences"]] == ["lake$sales$t01"]


def test_a_scope_bounds_the_past_too(api: Api, index: Index, changed_at: float) -> None:
    secret, _ = tokens.create_token(index, "hr", role="viewer", scopes=Scopes.parse(["lake$hr"]), lifetime=None, actor="tests")
    hr = replace(api, headers={"Authorization": f"Bearer {secret}"})
    page = hr.json("/api/v1/diff", params={"from": when(changed_at)})
    assert ([d["id"] for d in page["differences"]], page["totals"]["changed"]) == (["lake$hr$new"], 0)
    assert [n["name"] for n in hr.json("/api/v1/tree", params={"path": "lake", "as_of": "now"})["nodes"]] == ["hr"]
    assert hr.get("/api/v1/tables/lake%24sales%24t00", params={"as_of": "now"}).status_code == 404
    assert hr.json("/api/v1/datasets", params={"as_of": when(changed_at)})["datasets"] == []
    assert hr.get("/api/v1/reports").status_code == 403
    assert hr.post("/api/v1/reports", json={"report": "drift"}).status_code == 403


def test_refused_parameters_have_a_reason(api: Api, index: Index, changed_at: float) -> None:
    for text in ("tomorrow", "2199-01-01", "ffff"):
        response = api.get("/api/v1/tree", params={"as_of": text})
        assert (response.status_code, bool(response.json()["hint"])) == (400, True)
    run = runs.insert_run(index, "prune")
    with acquire_lease(index, "source:lake") as lease:
        retention.prune_source(index, lease, "lake", time.time(), run)
    response = api.get("/api/v1/tree", params={"path": "lake", "as_of": when(changed_at)})
    assert (response.status_code, response.json()["title"]) == (409, "Beyond horizon")
    assert "is kept from" in response.json()["detail"]
    # The retention of a source out of scope is neither told nor obeyed.
    secret, _ = tokens.create_token(index, "c", role="viewer", scopes=Scopes.parse(["copy"]), lifetime=None, actor="tests")
    copy = replace(api, headers={"Authorization": f"Bearer {secret}"})
    assert copy.json("/api/v1/tree", params={"as_of": when(changed_at)})["nodes"] == []


def test_a_report_is_asked_for_by_name(api: Api, index: Index) -> None:
    response = api.post("/api/v1/reports", json={"report": "inventory"})
    assert (response.status_code, response.json()["kind"]) == (202, "report")
    assert api.post("/api/v1/reports", json={"report": "nothing"}).status_code == 400
    assert api.json("/api/v1/reports") == {"reports": [], "next": None}
    assert api.get("/api/v1/reports/x").status_code == 404


def test_a_report_of_the_audit_log_is_for_administrators(
    index: Index, settings_of: Callable[..., Settings], tmp_path: Path
) -> None:
    """It has the events of the audit log and the list of tokens."""
    app = create_app(settings_of(serve={"auth": "required"}))
    callers = {role: worlds.as_caller(app, index, role, EVERYTHING, role) for role in ("viewer", "operator", "admin")}
    kinds: tuple[ReportKind, ...] = ("access", "drift")
    for kind in kinds:
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "report.json").write_text("{}")
        files = (reports.ReportFile("report.json", 2),)
        with index.write() as connection:
            reports.insert_report(connection, reports.StoredReport(kind, kind, kind, "x", 1.0, str(tmp_path / kind), files))
    for role, caller in callers.items():
        statuses = [caller.get(f"/api/v1/reports/access{file}").status_code for file in ("", "/report.json")]
        statuses.append(caller.post("/api/v1/reports", json={"report": "access"}).status_code)
        assert statuses == ([200, 200, 202] if role == "admin" else [404, 404, 403]), role
        listed = [report["kind"] for report in caller.json("/api/v1/reports")["reports"]]
        assert listed == (["drift", "access"] if role == "admin" else ["drift"])
        assert caller.get("/api/v1/reports/drift/report.json").status_code == 200
    app.state.index.close()


def test_snapshots_that_can_be_selected_are_the_ends_of_runs_that_touch_catalogs(api: Api, index: Index) -> None:
    ids = []
    for kind in ("crawl", "verify", "sync", "report"):
        handle = runs.insert_run(index, kind, trigger="cli", actor="api")
        runs.finish_run(index, handle, "ok", summary={})
        ids.append(handle.id)
    runs.insert_run(index, "crawl", trigger="cli", actor="api")  # has not finished
    first = api.json("/api/v1/snapshots?limit=1")
    second = api.json("/api/v1/snapshots", params={"limit": 1, "cursor": first["next"]})
    assert [(each["run"], each["kind"]) for each in (*first["snapshots"], *second["snapshots"])] == [
        (ids[2], "sync"),
        (ids[0], "crawl"),
    ]
    for snapshot in api.json("/api/v1/snapshots")["snapshots"]:
        assert api.json("/api/v1/tree", params={"as_of": snapshot["run"]})["as_of"] is not None
