"""Metastores that end, hang, or are another kind of server: an error or failed evidence, never an empty catalog."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from federator.connector import CallLimits, ServiceUnavailable, Shard
from federator.connector.call_policy import CircuitOpen
from federator.connector.operation import permission
from federator.demo.servers.process import Server
from federator.model import ROOT, Coverage, NamespaceRecord, TableRecord
from federator_connectors import hive2, hive3
from federator_connectors._hive import client as connections
from federator_connectors._hive import crawl as crawling
from federator_connectors._hive.catalog import HiveCatalog
from federator_connectors._hive.errors import namespace_subject
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(120)


def _open(uri: str, **properties: str) -> HiveCatalog:
    settings = hive3.CONNECTOR.parse_settings({"uri": uri, **properties})
    opened = hive3.CONNECTOR.open("lake", settings)
    assert isinstance(opened, HiveCatalog)
    return opened


@contextmanager
def _listener(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    answer(peer)

        threading.Thread(target=accept, daemon=True).start()
        yield f"thrift://127.0.0.1:{server.getsockname()[1]}"


def _fails_clearly(uri: str, match: str, caplog: pytest.LogCaptureFixture, *, timeout: str = "30") -> None:
    with caplog.at_level(logging.INFO), _open(uri, **{"client.timeout": timeout}) as catalog:
        with pytest.raises(ServiceUnavailable, match=match) as caught:
            catalog.plan_shards()
        rows = list(catalog.read_shard(Shard((("hive",), ("hive", "a"), ("hive", "b")))))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert [(type(row), row.presence.code) for row in rows if isinstance(row, Coverage)] == [(Coverage, 17)] * 3
    assert not caplog.records, "the thrift library logs on its own"


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    _fails_clearly("thrift://127.0.0.1:9", "cannot be reached", caplog)


def test_a_host_that_does_not_exist(caplog: pytest.LogCaptureFixture) -> None:
    _fails_clearly("thrift://no-such-host.invalid:9083", "cannot be reached", caplog)


def test_an_http_server_is_no_metastore(caplog: pytest.LogCaptureFixture) -> None:
    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        _fails_clearly(f"thrift://127.0.0.1:{server.server_port}", "not as a Hive metastore", caplog)
        server.shutdown()


def test_a_server_that_hangs_up(caplog: pytest.LogCaptureFixture) -> None:
    with _listener(lambda peer: None) as uri:
        _fails_clearly(uri, "closed the connection", caplog)


def test_a_server_that_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with _listener(lambda peer: time.sleep(30)) as uri:
        _fails_clearly(uri, "did not respond in time", caplog, timeout="1")


def test_the_next_endpoint_is_tried(metastore: Metastore) -> None:
    uri = f"thrift://127.0.0.1:9, {metastore.uri}"
    with metastore.open(uri=uri) as catalog:
        assert "default" in catalog.list_namespaces(metastore.above)


def test_a_broken_connection_is_replaced_for_a_read_and_a_write_is_not_repeated(metastore: Metastore) -> None:
    path = metastore.database()
    with metastore.open() as catalog:
        idle = catalog._store._client._idle

        def break_connection() -> None:
            connection = idle[-1]
            # The server's end stays open, so that only using it shows that it is broken.
            connection.call = _broken  # type: ignore[method-assign]

        catalog.list_tables(path)
        break_connection()
        assert catalog.list_tables(path) == []
        break_connection()
        with pytest.raises(ServiceUnavailable):
            catalog._store.drop_database(path)
        assert catalog.describe_namespace(path).path == path


def _wait_for_the_end(uri: str) -> None:
    host, _, port = uri.removeprefix("thrift://").partition(":")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError(f"{uri} still answers")


def _broken(*_: object) -> object:
    raise EOFError


def test_an_idle_connection_that_the_server_closed_does_not_fail_a_write(metastore: Metastore) -> None:
    path = metastore.database()
    with metastore.open() as catalog:
        catalog.list_tables(path)
        connection = catalog._store._client._idle[-1]
        connection._transport._TBufferedTransport__trans.handle.shutdown(socket.SHUT_RDWR)
        catalog._store.drop_database(path)
        assert path[-1] not in catalog.list_namespaces(metastore.above)


def test_no_more_connections_than_the_pool_has(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    open_now, most = [0], [0]
    lock = threading.Lock()
    real_init, real_close = connections.Connection.__init__, connections.Connection.close

    def counted(self: connections.Connection, *arguments: object) -> None:
        with lock:
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])
        real_init(self, *arguments)  # type: ignore[arg-type]

    def closed(self: connections.Connection) -> None:
        with lock:
            open_now[0] -= 1
        real_close(self)

    monkeypatch.setattr(connections.Connection, "__init__", counted)
    monkeypatch.setattr(connections.Connection, "close", closed)
    with metastore.open(**{"client.pool-size": "2"}) as catalog:
        threads = [threading.Thread(target=lambda: [catalog.list_namespaces(ROOT) for _ in range(5)]) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most[0] == 2
    assert open_now[0] == 0


def test_calls_that_wait_for_a_connection_are_not_made_once_the_server_is_known_to_hang() -> None:
    limits = CallLimits(breaker_failures=2, breaker_seconds=0.0, breaker_pause=600.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(12) as threads:
        endpoint = ("127.0.0.1", silent.getsockname()[1])
        client = connections.Client("lake", [endpoint], size=1, timeout=0.2, limits=limits)
        subject = namespace_subject(ROOT)
        calls = [threads.submit(client.call, "get_catalogs", about=subject) for _ in range(4)]
        calls += [threads.submit(call) for _ in range(4) for call in (client.has_catalogs, client.anchor_identity)]
        errors = [call.exception() for call in calls]
    assert Counter(map(type, errors)) == {ServiceUnavailable: 2, CircuitOpen: 10}


def test_a_write_that_loses_its_permission_while_it_waits_for_a_connection_is_not_made(
    metastore: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = metastore.database()
    waits, may_go, ended = threading.Event(), threading.Event(), threading.Event()

    @contextmanager
    def busy() -> Iterator[None]:
        waits.set()
        assert may_go.wait(60)
        yield

    def require() -> None:
        if ended.is_set():
            raise ServiceUnavailable("the lease has ended")

    def drop() -> None:
        with permission(require):
            catalog._store.drop_database(path)

    with metastore.open() as catalog, ThreadPoolExecutor(1) as threads:
        monkeypatch.setattr(catalog._store._client, "_slots", busy())
        dropping = threads.submit(drop)
        assert waits.wait(60)
        ended.set()
        may_go.set()
        with pytest.raises(ServiceUnavailable, match="the lease has ended"):
            dropping.result(60)
    with metastore.open() as catalog:
        assert catalog.describe_namespace(path).path == path


@pytest.mark.parametrize("version", ["hive2", "hive3"])
def test_a_metastore_killed_in_the_middle_of_a_crawl(
    version: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(f"{version}_throwaway")
    directory = tmp_path_factory.mktemp("tables")
    connector, above = (hive2.CONNECTOR, ()) if version == "hive2" else (hive3.CONNECTOR, ("hive",))
    monkeypatch.setattr(crawling, "BATCH", 2)
    with connector.open("lake", connector.parse_settings({"uri": server.uri, "client.timeout": "5"})) as catalog:
        databases = [(*above, name) for name in ("one", "three", "two")]
        for database in databases:
            catalog.create_namespace(NamespaceRecord("lake", database, location=f"file:{directory}/{database[-1]}"))
            for number in range(6):
                catalog.declare_table(TableRecord("lake", (*database, f"t{number}"), f"file:{directory}/t{number}"))
        rows = []
        for row in catalog.read_shard(Shard((databases[0], databases[1], databases[2], above))):
            rows.append(row)
            if len(rows) == 9:
                # Only the starting process: its Java must not outlive it.
                os.kill(server.pid, signal.SIGKILL)
                _wait_for_the_end(server.uri)
    coverage = {row.namespace: row for row in rows if isinstance(row, Coverage)}
    assert coverage[databases[0]].complete
    assert [coverage[path].presence.code for path in (*databases[1:], above)] == [17, 17, 17]
    assert coverage[databases[1]].records == 2
    assert all(row.found for row in coverage.values())
