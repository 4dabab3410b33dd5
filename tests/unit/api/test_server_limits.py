"""Limits for requests before authentication, and for event streams per principal."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from federator.api import run_streams
from federator.api.http_limits import HEAD_SECONDS, MAX_CONNECTIONS, MAX_HEAD_BYTES
from federator.api.problems import RequestRejected
from federator.api.run_streams import MAX_STREAMS, MAX_STREAMS_PER_CALLER, RunStreams
from federator.store import Index, open_index, runs
from federator.views import runs as views
from tests.unit.api.service_process import Process

MIB = 1024 * 1024
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def connected(process: Process) -> Iterator[socket.socket]:
    url = httpx.URL(process.url())
    with socket.create_connection((url.host, url.port or 0), timeout=60) as connection:
        yield connection


def send_until_refused(process: Process, start: bytes, size: int) -> tuple[bytes, int]:
    """Sends a head without end. Returns the response, and how much could be sent."""
    with connected(process) as connection:
        connection.sendall(start)
        sent, part = 0, b"a" * 65_536
        try:
            while sent < size:
                sent += connection.send(part)
            response = connection.recv(1000)
        except (ConnectionResetError, BrokenPipeError):
            response = b""
    return response, sent


@pytest.mark.parametrize("start_of_head", [b"GET /", HEAD + b"X-Large: ", HEAD], ids=["url", "one header", "names"])
def test_a_head_without_end_is_refused(start: Callable[..., Process], start_of_head: bytes) -> None:
    process = start("api")
    assert httpx.get(f"{process.url()}/healthz").status_code == 200
    before = process.memory()
    _, sent = send_until_refused(process, start_of_head, 60 * MIB)
    assert sent < 60 * MIB
    assert process.memory() - before < 20 * MIB
    assert httpx.get(f"{process.url()}/healthz").status_code == 200


def test_a_large_head_is_refused_with_the_reason(start: Callable[..., Process]) -> None:
    process = start("api")
    with connected(process) as connection:
        connection.sendall(HEAD + b"X-Large: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 431 ")
    with connected(process) as connection:
        connection.sendall(HEAD + b"X-Large: " + b"a" * (MAX_HEAD_BYTES // 2) + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_bodies_and_further_requests_are_not_counted_as_heads(start: Callable[..., Process]) -> None:
    process = start("api")
    body = b"x" * (4 * MAX_HEAD_BYTES)
    head = (
        b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
    )
    with connected(process) as connection:
        for _ in range(3):
            connection.sendall(head + body)
            response = b""
            while b"\r\n\r\n" not in response or not response.endswith(b"}"):
                response += connection.recv(65_536)
            assert response.startswith(b"HTTP/1.1 400 ")


def test_half_sent_requests_neither_stop_others_nor_stay(start: Callable[..., Process]) -> None:
    process = start("api")
    url = process.url()
    for _ in range(50):
        assert httpx.get(f"{url}/healthz").status_code == 200
    before, address = process.memory(), (httpx.URL(url).host, httpx.URL(url).port or 0)
    half = [socket.create_connection(address, timeout=60) for _ in range(MAX_CONNECTIONS + 200)]
    try:
        began = time.monotonic()
        for connection in half:
            connection.sendall(HEAD + b"X-Half: " + b"a" * (MAX_HEAD_BYTES // 2))
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 200
        assert process.memory() - before < 20 * MIB
        closed = [_is_closed(connection, began + HEAD_SECONDS + 30) for connection in half]
        assert all(closed)
    finally:
        for connection in half:
            connection.close()


def _is_closed(connection: socket.socket, until: float) -> bool:
    connection.settimeout(max(0.1, until - time.monotonic()))
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_a_caller_has_a_number_of_event_streams(start: Callable[..., Process], tmp_path: Path) -> None:
    process = start("api")
    url = process.url()
    index = open_index("sqlite:///federator.db", base=tmp_path)
    ids = [runs.insert_run(index, "crawl", trigger="request", actor="api").id for _ in range(2)]
    index.close()
    with ExitStack() as stack:
        streams = [stack.enter_context(connected(process)) for _ in range(MAX_STREAMS_PER_CALLER)]
        assert [follow(stream, ids[number % 2]) for number, stream in enumerate(streams)] == [200] * len(streams)
        assert all(b'"state":"running"' in _read_until(stream, b"\n\n", b"data:") for stream in streams)
        refused = httpx.get(f"{url}/api/v1/runs/{ids[0]}/events", timeout=30)
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (429, 21, "10")
        assert httpx.get(f"{url}/api/v1/runs/{ids[0]}").json()["state"] == "running"
        # A stream that its client has left no longer counts.
        streams[0].close()
        end = time.monotonic() + 30
        while True:
            with connected(process) as another:
                if follow(another, ids[0]) == 200:
                    break
            assert time.monotonic() < end
            time.sleep(0.1)


def follow(connection: socket.socket, run: str) -> int:
    """Asks for the events of a run. Returns the status."""
    connection.sendall(f"GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return int(_read_until(connection, b"\r\n\r\n").split()[1])


def _read_until(connection: socket.socket, end: bytes, *also: bytes) -> bytes:
    received = b""
    while end not in received or not all(part in received for part in also):
        part = connection.recv(1 if not also else 65_536)
        assert part, received
        received += part
    return received


@pytest.mark.parametrize("followers", [1, 30])
def test_a_run_is_read_once_however_many_follow_it(index: Index, monkeypatch: pytest.MonkeyPatch, followers: int) -> None:
    run = runs.insert_run(index, "crawl", trigger="request", actor="api")
    read: list[str] = []
    honest = views.get_run_progress

    def count(index: Index, viewer: views.Visibility, run_id: str) -> Any:
        read.append(run_id)
        return honest(index, viewer, run_id)

    monkeypatch.setattr(views, "get_run_progress", count)
    streams = RunStreams(index)

    async def follow_together() -> set[str]:
        return set(await asyncio.gather(*(streams.version(run.id) for _ in range(followers))))

    first = asyncio.run(follow_together())
    assert (len(first), read) == (1, [run.id])
    monkeypatch.setattr(run_streams, "POLL_SECONDS", 0.0)
    runs.set_progress(index, run, "lake: 10 of 20")
    assert asyncio.run(streams.version(run.id)) not in first


def test_all_callers_together_have_a_number_of_event_streams(index: Index) -> None:
    streams = RunStreams(index)
    with ExitStack() as stack:
        for number in range(MAX_STREAMS):
            stack.enter_context(streams.counted(f"caller {number % 10}"))
        with pytest.raises(RequestRejected, match="too many event streams"):
            stack.enter_context(streams.counted("another caller"))
    with streams.counted("another caller"):
        pass
