"""Large plans are read by a process of their own. Their responses are those of other plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from federator.api import plan_access, plan_decisions
from federator.api.app import create_app
from federator.model.scopes import Scopes
from federator.planning.changes import Change, Refusal
from federator.runtime.redaction import register_secret
from federator.settings import Settings
from federator.store import Index, open_index, plans
from federator.store.plans import parse_body
from federator.views import object_decisions
from federator.views import plans as plans_view
from tests.fixtures.index_content import fill, table
from tests.unit.api import worlds
from tests.unit.api.conftest import Api
from tests.unit.api.mcp_support import Caller
from tests.unit.api.service_process import Process
from tests.unit.api.test_plans_in_part import _declare, _mixed, _save

SECRET = "a-secret-that-a-catalog-repeats"

_MIRROR = """
[instance]
id = "test"
[sources.copy]
impl = "federator.testing:CONNECTOR"
file = "{directory}/copy.json"
[mirrors.m]
from = "lake"
to = "copy"
"""


@pytest.fixture
def ask(index: Index, settings_of: Callable[..., Settings]) -> Iterator[Callable[..., Api]]:
    app = create_app(settings_of(serve={"auth": "required"}))
    yield lambda role, *scopes: worlds.as_caller(app, index, role, Scopes.parse(scopes), f"{role} {' '.join(scopes)}")
    app.state.spool.close()


@pytest.mark.parametrize("scopes", [("*",), ("lake$sales", "copy$sales"), ("lake$other", "copy$sales")])
def test_a_large_plan_has_the_response_of_any_other(
    ask: Callable[..., Api], index: Index, monkeypatch: pytest.MonkeyPatch, scopes: tuple[str, ...]
) -> None:
    register_secret(SECRET)
    plan = _mixed()
    plan = replace(plan, changes=(*plan.changes, _declare("sales$z", "sales$z", reason=f"as noted: {SECRET}")))
    url = f"/api/v1/plans/{_save(index, plan)}"
    api = ask("operator", *scopes)
    expected = api.get(url)
    assert SECRET not in expected.text
    monkeypatch.setattr(plans_view, "LARGE_PLAN", 0)
    # Not in this process.
    monkeypatch.setattr(plans_view, "get_visible_plan", None)
    response = api.get(url)
    assert (response.status_code, response.json()) == (expected.status_code, expected.json())
    if response.status_code == 200:
        assert response.headers["etag"] == expected.headers["etag"]
        unchanged = api.get(url, headers={"If-None-Match": response.headers["etag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_a_decision_about_a_large_plan_has_its_response(
    ask: Callable[..., Api], index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = _save(index, _mixed())
    url, operator = f"/api/v1/plans/{digest}", ask("operator", "*")
    monkeypatch.setattr(plans_view, "LARGE_PLAN", 0)
    # Not in this process.
    for module in (plan_access, plan_decisions):
        monkeypatch.setattr(module, "get_whole_plan", None)
    match = {"If-Match": digest}
    rejected = operator.post(f"{url}/reject", headers=match, json={"comment": "not now"})
    assert (rejected.status_code, rejected.json()["state"], len(rejected.json()["plan"]["changes"])) == (200, "rejected", 6)
    refused = operator.post(f"{url}/approve", headers=match)
    assert (refused.status_code, "was rejected by" in refused.json()["detail"]) == (409, True)
    assert "--overrule" in refused.json()["hint"]
    run = {"kind": "apply", "plans": [digest]}
    assert (
        operator.post(f"{url}/apply", headers=match).status_code == operator.post("/api/v1/runs", json=run).status_code == 409
    )
    assert operator.post(f"{url}/approve", headers={"If-Match": "another"}).status_code == 412
    assert ask("operator", "lake$sales", "copy$sales").post(f"{url}/approve", headers=match).status_code == 403
    approved = operator.post(f"{url}/approve", headers={"If-Match": rejected.json()["if_match"]})
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")
    queued = operator.post(f"{url}/apply", headers=match)
    assert (queued.status_code, queued.json()["kind"]) == (202, "apply")
    assert queued.headers["location"] == f"/api/v1/requests/{queued.json()['id']}"
    again = operator.post("/api/v1/runs", json=run)
    assert (again.status_code, again.headers["location"]) == (202, queued.headers["location"])
    assert again.json() == operator.json(again.headers["location"])
    unknown = operator.post("/api/v1/runs", json=run | {"plans": [digest, "0" * 64]})
    assert (unknown.status_code, "there is no plan" in unknown.json()["detail"]) == (404, True)


def test_a_decision_of_a_large_plan_about_an_object_is_that_of_any_other(
    ask: Callable[..., Api], index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _mixed()
    _save(index, plan)
    viewer = ask("viewer", "*")
    decisions: list[Change | Refusal] = [*plan.changes, *plan.refusals]
    ids = {f"lake${item.origin_path}" for item in decisions if "$" in (item.origin_path or "")}
    expected = {id_: viewer.json(f"/api/v1/explain/{id_}")["parts"] for id_ in ids}
    assert len({part["next"] for parts in expected.values() for part in parts}) > 2
    monkeypatch.setattr(plans_view, "LARGE_PLAN", 0)
    # Not in this process.
    monkeypatch.setattr(object_decisions, "_read_decision", None)
    assert {id_: viewer.json(f"/api/v1/explain/{id_}")["parts"] for id_ in ids} == expected


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_a_body_is_parsed_in_parts(separators: tuple[str, str]) -> None:
    content = {"a": [], "b": [1, {"c": ["]", '"', {}]}, []], "d": {"e": [2]}, "f": "x]}", "g": None, "é": [[1], "😀"]}
    assert parse_body(json.dumps(content, separators=separators)) == content
    assert parse_body("{}") == {}


def test_the_service_stays_small_with_a_large_plan(start: Callable[..., Process], tmp_path: Path) -> None:
    with (tmp_path / "federator.toml").open("a", encoding="utf-8") as config:
        config.write(_MIRROR.format(directory=tmp_path))
    process = start("api")
    url = process.url()
    change = json.dumps(_declare("sales$t", "sales$t").to_json())
    changes = ",".join(change.replace("sales$t", f"sales$t{n}") for n in range(50_000))
    body = json.dumps(replace(_mixed(), changes=()).to_json()).replace('"changes": []', f'"changes": [{changes}]')
    index = open_index("sqlite:///federator.db", base=tmp_path)
    with index.write() as connection:
        plans.save_plan(connection, digest="d" * 64, mirror="m", run_id="r", state="outdated", body=body)
    fill(index, "lake", table("lake", "sales", "t7"))
    index.close()
    with httpx.Client(base_url=url, timeout=120) as client:
        assert client.get("/api/v1/sources").status_code == 200
        process.forget_peak_memory()
        before = process.memory()
        assert client.get("/api/v1/plans").json()["plans"][0]["changes"] == {"declare_table": 50_000}
        with client.stream("GET", f"/api/v1/plans/{'d' * 64}") as response:
            size = sum(map(len, response.iter_bytes()))
        assert (response.status_code, size > len(body) * 0.8) == (200, True)
        (part,) = client.get("/api/v1/explain/lake$sales$t7").json()["parts"]
        assert part["next"].startswith("declare_table: ")
        rejected = client.post(f"/api/v1/plans/{'d' * 64}/reject", headers={"If-Match": "d" * 64})
        assert (rejected.status_code, rejected.json()["state"]) == (200, "rejected")
        refused = client.post("/api/v1/runs", json={"kind": "apply", "plans": ["d" * 64]})
        assert (refused.status_code, "is rejected" in refused.json()["detail"]) == (409, True)
        assert "is rejected, not held" in Caller(url, {}).error("approve_plan", digest="d" * 64)
    assert process.peak_memory() - before < 80 << 20
