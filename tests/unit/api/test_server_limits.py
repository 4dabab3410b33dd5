"""Limits for requests before authentication, and for event streams per principal."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from federator.api import run_streams
from federator.api.app import create_app
from federator.api.authentication import CACHE_SECONDS
from federator.api.http_limits import HEAD_SECONDS, MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_PIPELINED
from federator.api.problems import RequestRejected
from federator.api.routes import events
from federator.api.run_streams import MAX_STREAMS, MAX_STREAMS_PER_PRINCIPAL, RunStreams
from federator.model.scopes import EVERYTHING
from federator.settings import Settings
from federator.store import Index, open_index, runs, tokens
from federator.views import runs as views
from federator.views.visibility import Visibility
from tests.fixtures.serving import serve_app
from tests.unit.api.service_process import Process

MIB = 1024 * 1024
HALF_SENT = MAX_CONNECTIONS + 400
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


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


def send_in_all(process: Process, start: bytes, size: int) -> list[int]:
    """Sends heads without end, each until it is refused, and ``size`` bytes in all. Returns how much each could send."""
    sent: list[int] = []
    while sum(sent) < size:
        sent.append(send_until_refused(process, start, size - sum(sent))[1])
    return sent


def test_heads_without_end_are_refused_and_take_no_memory(start: Callable[..., Process]) -> None:
    process = start("api")
    await_warm(process)
    process.forget_peak_memory()
    before = process.memory()
    for start_of_head, size in (
        (b"GET /", 60 * MIB),
        (HEAD + b"X-Large: ", 150 * MIB),
        (HEAD, 150 * MIB),
        (HEAD + b"a: b\r\n" * 5000, 150 * MIB),
        (CHUNKED + b"1;extension=", 60 * MIB),
        (CHUNKED + b"1\r\nx\r\n0\r\nX-Trailer: ", 60 * MIB),
    ):
        assert max(send_in_all(process, start_of_head, size)) < 60 * MIB
        assert httpx.get(f"{process.url()}/healthz").status_code == 200
    assert process.peak_memory() - before < 20 * MIB


def await_warm(process: Process) -> None:
    """Ask for something until the first requests have taken the memory that all further ones use."""
    for _ in range(50):
        assert httpx.get(f"{process.url()}/healthz").status_code == 200


def test_a_large_head_is_refused_with_the_reason(start: Callable[..., Process]) -> None:
    process = start("api")
    with connected(process) as connection:
        connection.sendall(HEAD + b"X-Large: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 431 ")
    with connected(process) as connection:
        connection.sendall(HEAD + b"X-Large: " + b"a" * (MAX_HEAD_BYTES // 2) + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        # The second head of a connection, which the parser has read completely when it turns out to be too large.
        connection.sendall(HEAD + b"X-Large: " + b"a" * (MAX_HEAD_BYTES // 2))
        connection.sendall(b"a" * (MAX_HEAD_BYTES // 2) + b"\r\n\r\n")
        _read_until(connection, b"HTTP/1.1 431 ")


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
        # A trailer is no header of the request.
        connection.sendall(CHUNKED + b"2\r\n{}\r\n0\r\nExpect: 100-continue\r\nHost: elsewhere\r\n\r\n" + HEAD + b"\r\n")
        response = b""
        while b"HTTP/1.1 200 " not in response:
            response += connection.recv(65_536)
        assert (response.count(b"HTTP/1.1 "), response[:13]) == (2, b"HTTP/1.1 400 ")


def test_half_sent_requests_neither_stop_others_nor_stay(start: Callable[..., Process]) -> None:
    process = start("api")
    url = process.url()
    await_warm(process)
    process.forget_peak_memory()
    before, threads = process.memory(), process.threads()
    address = (httpx.URL(url).host, httpx.URL(url).port or 0)
    half = [socket.create_connection(address, timeout=60) for _ in range(HALF_SENT)]
    try:
        began = time.monotonic()
        for connection in half:
            connection.sendall(HEAD + b"X-Half: " + b"a" * (MAX_HEAD_BYTES // 2))
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 200
        assert process.threads() <= threads + 2
        closed = [_is_closed(connection, began + HEAD_SECONDS + 30) for connection in half]
        assert all(closed)
        assert process.peak_memory() - before < 20 * MIB
    finally:
        for connection in half:
            connection.close()


def test_requests_that_wait_for_others_of_their_connection_take_no_memory(start: Callable[..., Process]) -> None:
    """HTTP pipelining: one packet has thousands of requests, whose responses nobody reads."""
    process = start("api")
    await_warm(process)
    process.forget_peak_memory()
    before = process.memory()
    request = b"GET /ui/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(20):
            with suppress(ConnectionResetError):
                stack.enter_context(connected(process)).sendall(request * 6000)
        assert httpx.get(f"{process.url()}/healthz", timeout=30).status_code == 200
        assert process.peak_memory() - before < 20 * MIB
    assert "request failed" not in process.text
    with connected(process) as connection:
        connection.sendall(request * 100)
        assert b"".join(iter(lambda: connection.recv(65_536), b"")).count(b"HTTP/1.1 200 ") == MAX_PIPELINED + 1
    # A few are answered, in their order.
    with connected(process) as connection:
        connection.sendall(HEAD + b"\r\n" + HEAD + b"Connection: close\r\n\r\n")
        assert b"".join(iter(lambda: connection.recv(65_536), b"")).count(b"HTTP/1.1 200 ") == 2


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
        streams = [stack.enter_context(connected(process)) for _ in range(MAX_STREAMS_PER_PRINCIPAL)]
        assert [follow(stream, ids[number % 2]) for number, stream in enumerate(streams)] == [200] * len(streams)
        assert all(b'"state":"running"' in _read_until(stream, b"\n\n", b"data:") for stream in streams)
        refused = httpx.get(f"{url}/api/v1/runs/{ids[0]}/events", timeout=30)
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (429, 21, "10")
        assert httpx.get(f"{url}/api/v1/runs/{ids[0]}").json()["state"] == "running"
        # A stream that its client has left no longer counts.
        streams[0].close()
        end = time.monotonic() + 60
        while True:
            with connected(process) as another:
                if follow(another, ids[0]) == 200:
                    break
            assert time.monotonic() < end
            time.sleep(0.1)


def test_a_stream_of_a_revoked_token_is_cut_off(start: Callable[..., Process], tmp_path: Path) -> None:
    process = start("api")
    process.url()
    index = open_index("sqlite:///federator.db", base=tmp_path)
    token, _ = tokens.create_token(index, "leaver", role="viewer", scopes=EVERYTHING, lifetime=3600, actor="tests")
    run = runs.insert_run(index, "crawl", trigger="request", actor="api")
    with connected(process) as connection:
        assert follow(connection, run.id, token) == 200
        assert b'"state":"running"' in _read_until(connection, b"\n\n", b"data:")
        tokens.revoke_token(index, "leaver", actor="tests")
        time.sleep(CACHE_SECONDS)
        runs.set_progress(index, run, "hidden from those who have left")
        connection.settimeout(30)
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    index.close()
    assert "request failed" not in process.text


def follow(connection: socket.socket, run: str, token: str | None = None) -> int:
    """Asks for the events of a run. Returns the status."""
    credential = f"Authorization: Bearer {token}\r\n" if token is not None else ""
    connection.sendall(f"GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n{credential}\r\n".encode())
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

    def count(index: Index, viewer: Visibility, run_id: str) -> Any:
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


def test_streams_of_one_run_cost_neither_threads_nor_further_queries(
    index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queries of a poll and the threads are the same for one stream and for the largest number of streams."""
    monkeypatch.setattr(run_streams, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(events, "POLL_SECONDS", 0.2)
    run = runs.insert_run(index, "crawl", trigger="request", actor="api").id
    callers = [
        tokens.create_token(index, f"caller {number}", role="viewer", scopes=EVERYTHING, lifetime=3600, actor="tests")[0]
        for number in range(MAX_STREAMS // MAX_STREAMS_PER_PRINCIPAL)
    ]
    app = create_app(settings_of())
    caller = cycle(callers)
    counts = Counter[str]()
    sleep = events._sleep

    async def count_sleep() -> None:
        counts["sleeps"] += 1
        await sleep()

    monkeypatch.setattr(events, "_sleep", count_sleep)
    event.listen(app.state.index.engine, "before_cursor_execute", lambda *_: counts.update(["queries"]))
    with ExitStack() as stack:
        url = httpx.URL(stack.enter_context(serve_app(app, force_exit=True)))

        def open_streams(number: int, open_before: int) -> tuple[float, int]:
            """Open further streams. Returns the queries in the time of one poll while nothing changes, and the process's threads."""
            for _ in range(number):
                stream = stack.enter_context(socket.create_connection((url.host, url.port or 0), timeout=60))
                assert follow(stream, run, next(caller)) == 200
                assert b'"state":"running"' in _read_until(stream, b"\n\n", b"data:")
            streams = number + open_before
            counts.clear()
            while counts["sleeps"] < 10 * streams:
                time.sleep(0.05)
            return counts["queries"] / (counts["sleeps"] / streams), threading.active_count()

        queries_of_one, threads_of_one = open_streams(1, 0)
        queries_of_all, threads_of_all = open_streams(MAX_STREAMS - 1, 1)
    assert queries_of_one > 0
    # On a busy machine, a stream is slower than the polls. If each had its own poll, there would be 128 times as many.
    assert queries_of_all < 32 * queries_of_one
    assert threads_of_all <= threads_of_one + 8


def test_all_callers_together_have_a_number_of_event_streams(index: Index) -> None:
    streams = RunStreams(index)
    with ExitStack() as stack:
        for number in range(MAX_STREAMS):
            stack.enter_context(streams.counted(f"caller {number % 10}"))
        with pytest.raises(RequestRejected, match="too many event streams"):
            stack.enter_context(streams.counted("another caller"))
    with streams.counted("another caller"):
        pass


def test_a_request_has_one_host_and_one_length(start: Callable[..., Process]) -> None:
    process = start("api")
    await_warm(process)

    def send(path: str, *headers: str, version: str = "1.1") -> bytes:
        with connected(process) as connection:
            lines = "".join(f"{header}\r\n" for header in headers)
            connection.sendall(f"POST {path} HTTP/{version}\r\n{lines}Connection: close\r\n\r\n{{}}".encode())
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    one, length, chunked = "Host: localhost", "Content-Length: 2", "Transfer-Encoding: chunked"
    several_hosts = ((one, one), (one, "host: evil.example"), ("Host: evil.example", one))
    for path in ("/healthz", "/", "/nothing", "/api/v1/me", "/v1/namespace/%24/list", "/mcp"):
        for hosts, version in (((), "1.1"), *((hosts, version) for hosts in several_hosts for version in ("1.1", "1.0"))):
            response = send(path, *hosts, length, version=version)
            assert response.startswith(b"HTTP/1.1 400 "), (path, hosts, version, response)
            assert b"a request has one Host header" in response
        for lengths in ((length, length), (length, "Content-Length: 3"), (length, chunked), (chunked, length)):
            assert send(path, one, *lengths).startswith(b"HTTP/1.1 400 "), (path, lengths)
    assert send("/healthz", one, length).startswith(b"HTTP/1.1 405 ")
    # RFC 9112, 3.2.2: the host of the target counts, not that of the header.
    for target in (
        "http://evil.example/healthz", "HTTP://evil.example:80/healthz?a=http://localhost/", "http://evil@localhost/healthz",
        "http:///healthz", "http://evil.example?/healthz",
    ):  # fmt: skip
        assert send(target, one, length).split()[1] in (b"400", b"421"), target
    for target, host in (
        ("http://localhost/healthz", "Host: evil.example"),
        ("http://127.0.0.1:80/healthz", one),
        ("/healthz?a=http://evil.example/", one),
    ):
        assert send(target, host, length).split()[1] == b"405", target
    assert send("http://localhost/healthz", one, one, length).startswith(b"HTTP/1.1 400 ")
    # A client of HTTP/1.0 may omit the header; on loopback it is needed.
    assert send("/healthz", length, version="1.0").startswith(b"HTTP/1.1 421 ")
