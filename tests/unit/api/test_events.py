"""A run's progress as server-sent events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from federator.api import run_streams, server_sent_events
from federator.api.routes import events
from federator.store import Index, runs
from tests.unit.api.conftest import Api


def parse_events(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """The events of a stream: id, kind and data."""
    blocks = [
        dict(line.split(": ", 1) for line in block.split("\n")) for block in text.split("\n\n") if block.startswith("id: ")
    ]
    return [(block["id"], block["event"], json.loads(block["data"])) for block in blocks]


@pytest.fixture
def run(index: Index) -> runs.RunHandle:
    return runs.insert_run(index, "crawl", trigger="request", actor="api")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, index: Index, run: runs.RunHandle) -> None:
    """What the run does between two looks at it: nothing, progress, one source, the end."""
    todo = [
        lambda: None,
        lambda: runs.set_progress(index, run, "lake: 10 of 20"),
        lambda: runs.record_source_result(index, run, "lake", state="ok", tables=20),
        lambda: runs.finish_run(index, run, "ok", summary={"tables": 20}),
    ]

    async def pause() -> None:
        todo.pop(0)()

    monkeypatch.setattr(events, "_sleep", pause)
    monkeypatch.setattr(run_streams, "POLL_SECONDS", 0.0)


@pytest.mark.usefixtures("steps")
def test_events_tell_each_change_once_and_end_with_the_run(api: Api, run: runs.RunHandle) -> None:
    response = api.get(f"/api/v1/runs/{run.id}/events", headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "content-encoding" not in response.headers
    result = parse_events(response.text)
    assert [(kind, data["state"], data["progress"]) for _, kind, data in result] == [
        ("progress", "running", None), ("progress", "running", "lake: 10 of 20"), ("progress", "running", "lake: 10 of 20"),
        ("end", "ok", None),
    ]  # fmt: skip
    assert [len(data["sources"]) for _, _, data in result] == [0, 0, 1, 1]
    assert len({key for key, _, _ in result}) == 4
    last = result[-1][0]
    again = api.get(f"/api/v1/runs/{run.id}/events", headers={"Last-Event-ID": last})
    assert (again.status_code, again.content) == (204, b"")
    resumed = parse_events(api.get(f"/api/v1/runs/{run.id}/events", headers={"Last-Event-ID": result[1][0]}).text)
    assert [key for key, _, _ in resumed] == [last]


@pytest.mark.usefixtures("steps")
def test_a_reader_with_the_current_state_receives_nothing_twice(
    api: Api, run: runs.RunHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent_events, "KEEP_ALIVE_SECONDS", 0.0)
    first = parse_events(api.get(f"/api/v1/runs/{run.id}/events").text)[0][0]
    text = api.get(f"/api/v1/runs/{run.id}/events", headers={"Last-Event-ID": "something else"}).text
    assert first not in text
    assert parse_events(text)[0][1] == "end"


@pytest.mark.usefixtures("steps")
def test_a_quiet_run_keeps_the_connection(api: Api, run: runs.RunHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "KEEP_ALIVE_SECONDS", 0.0)
    text = api.get(f"/api/v1/runs/{run.id}/events").text
    assert ": still running\n\n" in text


def test_a_stream_ends_in_time_to_be_asked_for_again(api: Api, run: runs.RunHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MAX_STREAM_SECONDS", 0.0)
    assert api.get(f"/api/v1/runs/{run.id}/events").text == "retry: 2000\n\n"


def test_there_are_no_events_of_a_run_that_is_not_there(api: Api) -> None:
    assert api.get("/api/v1/runs/none/events").json()["status"] == 404
