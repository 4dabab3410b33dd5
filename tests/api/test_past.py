"""The past over HTTP: as_of on the tree, a table and the datasets, and what changed, each within the caller's scopes."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from federator.index import Index, retention, runs, tokens
from federator.index.leases import hold
from federator.model import Scopes
from tests.api.conftest import Api
from tests.integration.index_support import fill, namespace, table


@pytest.fixture
def then(index: Index) -> float:
    """A time after which a table was added, one moved and one taken away."""
    at = time.time()
    fill(
        index, "lake", table("lake", "sales", "t00", location="s3://b/new"), table("lake", "hr", "new"), gone=[("sales", "t01")]
    )
    return at


def when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def test_the_tree_and_a_table_as_they_were(api: Api, then: float) -> None:
    asked = {"path": "lake$sales", "as_of": when(then)}
    names, cursor = [], None
    while True:
        page = api.json("/api/v1/tree", params={**asked, "limit": 10, **({"cursor": cursor} if cursor else {})})
        names += [node["name"] for node in page["nodes"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert (len(names), "t01" in names) == (27, True)
    assert "t01" not in [node["name"] for node in api.json("/api/v1/tree", params={"path": "lake$sales"})["nodes"]]
    was = api.json("/api/v1/tables/lake%24sales%24t00", params={"as_of": when(then)})
    assert (was["location"], was["revision"]) == ("s3://lake/sales/t00.lance", 2)
    assert api.json("/api/v1/tables/lake%24sales%24t00")["location"] == "s3://b/new"
    assert api.json("/api/v1/tree", params={"as_of": "1970-01-02"})["nodes"] == []
    secret = api.json("/api/v1/tables/lake%24sales%24orders", params={"as_of": when(then)})
    assert "hunter2" not in str(secret)
    places = api.json("/api/v1/datasets", params={"as_of": when(then), "limit": 1000})["datasets"]
    assert "s3://lake/sales/t01.lance" in [place["location"] for place in places]
    (declared,) = api.json("/api/v1/datasets/s3%3A%2F%2Flake%2Fsales%2Ft01.lance", params={"as_of": when(then)})["declarations"]
    assert declared["id"] == "lake$sales$t01"


@pytest.mark.parametrize("view", ["source", "merged"])
def test_both_trees_as_they_were_go_several_levels_deep(api: Api, index: Index, then: float, view: str) -> None:
    fill(index, "copy", namespace("copy", "sales"), table("copy", "sales", "t01", location="s3://copy/t01"))
    asked = {"view": view, "depth": 3, "as_of": when(then)}
    whole = api.json("/api/v1/tree", params=asked)
    assert whole["as_of"] == datetime.fromtimestamp(then, UTC).isoformat().replace("+00:00", "Z")
    level = whole["nodes"] if view == "merged" else whole["nodes"][0]["children"]
    spaces = {node["name"]: [child["name"] for child in node["children"]] for node in level}
    assert (len(spaces["sales"]), "t01" in spaces["sales"]) == (27, True)
    few = api.json("/api/v1/tree", params={**asked, "path": "lake" if view == "source" else "", "depth": 2, "limit": 5})
    (part,) = [node for node in few["nodes"] if node["next"]]
    # A page that goes on where the first one ended shows the same moment, whatever is now.
    fill(index, "lake", gone=[(part["name"], name) for name in spaces[part["name"]][-2:]])
    rest = api.json("/api/v1/tree", params={**asked, "depth": 1, "path": part["id"], "cursor": part["next"]})
    assert [node["name"] for node in part["children"] + rest["nodes"]] == spaces[part["name"]]
    assert api.get("/api/v1/tree", params={**asked, "path": "lake$nope" if view == "source" else "nope"}).status_code == 404


def test_the_merged_view_knows_old_conflicts(api: Api, index: Index, then: float) -> None:
    fill(index, "copy", namespace("copy", "sales"), table("copy", "sales", "t00", location="s3://lake/sales/t00.lance"))

    def t00(**asked: str) -> tuple[bool, list[str]]:
        page = api.json("/api/v1/tree", params={"view": "merged", "path": "sales", "limit": 1000, **asked})
        (found,) = [node for node in page["nodes"] if node["name"] == "t00"]
        return found["conflict"], [home["id"] for home in found["homes"]]

    assert t00() == (True, ["copy$sales$t00", "lake$sales$t00"])
    assert t00(as_of=when(then)) == (False, ["lake$sales$t00"])


def test_what_changed(api: Api, then: float) -> None:
    asked = {"from": when(then), "to": "now", "limit": 2}
    page = api.json("/api/v1/diff", params=asked)
    rest = api.json("/api/v1/diff", params={**asked, "cursor": page["next"]})
    assert [(d["id"], d["how"], d["by"]) for d in page["differences"] + rest["differences"]] == [
        ("lake$hr$new", "added", None), ("lake$sales$t00", "changed", None), ("lake$sales$t01", "removed", None),
    ]  # fmt: skip
    assert page["totals"] == {"added": 1, "removed": 1, "changed": 1}
    assert page["differences"][1]["fields"][0]["after"] == "s3://b/new"
    assert rest["next"] is None
    only = api.json("/api/v1/diff", params={"from": when(then), "path": "lake$sales", "kind": "removed"})
    assert [d["id"] for d in only["differences"]] == ["lake$sales$t01"]


def test_a_scope_bounds_the_past_too(api: Api, index: Index, then: float) -> None:
    secret, _ = tokens.create(index, "hr", role="viewer", scopes=Scopes.parse(["lake$hr"]), lifetime=None, actor="tests")
    hr = replace(api, headers={"Authorization": f"Bearer {secret}"})
    page = hr.json("/api/v1/diff", params={"from": when(then)})
    assert ([d["id"] for d in page["differences"]], page["totals"]["changed"]) == (["lake$hr$new"], 0)
    assert [n["name"] for n in hr.json("/api/v1/tree", params={"path": "lake", "as_of": "now"})["nodes"]] == ["hr"]
    assert hr.get("/api/v1/tables/lake%24sales%24t00", params={"as_of": "now"}).status_code == 404
    assert hr.json("/api/v1/datasets", params={"as_of": when(then)})["datasets"] == []
    assert hr.get("/api/v1/reports").status_code == 403
    assert hr.post("/api/v1/reports", json={"report": "drift"}).status_code == 403


def test_what_cannot_be_answered_says_why(api: Api, index: Index, then: float) -> None:
    for text in ("tomorrow", "2199-01-01", "ffff"):
        answer = api.get("/api/v1/tree", params={"as_of": text})
        assert (answer.status_code, bool(answer.json()["hint"])) == (400, True)
    run = runs.start(index, "prune")
    with hold(index, "source:lake") as lease:
        retention.prune(index, lease, "lake", time.time(), run)
    answer = api.get("/api/v1/tree", params={"path": "lake", "as_of": when(then)})
    assert (answer.status_code, answer.json()["title"]) == (409, "Beyond horizon")
    assert "is kept from" in answer.json()["detail"]


def test_a_report_is_asked_for_by_name(api: Api, index: Index) -> None:
    answer = api.post("/api/v1/reports", json={"report": "inventory"})
    assert (answer.status_code, answer.json()["kind"]) == (202, "report")
    assert api.post("/api/v1/reports", json={"report": "nothing"}).status_code == 400
    assert api.json("/api/v1/reports") == {"reports": [], "next": None}
    assert api.get("/api/v1/reports/x").status_code == 404
