"""Plans over MCP: a role, and the confirmation of a person at the client."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from federator.model import TableRecord
from federator.model.scopes import Scopes
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold
from federator.planning.plan import Plan
from federator.planning.release import guarded_digest
from federator.store import Index, plans, requests
from federator.store import tables as t
from federator.views import plans as plans_view
from tests.unit.api.mcp_support import Caller, Person, Running, run_world, text_of

NO_CLIENT = "this tool needs the confirmation of a person, and the client cannot ask one (MCP elicitation)"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with run_world(tmp_path_factory.mktemp("mcp")) as service:
        yield service


def held_plan(index: Index, number: int, size: int = 12) -> str:
    """A held plan of the mirror ``open`` that removes ``size`` tables; ``number`` makes it another plan."""
    changes = tuple(
        Change(
            Action.DEREGISTER_TABLE, "spare", f"s$gone{number}_{i}", "copy", f"s$gone{number}_{i}", "gone at the origin",
            before=TableRecord("spare", ("s", f"gone{number}_{i}"), "s3://a/1"),
        )
        for i in range(size)
    )  # fmt: skip
    plan = Plan("open", f"d{number}", 1, 1, changes, holds=(Hold("max_delete_percent", "too\nmuch", Binds.DESTRUCTIVE),))
    with index.write() as connection:
        plans.save_plan(
            connection, digest=plan.digest, mirror="open", run_id="r", state="held", body=json.dumps(plan.to_json()),
            guarded=guarded_digest(plan),
        )  # fmt: skip
    return plan.digest


def state_of(index: Index, digest: str) -> tuple[str, str | None]:
    with index.read() as connection:
        stored = plans.get_plan(connection, digest)
    return stored.state, stored.decided_by


def approvals_of(running: Running, digest: str) -> list[str]:
    """The actors of the audit events that approve a plan."""
    admin = running.caller(f"audits-{time.monotonic_ns()}", "admin")
    events = admin.json("/api/v1/audit", kind="plan_approved")["events"]
    return [event["actor"] for event in events if event["detail"]["plan"] == digest]


def test_a_plan_is_approved_after_the_person_confirmed(running: Running) -> None:
    digest = held_plan(running.index, 1)
    operator, person = running.caller("confirms", "operator"), Person("accept", {"confirm": True})
    result = operator.call("approve_plan", {"digest": digest}, elicitation_callback=person)
    assert not result.is_error, text_of(result)
    shown = operator.json(f"/api/v1/plans/{digest}")
    assert result.structured_content == {key: shown[key] for key in result.structured_content}
    assert result.structured_content["state"] == "approved"
    assert state_of(running.index, digest) == ("approved", "token:confirms")
    assert approvals_of(running, digest) == ["token:confirms"]
    (question,) = person.questions
    assert question.splitlines()[:3] == [
        f"Approve the held changes of the plan {digest[:12]} of the mirror open?", "held by max_delete_percent: too\\nmuch",
        "12 changes: 12 deregister_table",
    ]  # fmt: skip
    assert question.splitlines()[3:] == [*(f"deregister_table spare$s$gone1_{i}" for i in range(10)), "... and 2 more"]


@pytest.mark.parametrize(
    "person", [Person("decline"), Person("cancel"), Person("accept", {"confirm": False})], ids=["decline", "cancel", "no"]
)
def test_nothing_is_approved_if_the_person_does_not_confirm(running: Running, person: Person) -> None:
    digest = held_plan(running.index, 2)
    operator = running.caller(f"declines-{person.action}", "operator")
    result = operator.call("approve_plan", {"digest": digest}, elicitation_callback=person)
    assert (result.is_error, text_of(result)) == (True, "nothing was changed: the person at the client did not confirm")
    assert len(person.questions) == 1
    assert state_of(running.index, digest) == ("held", None)
    assert approvals_of(running, digest) == []


def test_an_answer_that_does_not_fit_approves_nothing(running: Running) -> None:
    digest = held_plan(running.index, 3)
    for content in (None, {}, {"confirm": "perhaps"}, {"confirm": "true"}, {"confirm": 1}):
        caller = running.caller(f"odd-{content}", "operator")
        result = caller.call("approve_plan", {"digest": digest}, elicitation_callback=Person("accept", content))
        assert text_of(result) == "nothing was changed: the client's answer does not fit the question"
    assert state_of(running.index, digest) == ("held", None)


def test_an_answer_without_its_question_approves_nothing(running: Running) -> None:
    """The answer of another plan, of another principal, or of nobody: the client gets the question."""
    digest, other = held_plan(running.index, 10), held_plan(running.index, 11)
    operator = running.caller("forges", "operator")
    yes = {"confirmation": {"action": "accept", "content": {"confirm": True}}}
    asked = post(operator, digest)["result"]
    assert set(asked["inputRequests"]) == {"confirmation"}
    assert post(operator, digest, inputResponses=yes)["result"]["inputRequests"] == asked["inputRequests"]
    for caller, plan in ((operator, other), (running.caller("another", "operator"), digest)):
        refused = post(caller, plan, inputResponses=yes, requestState=asked["requestState"])
        assert refused["error"]["data"] == {"reason": "invalid_request_state"}
    assert state_of(running.index, digest) == state_of(running.index, other) == ("held", None)
    post(operator, digest, inputResponses=yes, requestState=asked["requestState"])
    assert state_of(running.index, digest) == ("approved", "token:forges")


def post(caller: Caller, digest: str, **more: object) -> dict[str, Any]:
    """A call of approve_plan without the SDK's client."""
    prefix, version = "io.modelcontextprotocol", "2026-07-28"
    about = {
        f"{prefix}/protocolVersion": version, f"{prefix}/clientInfo": {"name": "tests", "version": "1"},
        f"{prefix}/clientCapabilities": {"elicitation": {"form": {}}},
    }  # fmt: skip
    params = {"name": "approve_plan", "arguments": {"digest": digest}, "_meta": about, **more}
    headers = {
        **caller.headers, "accept": "application/json, text/event-stream", "mcp-protocol-version": version,
        "mcp-method": "tools/call", "mcp-name": "approve_plan",
    }  # fmt: skip
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer: dict[str, Any] = httpx.post(f"{caller.url}/mcp", json=body, headers=headers, timeout=60).json()
    return answer


def test_a_client_that_cannot_ask_is_refused(running: Running) -> None:
    digest = held_plan(running.index, 4)
    operator = running.caller("alone", "operator")
    for tool, arguments in (("approve_plan", {"digest": digest}), ("request_plan", {"mirrors": ["open"]})):
        assert operator.error(tool, **arguments).startswith(NO_CLIENT)
    # Without a session, a client of an older protocol cannot be asked over HTTP.
    person = Person("accept", {"confirm": True})
    result = operator.call("approve_plan", {"digest": digest}, elicitation_callback=person, mode="legacy")
    assert text_of(result).startswith(NO_CLIENT)
    assert person.questions == []
    assert state_of(running.index, digest) == ("held", None)


def test_a_viewer_is_refused_before_anybody_is_asked(running: Running) -> None:
    digest = held_plan(running.index, 5)
    viewer, person = running.caller("looks", "viewer"), Person("accept", {"confirm": True})
    for tool, arguments in (("approve_plan", {"digest": digest}), ("request_plan", {"mirrors": ["open"]})):
        result = viewer.call(tool, arguments, elicitation_callback=person)
        assert text_of(result) == "this operation needs the role operator; token:looks has viewer"
    assert person.questions == []


def test_hidden_plans_and_mirrors_are_refused_before_anybody_is_asked(running: Running) -> None:
    person = Person("accept", {"confirm": True})
    half = running.caller("half", "operator", Scopes.parse(["copy"]))
    digest = held_plan(running.index, 6)
    hidden, absent = (
        text_of(half.call("approve_plan", {"digest": text}, elicitation_callback=person)) for text in (digest, "0" * 64)
    )
    assert hidden.replace(digest, "0" * 64) == absent
    first, other = (
        text_of(half.call("request_plan", {"mirrors": [name]}, elicitation_callback=person)) for name in ("hidden", "absent")
    )
    assert first.replace("hidden", "absent") == other
    assert "there is no mirror 'absent'" in other
    assert person.questions == []
    assert state_of(running.index, digest) == ("held", None)


def test_a_plan_that_is_not_held_is_refused(running: Running) -> None:
    digest = held_plan(running.index, 7)
    operator, person = running.caller("twice", "operator"), Person("accept", {"confirm": True})
    operator.call("approve_plan", {"digest": digest}, elicitation_callback=person)
    again = operator.call("approve_plan", {"digest": digest}, elicitation_callback=person)
    assert text_of(again).startswith(f"the plan {digest[:12]} is approved, not held\nhint: ")
    assert len(person.questions) == 1


def test_a_plan_is_requested_like_over_the_api(running: Running) -> None:
    operator, person = running.caller("plans", "operator"), Person("accept", {"confirm": True})
    result = operator.call("request_plan", {"mirrors": ["open"]}, elicitation_callback=person)
    view = result.structured_content
    assert view == operator.json(f"/api/v1/requests/{view['id']}")
    with running.index.read() as connection:
        queued = requests.get_request(connection, view["id"])
    assert (queued.kind, queued.argument, queued.actor) == ("plan", {"mirrors": ["open"]}, "token:plans")
    assert person.questions == ["Read the catalogs of these mirrors and plan their changes, without applying them: open"]
    assert text_of(operator.call("request_plan", {"mirrors": []}, elicitation_callback=person)).startswith(
        "mirrors: must be a list of at least 1 item"
    )


@pytest.mark.timeout(120)
def test_the_response_of_another_process_is_read_to_its_end(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts are sent while the caller waits for the end of the request, which must not occupy the event loop."""
    digest = held_plan(running.index, 9)
    monkeypatch.setattr(plans_view, "LARGE_PLAN", 0)
    part = running.caller("part", "viewer", Scopes.parse(["copy", "spare$s$gone9_1"]))
    shown = part.view("describe_plan", digest=digest)
    assert (shown["partial"], len(shown["plan"]["changes"])) == (True, 1)
    operator, person = running.caller("decides", "operator"), Person("accept", {"confirm": True})
    result = operator.call("approve_plan", {"digest": digest}, elicitation_callback=person)
    assert (result.is_error, state_of(running.index, digest)[0]) == (False, "approved")


def test_a_large_plan_is_decided_but_not_shown(running: Running) -> None:
    digest = held_plan(running.index, 8, size=2000)
    operator, person = running.caller("large", "operator"), Person("accept", {"confirm": True})
    assert " characters, and at most 400,000 are allowed\nhint: " in operator.error("describe_plan", digest=digest)
    result = operator.call("approve_plan", {"digest": digest}, elicitation_callback=person)
    assert (result.is_error, result.structured_content["state"]) == (False, "approved")
    assert person.questions[0].splitlines()[2] == "2000 changes: 2000 deregister_table"
    with running.index.write() as connection:
        connection.execute(update(t.plan).where(t.plan.c.digest == digest).values(body="not parsed" * 50_000))
    assert operator.error("describe_plan", digest=digest).startswith("the plan has 500,000 characters")
