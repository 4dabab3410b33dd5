"""Plans for a principal with a part of a mirror in scope: visible changes and counts; others decide."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from federator.api.app import create_app
from federator.model import NamespaceRecord, TableRecord, parse_path_key
from federator.model.scopes import Scopes
from federator.planning.changes import Action, Change, Refusal
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.user_declarations import DeclarationCandidate, plan_user_declarations
from federator.settings import Settings
from federator.store import Index, plans
from federator.store import tables as t
from tests.fixtures.index_content import record_change
from tests.fixtures.planning import ANY
from tests.unit.api import worlds
from tests.unit.api.conftest import Api

SECRETS = ("hr", "payroll", "40%", "guards")


def _declare(target: str, origin: str, **fields: Any) -> Change:
    after = TableRecord("copy", parse_path_key(target), f"s3://lake/{origin.replace('$', '/')}")
    return Change(
        Action.DECLARE_TABLE, "copy", target, "lake", origin, fields.pop("reason", "new at the origin"), after=after, **fields
    )


def _save(index: Index, plan: Plan) -> str:
    with index.write() as connection:
        body = json.dumps(plan.to_json())
        plans.save_plan(connection, digest=plan.digest, mirror=plan.mirror, run_id="r", state="held", body=body)
    return plan.digest


def _mixed() -> Plan:
    """A plan about sales and about hr, whose texts name the latter where they can."""
    moved = {"reason": "it was declared for hr$payroll", "pair": "hr$payroll -> sales$b"}
    space = NamespaceRecord("copy", ("sales",))
    return Plan(
        "m", "d", 1, 1,
        (
            Change(Action.CREATE_NAMESPACE, "copy", "sales", "lake", "sales", "holds what will be declared", namespace=space),
            _declare("sales$a", "sales$a"), _declare("sales$b", "sales$b", **moved), _declare("hr$payroll", "hr$payroll"),
            _declare("sales$c", "hr$c"), _declare("hr$d", "sales$d"),
        ),
        (
            Refusal(Reason.LOCATION_DECLARED, "copy", "sales$x", "sales$x", "copy$hr$payroll already points there"),
            Refusal(Reason.NAME_TAKEN, "copy", "", "hr$y"), Refusal(Reason.UNSELECTED, "copy", "", "sales$y"),
        ),
        holds=(Hold("guards", "40% of hr would go"),), selected=123,
    )  # fmt: skip


@pytest.fixture
def ask(index: Index, settings_of: Callable[..., Settings]) -> Callable[..., Api]:
    app = create_app(settings_of(serve={"auth": "required"}))

    def caller(role: str, *scopes: str) -> Api:
        return worlds.as_caller(app, index, role, Scopes.parse(scopes), f"{role} {' '.join(scopes)}")

    return caller


def test_a_team_sees_the_changes_that_are_about_what_it_sees(ask: Callable[..., Api], index: Index) -> None:
    digest = _save(index, _mixed())
    team = ask("viewer", "lake$sales", "copy$sales")
    (plan,) = team.json("/api/v1/plans")["plans"]
    assert (plan["digest"], plan["partial"], plan["state"]) == (digest, True, "held")
    assert plan["changes"] == {"create_namespace": 1, "declare_table": 2}
    assert plan["refusals"] == {"location_declared": 1, "unselected": 1}
    body = team.json(f"/api/v1/plans/{digest}")
    shown = body["plan"]
    assert [change["target_path"] for change in shown["changes"]] == ["sales", "sales$a", "sales$b"]
    assert [refusal["origin_path"] for refusal in shown["refusals"]] == ["sales$x", "sales$y"]
    assert [change["reason"] for change in shown["changes"]][1:] == ["new at the origin", "it was declared"]
    assert not [term for term in SECRETS if term in json.dumps(body)]
    assert not {"selected", "mirror_digest"} & shown.keys()
    whole = ask("viewer", "*").json(f"/api/v1/plans/{digest}")
    assert (whole["partial"], len(whole["plan"]["changes"]), whole["plan"]["selected"]) == (False, 6, 123)
    assert [fresh["source"] for fresh in whole["freshness"]] == ["lake"]


@pytest.mark.parametrize("scopes", [("lake$sales",), ("copy",), ("lake$other", "copy$sales"), ("spare",)])
def test_a_plan_without_visible_objects_does_not_exist(ask: Callable[..., Api], index: Index, scopes: tuple[str, ...]) -> None:
    digest = _save(index, _mixed())
    api = ask("operator", *scopes)
    observed = api.json("/api/v1/plans")

    assert ([plan["digest"] for plan in observed["plans"]], observed["freshness"]) == ([], [])
    assert api.get(f"/api/v1/plans/{digest}").status_code == 404
    assert api.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": digest}).status_code == 404
    assert api.post("/api/v1/runs", json={"kind": "apply", "plans": [digest]}).status_code == 404


def test_bodies_of_plans_of_hidden_mirrors_are_not_read(ask: Callable[..., Api], index: Index) -> None:
    """They may be large and many, and their parts of digests are not for everybody."""
    digest = _save(index, _mixed())
    with index.write() as connection:
        connection.execute(update(t.plan).values(body="no JSON"))
    for scopes in ((), ("spare",)):
        api = ask("viewer", *scopes)
        assert api.json("/api/v1/plans")["plans"] == []
        assert [api.get(f"/api/v1/plans/{text}").status_code for text in (digest, digest[:1])] == [404, 404]
    everything = ask("viewer", "*")
    assert everything.get(f"/api/v1/plans/{digest[:1]}").status_code == 404
    # Nor is one that does not have the explained object.
    assert [part["plan"] for part in everything.json("/api/v1/explain/lake%24sales%24orders")["parts"]] == [digest]


def test_a_part_of_a_large_plan_is_counted_item_by_item(
    ask: Callable[..., Api], index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50,000 changes in memory at a time take 240 MiB."""
    digest = _save(index, _mixed())
    monkeypatch.setattr(plans, "parse_body", None)
    (summary,) = ask("viewer", "lake$sales", "copy$sales").json("/api/v1/plans")["plans"]
    assert (summary["digest"], summary["changes"]) == (digest, {"create_namespace": 1, "declare_table": 2})
    assert (summary["refusals"], summary["held"], summary["partial"]) == ({"location_declared": 1, "unselected": 1}, [], True)


def test_a_comment_may_be_about_what_is_hidden(ask: Callable[..., Api], index: Index) -> None:
    digest, comment = _save(index, _mixed()), "payroll was agreed with hr"
    whole = ask("operator", "lake", "copy")
    response = whole.post(f"/api/v1/plans/{digest}/reject", headers={"If-Match": digest}, json={"comment": comment})
    assert response.json()["decision_comment"] == whole.json("/api/v1/plans")["plans"][0]["decision_comment"] == comment
    team = ask("admin", "lake$sales", "copy$sales")
    for url in ("/api/v1/plans", f"/api/v1/plans/{digest}", "/api/v1/mirrors", "/api/v1/audit", "/api/v1/overview"):
        assert not [term for term in SECRETS if term in team.get(url).text], url
    assert team.json(f"/api/v1/plans/{digest}")["state"] == "rejected"


def test_deciding_needs_all_of_it(ask: Callable[..., Api], index: Index) -> None:
    digest = _save(index, _mixed())
    team = ask("operator", "lake$sales", "copy$sales")
    for what in ("approve", "reject", "apply"):
        refused = team.post(f"/api/v1/plans/{digest}/{what}", headers={"If-Match": digest})
        assert (refused.status_code, refused.json()["code"]) == (403, 15)
        assert not [term for term in SECRETS if term in refused.text]
    assert team.post("/api/v1/runs", json={"kind": "apply", "plans": [digest]}).status_code == 403
    assert (
        ask("operator", "lake", "copy").post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": digest}).status_code == 200
    )


def test_pages_of_those_that_are_seen_lose_none(ask: Callable[..., Api], index: Index) -> None:
    visible_digests = []
    for number in range(120):
        about = "sales" if number % 7 == 0 else "hr"
        digest = _save(index, Plan("m", "d", 1, 1, (_declare(f"{about}$t{number}", f"{about}$t{number}"),)))
        visible_digests += [digest] if about == "sales" else []
    team, result, url = ask("viewer", "lake$sales", "copy$sales"), [], "/api/v1/plans?limit=5"
    while url:
        page = team.json(url)
        result += [plan["digest"] for plan in page["plans"]]
        url = f"/api/v1/plans?limit=5&cursor={page['next']}" if page["next"] else ""
    assert result == visible_digests[::-1]


def test_a_persons_declarations_are_decided_by_who_sees_where_they_go(ask: Callable[..., Api], index: Index) -> None:
    after = TableRecord("copy", ("sales", "new"), "s3://lake/new.lance")
    change = Change(Action.DECLARE_TABLE, "copy", "sales$new", "", "", "a person declares it", after=after)
    digest = _save(index, Plan("declare:copy", "d", 1, 1, (change,)))
    team = ask("operator", "copy$sales")
    (plan,) = team.json("/api/v1/plans")["plans"]
    assert (plan["digest"], plan["partial"]) == (digest, False)
    assert team.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": digest}).status_code == 200
    request = team.post(f"/api/v1/plans/{digest}/apply", headers={"If-Match": digest})
    assert request.status_code == 202
    assert ask("viewer", "copy$sales").get(request.headers["location"]).status_code == 200
    other = ask("viewer", "copy$other")
    assert other.get(request.headers["location"]).status_code == 404
    assert other.json("/api/v1/plans")["plans"] == []


def test_a_refused_declaration_names_no_other_path_of_its_target(ask: Callable[..., Api], index: Index) -> None:
    new = DeclarationCandidate(("sales", "new"), "s3://lake/new.lance", "s3://lake/new.lance", "valid")
    pay = DeclarationCandidate(
        ("sales", "pay"), "s3://vault/p.lance", "s3://vault/p.lance", "valid", other_paths=["hr$payroll"]
    )
    taken = DeclarationCandidate(("sales", "old"), "s3://vault/q.lance", "s3://vault/q.lance", "valid", foreign="a view of hr")
    digest = _save(index, plan_user_declarations("copy", ANY, [new, pay, taken], revision=1))
    team, owner = ask("operator", "copy$sales"), ask("operator", "copy")
    for text in (team.get(f"/api/v1/plans/{digest}").text, team.get("/api/v1/plans").text):
        assert digest in text
        assert not [term for term in (*SECRETS, "vault") if term in text]
    assert team.json(f"/api/v1/plans/{digest}")["partial"] is True
    refused = team.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": digest})
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    whole = owner.json(f"/api/v1/plans/{digest}")
    assert (whole["partial"], "as hr$payroll" in json.dumps(whole)) == (False, True)
    assert owner.post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": digest}).status_code == 200


@pytest.mark.parametrize("mirror", ["m", "declare:copy"])
def test_what_became_of_a_visible_change_names_nothing_hidden(ask: Callable[..., Api], index: Index, mirror: str) -> None:
    """Another name of the location at the target, or the error of a catalog, is in the journal's message."""
    change = _declare("sales$a", "sales$a") if mirror == "m" else replace(_declare("sales$a", ""), origin_source="")
    digest = _save(index, Plan(mirror, "d", 1, 1, (change,)))
    message = "hr$payroll already points to s3://lake/hr/payroll"
    record_change(index, digest, change, "skipped", code="location_declared", message=message, mirror=mirror)
    run = {
        "id": "r",
        "kind": "apply",
        "state": "partial",
        "trigger": "api",
        "actor": "ops",
        "started_at": 1.0,
        "finished_at": 2.0,
    }
    with index.write() as connection:
        connection.execute(t.run.insert().values(run))
    team, owner = ask("viewer", "lake$sales", "copy$sales"), ask("viewer", "*")
    for url in (f"/api/v1/plans/{digest}", "/api/v1/runs/r"):
        assert "location_declared" in team.get(url).text
        assert not [term for term in SECRETS if term in team.get(url).text], url
        assert message in owner.get(url).text


def test_a_plan_of_which_only_hidden_changes_wait_needs_no_attention(ask: Callable[..., Api], index: Index) -> None:
    seen, unseen = _declare("sales$a", "sales$a"), _declare("hr$payroll", "hr$payroll")
    digest = _save(index, Plan("m", "d", 1, 1, (seen, unseen), holds=(Hold("guards", "40% of hr would go"),)))
    team, owner = ask("viewer", "lake$sales", "copy$sales"), ask("viewer", "*")
    assert [item["count"] for item in team.json("/api/v1/overview")["attention"] if item["kind"] == "plan"] == [1]
    record_change(index, digest, seen)
    assert [item for item in team.json("/api/v1/overview")["attention"] if item["kind"] == "plan"] == []
    assert [item["count"] for item in owner.json("/api/v1/overview")["attention"] if item["kind"] == "plan"] == [1]
