"""Plans in pages, decisions bound to what was looked at, and mirrors as they stand."""

from __future__ import annotations

import json

import pytest

from federator.index import Index, plans, requests, schedules
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from tests.api.conftest import Api
from tests.api.test_runs import add_plan


def test_a_decision_names_what_it_is_about(api: Api, index: Index) -> None:
    digest = add_plan(index, "held")
    for decision in ("approve", "reject", "apply"):
        url = f"/api/v1/plans/{digest}/{decision}"
        without = api.post(url)
        assert (without.status_code, without.json()["title"]) == (428, "Precondition required")
        for other in ('"another"', "*", f'"{digest[:12]}"'):
            assert api.post(url, headers={"If-Match": other}).status_code == 412
    assert api.json(f"/api/v1/plans/{digest}")["state"] == "held"
    match = {"If-Match": f'"{digest}"'}
    assert api.post(f"/api/v1/plans/{digest}/apply", headers=match).status_code == 409
    assert api.post(f"/api/v1/plans/{digest}/approve", headers=match).json()["state"] == "approved"
    asked = api.post(f"/api/v1/plans/{digest}/apply", headers={"If-Match": digest})
    assert (asked.status_code, asked.json()["kind"]) == (202, "apply")
    assert asked.headers["location"] == f"/api/v1/requests/{asked.json()['id']}"
    with index.read() as connection:
        (queued,) = requests.queued(connection, requests.RUNS)
    assert queued.argument == {"plans": [digest]}


def test_a_decision_may_name_the_guarded_set(api: Api, index: Index) -> None:
    body = json.dumps(Plan("m", "d", 1, 1, holds=(Hold("max_delete_percent", "too much"),)).to_json())
    with index.write() as connection:
        for digest in ("older", "newer"):
            plans.save(connection, digest=digest, mirror="m", run_id="r", state="held", body=body, guarded="set")
    assert api.json("/api/v1/plans/older")["guarded"] == "set"
    assert api.post("/api/v1/plans/older/approve", headers={"If-Match": '"other"'}).status_code == 412
    assert api.post("/api/v1/plans/older/reject", headers={"If-Match": '"set"'}).json()["state"] == "rejected"
    # A decision is about every plan with this set, those that are made later included.
    assert api.json("/api/v1/plans/newer")["state"] == "rejected"
    with index.write() as connection:
        assert (
            plans.save(connection, digest="newest", mirror="m", run_id="r", state="held", body=body, guarded="set")
            == "rejected"
        )


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_plans_are_listed_newest_first_with_their_counts(api: Api, index: Index, limit: int) -> None:
    made = [add_plan(index, state, mirror=f"m{number}") for number, state in enumerate(("held", "ready", "held"))]
    found = []
    url = f"/api/v1/plans?limit={limit}"
    while url:
        page = api.json(url)
        found += page["plans"]
        url = f"/api/v1/plans?limit={limit}&cursor={page['next']}" if page["next"] else ""
    assert [plan["digest"] for plan in found] == made[::-1]
    assert [plan["mirror"] for plan in api.json("/api/v1/plans?state=held")["plans"]] == ["m2", "m0"]
    assert [plan["digest"] for plan in api.json("/api/v1/plans?mirror=m1")["plans"]] == [made[1]]
    assert "plan" not in found[0]
    assert api.get("/api/v1/plans?state=nonsense").status_code == 400


def test_a_mirror_shows_its_rule_and_how_it_stands(api: Api, index: Index) -> None:
    never = api.json("/api/v1/mirrors/m")
    assert (never["state"], never["last_plan"], never["last_run"], never["held"], never["tables"]) == (
        "never",
        None,
        None,
        [],
        0,
    )
    assert (never["from"], never["to"], never["schedule"], never["paused"]) == ("lake", "copy", "@every 15m", False)
    assert never["rule"]["include"] == ["*"]
    assert [fresh["source"] for fresh in never["freshness"]] == ["lake"]
    digest = add_plan(index, "held")
    with index.write() as connection:
        schedules.pause(connection, "sync:m", True)
    held = api.json("/api/v1/mirrors")["mirrors"][0]
    assert (held["state"], held["paused"], [plan["digest"] for plan in held["held"]]) == ("held", True, [digest])
    assert held["last_plan"]["digest"] == digest
    with index.write() as connection:
        plans.decide(connection, digest, "rejected", "ann")
    assert api.json("/api/v1/mirrors/m")["held"] == []
    assert api.get("/api/v1/mirrors/nope").status_code == 404


def test_coverage_says_which_namespaces_were_not_read_and_why(api: Api) -> None:
    (hr,) = api.json("/api/v1/sources/lake/coverage?short=true")["namespaces"]
    assert (hr["namespace"], hr["presence"], hr["presence_reason"], hr["presence_code"]) == ("lake$hr", "failed", "denied", 15)
    first = api.json("/api/v1/sources/lake/coverage?limit=1")
    assert (first["namespaces"][0]["namespace"], first["freshness"]["source"]) == ("lake", "lake")
    second = api.json(f"/api/v1/sources/lake/coverage?limit=1&cursor={first['next']}")
    assert (second["namespaces"], second["next"]) == ([hr], None)
    assert api.get("/api/v1/sources/nope/coverage").status_code == 404
