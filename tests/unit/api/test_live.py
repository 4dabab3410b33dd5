"""Live status as server-sent events: content, readers and cost."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from itertools import pairwise

import pytest

from federator.api import live_states, server_sent_events
from federator.api.live_states import LiveStates
from federator.api.models.live import LiveState
from federator.api.routes import live
from federator.api.run_streams import MAX_STREAMS_PER_PRINCIPAL
from federator.store import Index, run_stages, runs
from tests.fixtures.index_content import fill, table
from tests.unit.api.conftest import Api
from tests.unit.api.test_events import parse_events
from tests.unit.api.test_runs import add_plan


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_states, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(live_states, "_CHANGED_SECONDS", 0.0)


def test_each_change_is_one_event_that_names_its_part(api: Api, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    handles, digest = [], add_plan(index, "ready")
    todo = [
        lambda: handles.append(runs.insert_run(index, "crawl", trigger="request", actor="api")),
        lambda: None,
        lambda: fill(index, "lake", table("lake", "sales", "late")),
        lambda: run_stages.start_stage(index, handles[0].id, "apply", "m", plan=digest),
        lambda: runs.finish_run(index, handles[0], "ok", summary={}),
    ]

    async def step() -> None:
        todo.pop(0)()
        if not todo:
            api.app.state.live_states.is_closed = True

    monkeypatch.setattr(live, "_sleep", step)
    states = [data for _, kind, data in parse_events(api.get("/api/v1/events").text) if kind == "state"]
    changed = [{key for key in after if after[key] != before[key]} for before, after in pairwise(states)]
    assert changed == [{"runs", "overview"}, {"overview", "revisions"}, {"plans"}, {"runs", "overview", "plans"}]
    assert states[2]["revisions"]["lake"] > states[0]["revisions"]["lake"]


def test_a_client_with_the_present_state_gets_no_event(api: Api) -> None:
    ((event_id, _, _),) = parse_events(api.get("/api/v1/events?seconds=0").text)
    assert parse_events(api.get("/api/v1/events?seconds=0", headers={"Last-Event-ID": event_id}).text) == []


def test_a_quiet_stream_says_that_it_is_alive(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "KEEP_ALIVE_SECONDS", 0.0)
    ((event_id, _, _),) = parse_events(api.get("/api/v1/events?seconds=0").text)
    text = api.get("/api/v1/events?seconds=0", headers={"Last-Event-ID": event_id}).text
    assert "event: alive\ndata: {}\n\n" in text


def test_streams_of_one_principal_share_one_reading(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_states, "POLL_SECONDS", 60.0)
    read: list[int] = []

    def count() -> LiveState:
        read.append(1)
        return LiveState(overview="a", runs="b", plans="c", revisions={})

    async def follow_together() -> None:
        states = LiveStates(index)
        await asyncio.gather(*(states.get("ann", count) for _ in range(20)))
        await states.get("ben", count)

    asyncio.run(follow_together())
    assert len(read) == 2


def test_the_streams_of_a_caller_are_limited_together_with_those_of_runs(api: Api) -> None:
    streams = api.app.state.run_streams
    caller = api.json("/api/v1/me")["name"]
    with ExitStack() as stack:
        for _ in range(MAX_STREAMS_PER_PRINCIPAL):
            stack.enter_context(streams.counted(caller))
        assert api.get("/api/v1/events?seconds=0").status_code == 429
    assert api.get("/api/v1/events?seconds=0").status_code == 200
