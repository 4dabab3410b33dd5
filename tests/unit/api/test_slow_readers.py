"""Clients that do not read their responses, on the real protocol."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from federator.api import http_limits
from federator.api.http_limits import build_limited_protocol
from federator.settings.sections import ServeSettings
from tests.fixtures.serving import loopback_listener, serve_app

SIZE = 1 << 20
#: more than the system keeps for a connection
LARGE = 16 << 20
#: the buffers of the sockets hold a small part of a response
BUFFER = 4096
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def _respond(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        scope["principal"] = scope["query_string"]
        length = {"/short": b"2", "/large": b"%d" % LARGE}.get(scope["path"], b"%d" % SIZE)
        start: Message = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
        await send(start)
        await send({"type": "http.response.body", "body": b"x" * int(length)})


@contextmanager
def _served(seconds: float) -> Iterator[tuple[str, int]]:
    """The address of a service with a ``response_timeout``."""
    listener = loopback_listener()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    protocol = build_limited_protocol(ServeSettings(response_timeout=seconds))
    with serve_app(_respond, listener, http=protocol, ws="none", lifespan="off", force_exit=True) as url:
        parsed = httpx.URL(url)
        yield parsed.host, parsed.port or 0


def _connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    connection.settimeout(60)
    connection.connect(address)
    return connection


def _receive(connection: socket.socket, pause: float = 0.0) -> int:
    """Read until the end of a connection or of its response. Return the number of bytes."""
    size = 0
    while size < SIZE:
        time.sleep(pause)
        try:
            part = connection.recv(64 << 10)
        except ConnectionResetError:
            return size
        if not part:
            return size
        size += len(part)
    return size


def test_a_response_that_is_not_read_ends() -> None:
    with _served(0.5) as address, _connect(address) as connection:
        connection.sendall(REQUEST)
        time.sleep(2.0)
        assert _receive(connection) < SIZE


def test_a_response_that_is_read_slowly_arrives() -> None:
    """It takes longer than the timeout, without a pause of that length."""
    with _served(0.5) as address, _connect(address) as connection:
        connection.sendall(REQUEST)
        began = time.monotonic()
        assert _receive(connection, pause=0.004) >= SIZE
        assert time.monotonic() - began > 0.5


def test_a_steady_reader_is_served_while_the_system_holds_what_he_has_not_read() -> None:
    """The service sees no progress of its own: the buffers of the system are larger than what the client reads in a period."""
    protocol = build_limited_protocol(ServeSettings(response_timeout=0.5, body_progress=1000))
    with serve_app(_respond, http=protocol, ws="none", lifespan="off", force_exit=True) as url:
        parsed = httpx.URL(url)
        with _connect((parsed.host, parsed.port or 0)) as connection:
            connection.sendall(REQUEST.replace(b"GET /", b"GET /large"))
            size = 0
            for _ in range(20):
                time.sleep(0.1)
                size += len(connection.recv(4096))
            while part := connection.recv(1 << 20):
                size += len(part)
                if size >= LARGE:
                    break
    assert size >= LARGE


def test_connections_that_are_not_read_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "MAX_CONNECTIONS", 10)
    with _served(60.0) as address, ExitStack() as stack:
        unread = [stack.enter_context(_connect(address)) for _ in range(10)]
        for connection in unread:
            connection.sendall(REQUEST)
            assert connection.recv(1)
        for _ in range(3):
            assert httpx.get(f"http://{address[0]}:{address[1]}/short", timeout=30).text == "xx"
        # The longest unread ones were closed, and no others.
        assert [_receive(connection) + 1 < SIZE for connection in unread[:2]] == [True, False]


def test_unread_responses_take_a_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "MAX_UNREAD_BYTES", 4 * SIZE)
    with _served(60.0) as address, ExitStack() as stack:

        def ask(principal: bytes) -> socket.socket:
            connection = stack.enter_context(_connect(address))
            connection.sendall(REQUEST.replace(b"GET /", b"GET /?" + principal))
            assert connection.recv(1)
            return connection

        other, greedy = ask(b"other"), [ask(b"greedy") for _ in range(8)]
        # The last one first: then the service has sent all of them.
        are_complete = [_receive(connection) + 1 >= SIZE for connection in reversed(greedy)]
        assert are_complete == [True] * 3 + [False] * 5
        assert _receive(other) + 1 >= SIZE
