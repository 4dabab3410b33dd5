"""A server that sends its response byte by byte: every call ends, whatever it waits for."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from federator.connector import Catalog, ConnectorSettings, call_deadline
from federator.connector.call_deadline import CallDeadline, CallExpired, call_seconds
from federator.model import NamespaceRecord, Path
from federator.registry import get_connector
from federator.store.leases import CALL_DEADLINE_SECONDS
from federator_connectors._http.client import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Drip, Lie
from tests.adversary.proxy import Proxy
from tests.adversary.thrift_proxy import ThriftProxy
from tests.fixtures.hive import Metastore
from tests.fixtures.iceberg import WAREHOUSE
from tests.servers.test_timeouts_and_retries import silent_server

pytestmark = pytest.mark.timeout(60)

# A response has some hundreds of bytes, and each is long before its read timeout.
_DRIP = Lie(".*", Drip(0.1))
_SECONDS = 0.6
Request = pytest.FixtureRequest


def _rest(request: Request) -> tuple[str, dict[str, str], str, Path]:
    server = request.getfixturevalue("rest_server")
    return "rest", server.properties, "uri", ()


def _glue(request: Request) -> tuple[str, dict[str, str], str, Path]:
    account = request.getfixturevalue("glue_account")
    return "glue", {**account.properties, "catalog_id": account.account_id}, "endpoint", (account.account_id,)


def _unity(request: Request) -> tuple[str, dict[str, str], str, Path]:
    catalog = request.getfixturevalue("unity_catalog")
    return "unity", catalog.properties, "endpoint", (catalog.name,)


def _polaris(request: Request) -> tuple[str, dict[str, str], str, Path]:
    server = request.getfixturevalue("polaris_server")
    return "polaris", server.properties, "endpoint", (request.getfixturevalue("polaris_catalog"),)


def _iceberg(request: Request) -> tuple[str, dict[str, str], str, Path]:
    return "iceberg", request.getfixturevalue("iceberg_server").properties, "endpoint", (WAREHOUSE,)


@contextmanager
def short_deadlines(seconds: float = _SECONDS) -> Iterator[None]:
    """Deadlines of a moment, while the timeouts of reads stay those of the settings."""
    original = CallDeadline.__init__

    def initialize(self: CallDeadline, server: str, _: float) -> None:
        original(self, server, seconds)

    with patch.object(CallDeadline, "__init__", initialize):
        yield


def _end_calls(proxy: Proxy, catalog: Catalog, parent: Path) -> None:
    """Let a read and a write meet the slow server, then let the same catalog read again."""
    proxy.truthful()
    expected = catalog.list_namespaces(parent)
    proxy.lie(_DRIP)
    with short_deadlines():
        with pytest.raises(CallExpired, match=r"did not complete its response in time \(call timeout=0.6 s\)"):
            catalog.list_namespaces(parent)
        # A call that reached its deadline is not repeated.
        assert proxy.met == 1
        with pytest.raises(CallExpired, match="call timeout"):
            catalog.create_namespace(NamespaceRecord(catalog.source, (*parent, "slow")))
    proxy.truthful()
    assert set(catalog.list_namespaces(parent)) >= set(expected)
    # Nothing is sent once the operation that writes has no time left, neither on an open connection nor on a new one.
    calls = proxy.calls
    started_at = call_deadline._WRITING_SINCE.set(time.monotonic() - 1000)
    try:
        for _ in range(2):
            with pytest.raises(CallExpired, match="call timeout=0 s"):
                catalog.create_namespace(NamespaceRecord(catalog.source, (*parent, "slow")))
    finally:
        call_deadline._WRITING_SINCE.reset(started_at)
    assert proxy.calls == calls


def _open(name: str, properties: dict[str, str]) -> Catalog:
    connector: Any = get_connector(name)
    settings: ConnectorSettings = connector.parse_settings(properties)
    opened: Catalog = connector.open("lake", settings)
    return opened


@pytest.mark.parametrize("case", [_rest, _unity, _polaris, _iceberg, _glue])
def test_a_call_over_http_ends_at_its_deadline(
    request: Request, case: Callable[[Request], tuple[str, dict[str, str], str, Path]]
) -> None:
    name, properties, address, parent = case(request)
    with HttpProxy(properties[address]) as proxy, _open(name, {**properties, address: proxy.url}) as catalog:
        _end_calls(proxy, catalog, parent)


def test_a_call_of_thrift_ends_at_its_deadline(metastore: Metastore) -> None:
    with ThriftProxy(metastore.properties["uri"]) as proxy, metastore.open(uri=proxy.uri) as catalog:
        _end_calls(proxy, catalog, ("hive",) if metastore.connector.capabilities.max_depth == 2 else ())


def test_the_end_of_a_connection_is_not_the_end_of_a_response() -> None:
    """A body without a length ends with its connection, and the deadline ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"namespaces": []}')
                # Until the client ends the connection.
                while peer.recv(1 << 16):
                    pass

        threading.Thread(target=answer, daemon=True).start()
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        with _open("rest", {"uri": uri}) as catalog, short_deadlines(), pytest.raises(CallExpired):
            catalog.list_namespaces(())


@pytest.mark.parametrize("name", ["hive2", "hive3", "rest"])
def test_a_connection_waits_no_longer_than_the_rest_of_its_call(name: str) -> None:
    """The endpoints accept nothing, and connecting may take longer than the call."""
    with silent_server(backlog=0) as server, socket.create_connection(server.getsockname()):
        endpoint = f"127.0.0.1:{server.getsockname()[1]}"
        properties = {"uri": ",".join([f"thrift://{endpoint}"] * 8)}
        if name == "rest":
            properties = {"uri": f"http://{endpoint}", "connect_timeout_ms": "600000"}
        with _open(name, properties) as catalog, short_deadlines(), ThreadPoolExecutor() as threads:
            write = threads.submit(catalog.create_namespace, NamespaceRecord("lake", ("slow",)))
            assert isinstance(write.exception(timeout=30), CallExpired)


def test_an_attempt_that_waits_for_the_rate_limit_has_its_time_afterwards(request: Request) -> None:
    """A client of Glue waits within its call, before each attempt."""
    name, properties, _, parent = _glue(request)
    with _open(name, {**properties, "limit.requests-per-second": "0.15"}) as catalog, short_deadlines(4):
        for _ in range(2):
            catalog.list_namespaces(parent)


def test_calls_share_the_thread_that_ends_them(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def record(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    with metastore.open() as catalog:
        monkeypatch.setattr(threading.Thread, "start", record)
        for _ in range(20):
            catalog.list_namespaces(())
    assert len(started) <= 1


# A call with a long deadline starts the thread; then a child process without that thread has a call that must end.
_FORKING = """
import os, socket, sys
from federator.connector.call_deadline import CallDeadline, CallExpired, watch_connection

def call(seconds, wait):
    ends = socket.socketpair()
    with CallDeadline("lake", seconds):
        watch_connection(ends[0])
        if wait:
            ends[0].recv(1)

call(3600, wait=False)
child = os.fork()
try:
    call(0.1, wait=True)
    sys.exit("the call did not end")
except CallExpired:
    pass
if child and os.waitpid(child, 0)[1]:
    sys.exit("the call of the child process did not end")
"""


def test_a_forked_process_ends_its_calls_and_no_process_waits_for_a_deadline() -> None:
    subprocess.run([sys.executable, "-c", _FORKING], check=True, timeout=30)


def test_a_write_ends_before_another_process_may_repeat_it() -> None:
    assert call_deadline.WRITE_SECONDS == CALL_DEADLINE_SECONDS
    assert call_seconds(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, writes=True) == CALL_DEADLINE_SECONDS
    # A timeout that somebody configured is kept.
    assert call_seconds(10, 600, writes=True) == 600
    assert call_seconds(10, 60, writes=False) == 310
