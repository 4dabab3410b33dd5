"""Request bodies that arrive slowly, on the real server."""

from __future__ import annotations

import asyncio
import re
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from federator.api import http_limits
from federator.api.http_limits import LimitedHttpProtocol, build_limited_protocol
from federator.api.lance import general_spec, namespaces, table_metadata, table_read, table_write, tables, unsupported
from federator.settings.sections import ServeSettings
from tests.fixtures.serving import serve_app
from tests.unit.api.service_process import CONFIG, Process

LANCE = (namespaces, tables, table_read, table_metadata, table_write, unsupported, general_spec)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service that expects 1,000 bytes of a body in a second."""
    directory = tmp_path_factory.mktemp("impatient")
    limits = '[serve]\nbody_timeout = "1s"\nbody_progress = 1000\n'
    text = CONFIG.format(directory=directory).replace("[serve]\n", limits)
    (directory / "federator.toml").write_text(text, encoding="utf-8")
    process = Process(directory, "api")
    yield process
    process.kill()


def _connect(url: str) -> socket.socket:
    parsed = httpx.URL(url)
    return socket.create_connection((parsed.host, parsed.port or 0), timeout=30)


def _head(method: str, path: str, *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def _operations(process: Process) -> list[tuple[str, str]]:
    """Every operation, those of the Lance protocols included, and two that do not exist."""
    document = httpx.get(f"{process.url()}/openapi.json", timeout=60).json()
    own = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    lance = {
        (method, route.path)
        for module in LANCE
        for route in module.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    absent = {("POST", "/no/such/route"), ("POST", "/v1/no/such/route")}
    return sorted({(method, re.sub(r"\{[^}]*\}", "lake", path)) for method, path in own | lance | absent})


def test_no_route_waits_for_a_body_that_arrives_byte_by_byte(impatient: Process) -> None:
    operations = _operations(impatient)
    assert len(operations) > 100
    received: dict[socket.socket, bytes] = {}
    with ExitStack() as stack:
        for number, (method, path) in enumerate(operations):
            connection = stack.enter_context(_connect(impatient.url()))
            chunked = number % 2 == 1
            connection.sendall(_head(method, path, "Transfer-Encoding: chunked" if chunked else "Content-Length: 20000"))
            connection.sendall(b"4e20\r\n" if chunked else b"")
            received[connection] = b""
        opened, end = stack.enter_context(selectors.DefaultSelector()), time.monotonic() + 60
        for connection in received:
            opened.register(connection, selectors.EVENT_READ, connection)
        while opened.get_map() and time.monotonic() < end:
            for key, _ in opened.select(0.2):
                part = _receive(key.data)
                received[key.data] += part
                if not part:
                    opened.unregister(key.data)
            for key in opened.get_map().values():
                with suppress(ConnectionError):
                    key.data.send(b" ")
        assert not opened.get_map()
    responses = dict(zip(operations, received.values(), strict=True))
    late = {operation: text for operation, text in responses.items() if text.startswith(b"HTTP/1.1 408 ")}
    assert len(late) >= 50, Counter(text[9:12] for text in responses.values())
    assert all(b"less than 1000 bytes in 1 s" in text for text in late.values())
    assert b'"code":13' in late["POST", "/v1/table/lake/query"]
    assert b"application/problem+json" in late["POST", "/api/v1/runs"]
    assert httpx.get(f"{impatient.url()}/healthz").status_code == 200


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except ConnectionResetError:
        return b""


def test_a_body_that_makes_progress_may_take_longer(impatient: Process) -> None:
    with _connect(impatient.url()) as connection:
        connection.sendall(_head("POST", "/api/v1/runs", "Content-Length: 12000"))
        for _ in range(8):
            connection.sendall(b" " * 1500)
            time.sleep(0.3)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")
        # The limit is one of bodies: the connection may wait for its next request.
        time.sleep(1.3)
        connection.sendall(_head("GET", "/healthz"))
        assert b"HTTP/1.1 200 " in connection.recv(65_536)


@contextmanager
def _serve_slow_bodies(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[socket.socket], None]]]:
    """A server of at most ten connections: its address, and a function that sends half a body and waits until it is read."""
    monkeypatch.setattr(http_limits, "MAX_CONNECTIONS", 10)
    begun = threading.Semaphore(0)

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        await PlainTextResponse(str(len(await Request(scope, receive).body())))(scope, receive, send)

    def send_slow_body(connection: socket.socket) -> None:
        connection.sendall(_head("POST", "/", "Content-Length: 20") + b"x" * 10)
        assert begun.acquire(timeout=30)

    protocol = build_limited_protocol(ServeSettings(body_timeout=60))
    with serve_app(respond, http=protocol, ws="none", lifespan="off", force_exit=True) as url:
        yield url, send_slow_body


def test_slow_bodies_make_room_for_new_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes as much progress as it must, so no time limit ends it."""
    with _serve_slow_bodies(monkeypatch) as (url, send_slow_body), ExitStack() as stack:
        slow = [stack.enter_context(_connect(url)) for _ in range(10)]
        for connection in slow:
            send_slow_body(connection)
        with httpx.Client(timeout=30) as client:
            assert [client.get(url).text for _ in range(3)] == ["0"] * 3
        # The one that had taken longest was closed, and no other.
        assert _receive(slow[0]) == b""
        for connection in slow[1:]:
            connection.sendall(b"x" * 10)
            assert _receive(connection).startswith(b"HTTP/1.1 200 ")


def test_connections_without_a_request_make_room_and_else_stay_longer_than_clients_keep_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """reqwest and Go keep an unused connection for 90 s, nginx and load balancers for 60 s. One that the service closes first can break
    a request that is on its way."""
    with _serve_slow_bodies(monkeypatch) as (url, _), ExitStack() as stack:
        idle = [stack.enter_context(_connect(url)) for _ in range(10)]
        for connection in idle:
            connection.sendall(_head("GET", "/"))
            assert _receive(connection).startswith(b"HTTP/1.1 200 ")
        assert httpx.get(url).text == "0"
        assert _receive(idle[0]) == b""
        ends = [timer.when() for timer in LimitedHttpProtocol._idle.values()]
        assert len(ends) >= 9
        assert all(end > time.monotonic() + 90 for end in ends)
        idle[1].sendall(_head("GET", "/"))
        assert _receive(idle[1]).startswith(b"HTTP/1.1 200 ")


def test_bodies_that_end_after_their_responses_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal does not wait for the body. Anybody could keep all connections of the service for good by sending it afterwards."""
    monkeypatch.setattr(http_limits, "MAX_CONNECTIONS", 10)
    app = PlainTextResponse("refused")
    with (
        serve_app(app, http=LimitedHttpProtocol, ws="none", lifespan="off", force_exit=True) as url,
        ExitStack() as stack,
        httpx.Client(timeout=30) as client,
    ):
        slow = [stack.enter_context(_connect(url)) for _ in range(10)]
        for connection in slow:
            connection.sendall(_head("POST", "/", "Content-Length: 20") + b"x" * 10)
            assert _receive(connection).startswith(b"HTTP/1.1 200 ")
            connection.sendall(b"x" * 10)
        while LimitedHttpProtocol._unfinished_bodies:
            time.sleep(0.01)
        assert [client.get(url).text for _ in range(3)] == ["refused"] * 3
        assert _receive(slow[0]) == b""
        slow[-1].sendall(_head("GET", "/"))
        assert _receive(slow[-1]).startswith(b"HTTP/1.1 200 ")


def test_slow_bodies_that_come_again_close_no_connection_that_was_just_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    with _serve_slow_bodies(monkeypatch) as (url, send_slow_body), ExitStack() as stack:
        for _ in range(10):
            send_slow_body(stack.enter_context(_connect(url)))
        honest = stack.enter_context(_connect(url))
        for _ in range(5):
            send_slow_body(stack.enter_context(_connect(url)))
        honest.sendall(_head("GET", "/"))
        assert _receive(honest).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("expects", [False, True])
def test_the_time_of_the_service_itself_does_not_count(expects: bool) -> None:
    checks: list[LimitedHttpProtocol] = []
    patience = ServeSettings(body_timeout=0.25, body_progress=1000)

    class Checked(build_limited_protocol(patience)):  # type: ignore[misc]  # a class that is made at runtime
        """Checks twice while the app is busy. Afterwards a client on a busy machine has time."""

        def _check_body_progress(self) -> None:
            checks.append(self)
            if len(checks) == 2:
                Checked.body_seconds = 60.0
            super()._check_body_progress()

    async def read_late(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(2000):
            if len(checks) < 2:
                await asyncio.sleep(0.01)
        size = len(await Request(scope, receive).body())
        await PlainTextResponse(str(size))(scope, receive, send)

    body = b"x" * (8 << 20)
    with serve_app(read_late, http=Checked, ws="none", lifespan="off") as url, _connect(url) as connection:
        head = _head("POST", "/", f"Content-Length: {len(body)}", *(["Expect: 100-continue"] if expects else []))
        if expects:
            connection.sendall(head)
            assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
            connection.sendall(body)
        else:
            connection.sendall(head + body)
        response = connection.recv(1000)
        assert response.startswith(b"HTTP/1.1 200 "), response
        assert checks == [checks[0]] * 2
