"""Pages of plans, decisions bound to the displayed state by If-Match, and the state of mirrors."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select, update

from federator.apply.plan_decisions import Decision, decide_plan
from federator.model import Scopes, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold
from federator.planning.plan import Plan
from federator.planning.release import guarded_digest
from federator.store import Index, job_states, plans, requests, run_stages, runs
from federator.store import tables as t
from federator.views import plans as plan_views
from federator.views.visibility import Visibility
from tests.fixtures.index_content import record_change
from tests.unit.api.conftest import Api
from tests.unit.api.test_runs import add_plan


def test_a_decision_requires_if_match(api: Api, index: Index) -> None:
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
    request = api.post(f"/api/v1/plans/{digest}/apply", headers={"If-Match": digest})
    assert (request.status_code, request.json()["kind"]) == (202, "apply")
    assert request.headers["location"] == f"/api/v1/requests/{request.json()['id']}"
    with index.read() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
    assert queued.argument == {"plans": [digest]}


def test_a_decision_may_name_the_guarded_set(api: Api, index: Index) -> None:
    body = json.dumps(Plan("m", "d", 1, 1, holds=(Hold("max_delete_percent", "too much"),)).to_json())
    with index.write() as connection:
        for digest in ("older", "newer"):
            plans.save_plan(connection, digest=digest, mirror="m", run_id="r", state="held", body=body, guarded="set")
    assert api.json("/api/v1/plans/older")["guarded"] == "set"
    assert api.post("/api/v1/plans/older/approve", headers={"If-Match": '"other"'}).status_code == 412
    assert api.post("/api/v1/plans/older/reject", headers={"If-Match": '"set"'}).json()["state"] == "rejected"
    # A decision is about every plan with this set, those that are made later included.
    assert api.json("/api/v1/plans/newer")["state"] == "rejected"
    with index.write() as connection:
        assert (
            plans.save_plan(connection, digest="newest", mirror="m", run_id="r", state="held", body=body, guarded="set")
            == "rejected"
        )


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_plans_are_listed_newest_first_with_their_counts(api: Api, index: Index, limit: int) -> None:
    created = [add_plan(index, state, mirror=f"m{number}") for number, state in enumerate(("held", "ready", "held"))]
    result = []
    url = f"/api/v1/plans?limit={limit}"
    while url:
        page = api.json(url)
        result += page["plans"]
        url = f"/api/v1/plans?limit={limit}&cursor={page['next']}" if page["next"] else ""
    assert [plan["digest"] for plan in result] == created[::-1]
    assert [plan["mirror"] for plan in api.json("/api/v1/plans?state=held")["plans"]] == ["m2", "m0"]
    assert [plan["digest"] for plan in api.json("/api/v1/plans?mirror=m1")["plans"]] == [created[1]]
    assert "plan" not in result[0]
    assert api.get("/api/v1/plans?state=nonsense").status_code == 400


def test_a_mirror_shows_its_rule_and_its_state(api: Api, index: Index) -> None:
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
        job_states.set_paused(connection, "sync:m", True)
    held = api.json("/api/v1/mirrors")["mirrors"][0]
    assert (held["state"], held["paused"], [plan["digest"] for plan in held["held"]]) == ("held", True, [digest])
    assert held["last_plan"]["digest"] == digest
    with index.write() as connection:
        plans.record_decision(connection, digest, "rejected", "ann")
    assert api.json("/api/v1/mirrors/m")["held"] == []
    assert api.get("/api/v1/mirrors/nope").status_code == 404


def test_a_mirror_is_not_held_after_its_plan_was_applied(api: Api, index: Index) -> None:
    """Two runs make the same plan: the first is held, the second applies it. Then a run is held by another mirror's plan."""
    made = [runs.insert_run(index, "sync", trigger="cli", actor="ann") for _ in range(3)]
    first, second, third = sorted(made, key=lambda run: run.id)
    digest = add_plan(index, "held", run=first.id)

    def finish(run: runs.RunHandle, state: str) -> tuple[str, str]:
        run_stages.start_stage(index, run.id, "plan", "m")
        runs.finish_run(index, run, state, summary={})
        mirror = api.json("/api/v1/mirrors/m")
        return mirror["state"], mirror["last_run"]["id"]

    assert finish(first, "held") == ("held", first.id)
    with index.write() as connection:
        plans.record_decision(connection, digest, "approved", "ann")
        plans.record_decision(connection, digest, "applied", "ann")
    assert finish(second, "ok") == ("ok", second.id)
    assert finish(third, "held") == ("ok", third.id)


def test_coverage_says_which_namespaces_were_not_read_and_why(api: Api) -> None:
    (hr,) = api.json("/api/v1/sources/lake/coverage?short=true")["namespaces"]
    assert (hr["namespace"], hr["presence"], hr["presence_reason"], hr["presence_code"]) == ("lake$hr", "failed", "denied", 15)
    first = api.json("/api/v1/sources/lake/coverage?limit=1")
    assert (first["namespaces"][0]["namespace"], first["freshness"]["source"]) == ("lake", "lake")
    second = api.json(f"/api/v1/sources/lake/coverage?limit=1&cursor={first['next']}")
    assert (second["namespaces"], second["next"]) == ([hr], None)
    assert api.get("/api/v1/sources/nope/coverage").status_code == 404


def _add_mixed(index: Index) -> str:
    """A held plan of which one change waits and one may go."""
    gone, new = TableRecord("copy", ("s", "gone"), "s3://a/1"), TableRecord("copy", ("s", "new"), "s3://a/2")
    changes = (
        Change(Action.DEREGISTER_TABLE, "copy", "s$gone", "lake", "s$gone", "gone at the origin", before=gone),
        Change(Action.DECLARE_TABLE, "copy", "s$new", "lake", "s$new", "new at the origin", after=new),
    )
    plan = Plan("m", "d", 1, 1, changes, holds=(Hold("max_delete_percent", "too much", Binds.DESTRUCTIVE),))
    with index.write() as connection:
        plans.save_plan(
            connection, digest=plan.digest, mirror="m", run_id="r", state="held", body=json.dumps(plan.to_json()),
            guarded=guarded_digest(plan),
        )  # fmt: skip
    return plan.digest


def test_what_may_go_of_a_held_plan_is_applied_and_the_answer_says_what_waits(api: Api, index: Index) -> None:
    digest = _add_mixed(index)
    held = {
        "change": 0, "action": "deregister_table", "target": "copy$s$gone", "reason": "held_by_guard",
        "held_by": "max_delete_percent", "detail": "too much",
    }  # fmt: skip
    shown = api.json(f"/api/v1/plans/{digest}")
    assert (shown["state"], shown["waiting"]) == ("held", [held])
    requested = api.post(f"/api/v1/plans/{digest}/apply", headers={"If-Match": f'"{digest}"'})
    assert (requested.status_code, requested.json()["waiting"]) == (202, [held]), requested.text
    again = api.post("/api/v1/runs", json={"kind": "apply", "plans": [digest]})
    assert (again.status_code, again.json()["id"]) == (202, requested.json()["id"])
    with index.read() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
    assert queued.argument == {"plans": [digest]}
    # The address names the plan, If-Match what was shown of it.
    other = api.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": '"another set"'})
    assert other.status_code == 412
    approved = api.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": f'"{shown["guarded"]}"'}).json()
    assert (approved["state"], approved["waiting"]) == ("approved", [])
    # An approval that has ended lets nothing of it go, though the plan was approved.
    with index.write() as connection:
        connection.execute(update(t.approval).values(approved_at=t.approval.c.approved_at - 8 * 86_400))
    again = api.post(f"/api/v1/plans/{digest}/apply", headers={"If-Match": f'"{digest}"'})
    assert again.json()["waiting"] == [held]


def test_what_was_carried_out_of_a_held_plan_is_neither_offered_nor_counted_again(api: Api, index: Index) -> None:
    digest = _add_mixed(index)
    with index.read() as connection:
        plan = Plan.from_json(plans.get_plan(connection, digest).content)
    match = {"If-Match": f'"{digest}"'}
    assert api.json(f"/api/v1/plans/{digest}")["outcomes"] == []
    record_change(index, digest, plan.changes[1], "failed", code="unavailable", message="copy did not respond")
    failed = api.json(f"/api/v1/plans/{digest}")["outcomes"]
    assert [(each["change"], each["state"], each["code"], each["message"]) for each in failed] == [
        (1, "failed", "unavailable", "copy did not respond")
    ]
    assert api.post(f"/api/v1/plans/{digest}/apply", headers=match).status_code == 202, "it may be tried again"
    with index.write() as connection:
        connection.execute(update(t.journal).values(state="done", code=None, message=None))
    (outcome,) = api.json(f"/api/v1/plans/{digest}")["outcomes"]
    assert (outcome["change"], outcome["state"], outcome["run_id"]) == (1, "done", "r")
    (listed,) = api.json("/api/v1/plans?state=held")["plans"]
    assert listed["held"] == ["max_delete_percent: too much"]
    assert (listed["changes"], listed["done"]) == ({"deregister_table": 1, "declare_table": 1}, {"declare_table": 1})
    (item,) = [item for item in api.json("/api/v1/overview")["attention"] if item["kind"] == "plan"]
    assert (item["count"], item["detail"]) == (1, "1 deregister_table: too much")
    refused = api.post(f"/api/v1/plans/{digest}/apply", headers=match)
    reason = "all remaining changes of the plan {} are held: max_delete_percent: too much"
    assert (refused.status_code, refused.json()["detail"]) == (409, reason.format(digest[:12]))
    # Once the removal is approved, it goes.
    assert api.post(f"/api/v1/plans/{digest}/approve", headers=match).status_code == 200
    assert api.post(f"/api/v1/plans/{digest}/apply", headers=match).status_code == 202


def test_the_sync_that_applies_a_plan_is_its_application(api: Api, index: Index) -> None:
    digest, other, run = add_plan(index, "ready"), add_plan(index, "ready", mirror="n"), runs.insert_run(index, "sync")
    with index.write() as connection:
        queued = requests.queue_request(connection, "sync", {"job": "sync:m", "mirrors": ["m"]}, actor="schedule")
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=run.id)

    def application(of: str = digest) -> dict[str, str] | None:
        found: dict[str, str] | None = api.json(f"/api/v1/plans/{of}")["application"]
        return found

    assert application() is None, "a sync that crawls may make another plan"
    run_stages.start_stage(index, run.id, "apply", "m", plan=digest)
    applies = application()
    assert applies is not None
    assert (applies["kind"], applies["actor"], applies["run_id"]) == ("sync", "schedule", run.id)
    assert application(other) is None
    refused = api.post(f"/api/v1/plans/{digest}/apply", headers={"If-Match": f'"{digest}"'})
    assert (refused.status_code, refused.json()["detail"]) == (
        409, f"a sync applies the plan {digest[:12]}, and it has not ended",
    )  # fmt: skip
    run_stages.finish_stage(index, run.id, "apply", "m", state="ok", detail="1 done", calls=None, errors=None)
    assert application() is None


def test_who_sees_a_part_of_a_plan_sees_the_outcomes_of_that_part(index: Index) -> None:
    digest = _add_mixed(index)
    with index.read() as connection:
        plan = Plan.from_json(plans.get_plan(connection, digest).content)
        viewer = Visibility("ann", Scopes.parse(["lake$s$gone", "copy$s$gone"]), origins={"m": "lake"})
        assert plan_views.list_visible_plans(connection, viewer)[0].done == {}
    record_change(index, digest, plan.changes[1])
    record_change(index, digest, plan.changes[0])
    with index.read() as connection:
        (listed,) = plan_views.list_visible_plans(connection, viewer)
    assert (listed.partial, listed.changes, listed.done, listed.remaining) == (
        True, {"deregister_table": 1}, {"deregister_table": 1}, {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "state", "second", "other"),
    [("reject", "rejected", "approve", "approved"), ("approve", "approved", "reject", "rejected")],
)
def test_a_decision_is_not_overridden_by_one_who_has_not_seen_it(
    api: Api, index: Index, first: str, state: str, second: str, other: str
) -> None:
    digest = _add_mixed(index)
    url, shown = f"/api/v1/plans/{digest}", api.json(f"/api/v1/plans/{digest}")
    assert shown["if_match"] == shown["guarded"]
    match = {"If-Match": f'"{shown["if_match"]}"'}
    decided = api.post(f"{url}/{first}", headers=match, json={"comment": "the owner said so"}).json()
    for tag in (shown["if_match"], digest, f"{digest}.another"):
        refused = api.post(f"{url}/{second}", headers={"If-Match": f'"{tag}"'})
        assert refused.status_code == 409
        assert f"{digest[:12]} was {state} by api at " in refused.json()["detail"]
        assert "the owner said so" in refused.json()["detail"]
        assert "if_match" in refused.json()["hint"]
    assert api.json(url) == decided | {"freshness": api.json(url)["freshness"]}
    # The same again is no contradiction.
    assert api.post(f"{url}/{first}", headers=match).json()["state"] == state
    now = api.json(url)["if_match"]
    assert api.post(f"{url}/{second}", headers={"If-Match": f'"{now}"'}).json()["state"] == other
    events = [event["kind"] for event in api.json("/api/v1/audit")["events"]]
    assert events == [f"plan_{other}", f"plan_{state}", f"plan_{state}"]


def test_a_second_approval_keeps_the_first_decider_until_the_approval_ends(api: Api, index: Index) -> None:
    digest = _add_mixed(index)

    def decide(decision: Decision, actor: str) -> tuple[str, str | None, float | None, set[str]]:
        plan = decide_plan(index, digest, decision, actor=actor, overruled=None)
        with index.read() as connection:
            actors = set(connection.execute(select(t.approval.c.actor)).scalars())
        return plan.state, plan.decided_by, plan.decided_at, actors

    first = decide("approved", "anna")
    assert first == ("approved", "anna", first[2], {"anna"})
    assert decide("approved", "ben") == first
    assert decide("approved", "anna") == first, "the time, too"
    assert [event["actor"] for event in api.json("/api/v1/audit?kind=plan_approved")["events"]] == ["anna", "ben", "anna"]
    with index.write() as connection:
        connection.execute(update(t.approval).values(approved_at=t.approval.c.approved_at - 8 * 86_400))
    state, actor, _, actors = decide("approved", "ben")
    assert (state, actor, actors) == ("approved", "ben", {"ben"}), "the first approval has ended"
    assert decide("rejected", "anna")[:2] == ("rejected", "anna")
    assert decide("approved", "ben")[:2] == ("approved", "ben")


def test_a_plan_of_which_everything_waits_is_refused(api: Api, index: Index) -> None:
    new = TableRecord("copy", ("s", "new"), "s3://a/2")
    change = Change(Action.DECLARE_TABLE, "copy", "s$new", "lake", "s$new", "new at the origin", after=new)
    plan = Plan("m", "d", 1, 1, (change,), holds=(Hold("approval_required", "a person's word"),))
    with index.write() as connection:
        plans.save_plan(connection, digest=plan.digest, mirror="m", run_id="r", state="held", body=json.dumps(plan.to_json()))
    refused = api.post(f"/api/v1/plans/{plan.digest}/apply", headers={"If-Match": plan.digest})
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        f"all changes of the plan {plan.digest[:12]} are held: approval_required: a person's word",
    )


def test_a_rejection_takes_the_approval_back_and_ends_when_the_guarded_set_is_another(api: Api, index: Index) -> None:
    digest = _add_mixed(index)
    shown = api.json(f"/api/v1/plans/{digest}")
    match = {"If-Match": f'"{shown["guarded"]}"'}
    approved = api.post(f"/api/v1/plans/{digest}/approve", headers=match).json()
    assert approved["waiting"] == []
    rejected = api.post(f"/api/v1/plans/{digest}/reject", headers={"If-Match": f'"{approved["if_match"]}"'}).json()
    assert (rejected["state"], rejected["waiting"]) == ("rejected", shown["waiting"])
    with index.write() as connection:
        body = plans.get_plan(connection, digest).body
        states = {
            guarded: plans.save_plan(
                connection, digest=f"with {guarded}", mirror="m", run_id="r", state="held", body=body, guarded=guarded
            )
            for guarded in (shown["guarded"], "another set")
        }
    assert states == {shown["guarded"]: "rejected", "another set": "held"}


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_the_comment_of_a_decision_is_kept_with_the_plan_and_in_the_audit_log(api: Api, index: Index, decision: str) -> None:
    digest = _add_mixed(index)
    match = {"If-Match": f'"{digest}"'}
    decided = api.post(f"/api/v1/plans/{digest}/{decision}", headers=match, json={"comment": "  agreed with the owner "}).json()
    assert decided["decision_comment"] == "agreed with the owner"
    (event,) = api.json(f"/api/v1/audit?kind=plan_{decided['state']}")["events"]
    assert event["detail"]["comment"] == "agreed with the owner"
    for wrong in ({"comment": "x" * 2001}, {"comment": "a\0b"}, {"reason": "other"}):
        assert api.post(f"/api/v1/plans/{digest}/{decision}", headers=match, json=wrong).status_code == 400
    assert api.json(f"/api/v1/plans/{digest}")["decision_comment"] == "agreed with the owner"
