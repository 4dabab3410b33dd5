"""Connections to names with several addresses, of which some do not answer, and to names whose lookup does not end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from federator.connector import Catalog, ServiceUnavailable
from federator.connector.call_deadline import CallDeadline, CallExpired
from federator.registry import get_connector
from federator_connectors._hive.transport import open_plain
from tests.servers.test_call_deadlines import short_deadlines

pytestmark = pytest.mark.timeout(60)
NAME = "many.invalid"
#: longer than a test may last
TIMEOUT = 600.0


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"namespaces": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server at the last of the addresses of ``NAME``. The others accept nothing: their queues are full."""
    looked_up = socket.getaddrinfo
    with ExitStack() as stack:
        server = ThreadingHTTPServer(("127.0.0.5", 0), _Empty)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        port = server.server_address[1]
        dead = [f"127.0.0.{last}" for last in range(2, 5)]
        for address in dead:
            listener = stack.enter_context(socket.create_server((address, port), backlog=0))
            stack.enter_context(socket.create_connection(listener.getsockname()))

        def look_up(host: str, *arguments: Any, **options: Any) -> Any:
            if host != NAME or options.get("flags"):
                return looked_up(host, *arguments, **options)
            return [found for address in (*dead, "127.0.0.5") for found in looked_up(address, *arguments, **options)]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        yield port


def _open(uri: str) -> Catalog:
    connector: Any = get_connector("rest")
    opened: Catalog = connector.open(
        "lake", connector.parse_settings({"uri": uri, "connect_timeout_ms": str(int(TIMEOUT * 1000))})
    )
    return opened


def _list_over_http(port: int) -> None:
    with _open(f"http://{NAME}:{port}") as catalog:
        assert catalog.list_namespaces(()) == []


def _connect_for_thrift(port: int) -> None:
    with CallDeadline("lake", 0):
        open_plain((NAME, port), TIMEOUT)[0].close()


@pytest.mark.parametrize("call", [_list_over_http, _connect_for_thrift])
def test_a_name_with_dead_addresses_leaves_time_for_the_living_one(port: int, call: Callable[[int], None]) -> None:
    """Each address once had the whole time of the call, so that the first one used it up."""
    with short_deadlines(2.0):
        call(port)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lookups of ``NAME`` do not end before this."""
    looked_up, event = socket.getaddrinfo, threading.Event()

    def look_up(host: str, *arguments: Any, **options: Any) -> Any:
        if host == NAME and not options.get("flags"):
            event.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "no name server answers")
        return looked_up(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield event
    event.set()


def test_a_lookup_without_an_end_ends_with_its_call(ends: threading.Event) -> None:
    def calls() -> int:
        return sum(thread.name == "lookup" for thread in threading.enumerate())

    for _ in range(3):
        with pytest.raises(CallExpired), CallDeadline("lake", 0.2):
            open_plain((NAME, 1), TIMEOUT)
    # All of them wait for one lookup.
    assert calls() == 1
    with short_deadlines(0.2), pytest.raises(CallExpired), _open(f"http://{NAME}:1") as catalog:
        catalog.list_namespaces(())
    ends.set()


@pytest.mark.parametrize("host", ["nobody.invalid", "a..b"])
def test_an_unknown_name_is_an_unreachable_server(host: str) -> None:
    with _open(f"http://{host}:1") as catalog, pytest.raises(ServiceUnavailable, match="cannot be reached"):
        catalog.list_namespaces(())
