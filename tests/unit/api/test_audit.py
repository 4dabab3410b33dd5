"""The audit record over HTTP: pages, filters, and no secret."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from federator import audit
from federator.audit.heads import record_head
from federator.audit.verification import read_state
from federator.store import Index, audit_log
from federator.store import tables as t
from tests.unit.api.conftest import Api


@pytest.fixture
def sealed(index: Index) -> int:
    """Ten events; the number of the newest."""
    with index.write() as connection:
        for number in range(10):
            kind = "write" if number % 2 else "plan"
            detail = {"n": number, "properties": {"aws.secret_access_key": "planted"}}
            audit_log.append_event(connection, kind, actor="ann", run_id=f"r{number % 3}", subject=f"s{number}", detail=detail)
    audit.seal_pending(index)
    with index.read() as connection:
        return audit_log.get_chain_tip(connection)[0]


def numbers(api: Api, url: str = "/api/v1/audit", **params: object) -> list[int]:
    result: list[int] = []
    cursor: str | None = None
    while True:
        page = api.json(url, params={**params, **({"cursor": cursor} if cursor else {})})
        result += [event["seq"] for event in page["events"]]
        cursor = page["next"]
        if cursor is None:
            return result


@pytest.mark.parametrize("limit", [1, 3, 10, 1000])
def test_pages_hold_every_event_once_newest_first(api: Api, sealed: int, limit: int) -> None:
    assert numbers(api, limit=limit) == list(range(sealed, 0, -1))


def test_an_event_carries_its_position_in_the_chain(api: Api, sealed: int) -> None:
    newest, before = api.json("/api/v1/audit?limit=2")["events"]
    assert newest["previous"] == before["digest"] != newest["digest"]
    assert (newest["kind"], newest["actor"], newest["run_id"], newest["subject"]) == ("write", "ann", "r0", "s9")
    assert newest["detail"]["n"] == 9
    assert newest["at"].endswith("Z")


def test_filters(api: Api, sealed: int) -> None:
    first = sealed - 9
    assert numbers(api, kind="write", limit=2) == [first + n for n in (9, 7, 5, 3, 1)]
    assert numbers(api, subject="s4") == [first + 4]
    assert numbers(api, run="r1") == [first + n for n in (7, 4, 1)]
    assert numbers(api, run="r1", kind="write") == [first + n for n in (7, 1)]
    assert numbers(api, kind="signed_out") == []
    assert api.get("/api/v1/audit?kind=nothing").status_code == 400
    later = api.json("/api/v1/audit?subject=s5")["events"][0]["at"]
    assert set(numbers(api, since=later)) == {first + n for n in (5, 6, 7, 8, 9)}
    assert numbers(api, since=datetime(2199, 1, 1, tzinfo=UTC).isoformat()) == []


def test_secrets_are_masked(api: Api, sealed: int) -> None:
    response = api.get("/api/v1/audit")
    assert "(masked)" in response.text
    assert "planted" not in response.text


def test_new_events_do_not_move_a_page(api: Api, index: Index, sealed: int) -> None:
    first = api.json("/api/v1/audit?limit=4")
    with index.write() as connection:
        audit_log.append_event(connection, "late", actor="ann", run_id=None, subject="s", detail={})
    audit.seal_pending(index)
    second = api.json("/api/v1/audit", params={"limit": 4, "cursor": first["next"]})
    assert [event["seq"] for event in second["events"]] == list(range(sealed - 4, sealed - 8, -1))


def test_invalid_parameters_are_a_problem(api: Api, sealed: int) -> None:
    mine = api.json("/api/v1/audit?limit=1")["next"]
    from federator.api.paging import encode_cursor

    request = [{"since": "yesterday"}, {"limit": 0}, {"kind": "a\0b"}, {"cursor": "no"}, {"cursor": mine, "kind": "write"},
             {"cursor": encode_cursor('["audit", null, null, null, "None"]', "x")}]  # fmt: skip
    for params in request:
        response = api.get("/api/v1/audit", params=params)
        assert (response.status_code, response.headers["content-type"]) == (400, "application/problem+json"), params


def test_is_answered_from_the_callers_own_copy(api: Api, sealed: int) -> None:
    tag = api.get("/api/v1/audit").headers["etag"]
    assert api.get("/api/v1/audit", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize("newest", [1000, 4])
def test_the_state_of_the_chain_finds_an_altered_event(index: Index, sealed: int, newest: int) -> None:
    intact = read_state(index, newest=newest)
    assert (intact.sealed, intact.checked, intact.finding) == (sealed, min(newest, sealed), None)
    with index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(update(t.audit_event).where(t.audit_event.c.seq == sealed - 2).values(actor="eve"))
    finding = read_state(index, newest=newest).finding
    assert finding is not None
    assert str(sealed - 2) in finding


def test_the_state_says_how_far_the_chain_is_sealed_and_attested(api: Api, index: Index, sealed: int) -> None:
    state = api.json("/api/v1/audit/state")
    assert (state["sealed"], state["unsealed"], state["signed"], state["anchored"]) == (sealed, 0, 0, 0)
    assert state["digest"] == api.json("/api/v1/audit?limit=1")["events"][0]["digest"]
    record_head(index, None)
    with index.write() as connection:
        audit_log.mark_anchored(connection, sealed)
        audit_log.append_event(connection, "late", actor="ann", run_id=None, subject="s", detail={})
    state = api.json("/api/v1/audit/state")
    assert (state["anchored"], state["unsealed"], state["finding"]) == (sealed, 1, None)
