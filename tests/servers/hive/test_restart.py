"""Connections that break between and during calls: a relay before a real metastore is cut or redirected."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path as FilePath

import pytest

from federator.connector import ServiceUnavailable
from federator.connector.operation import attribute_calls
from federator.demo.servers import hive
from federator.demo.servers.process import get_server
from federator.model import NamespaceRecord, TableRecord
from federator_connectors import hive3
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import Metastore, started

pytestmark = pytest.mark.timeout(120)


class Relay:
    """Passes bytes on to ``target``. ``drop_answer_to``: hangs up once a request with this text has gone through whole."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.drop_answer_to = b""
        self.connections = 0
        self.dropped = 0
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                host, _, port = self.target.removeprefix("thrift://").partition(":")
                try:
                    far = socket.create_connection((host, int(port)))
                except OSError:
                    near.close()
                    continue
                self.connections += 1
                self._open += [near, far]
                threading.Thread(target=self._pass, args=(near, far), kwargs={"asks": True}, daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near), kwargs={"asks": False}, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, *, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                # An answer repeats the name of what was asked.
                cut = asks and self.drop_answer_to and self.drop_answer_to in data
                if cut:
                    self.dropped += 1
                    # Whoever asked hears no more, but the request goes through.
                    source.shutdown(socket.SHUT_RDWR)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Hangs up on everybody."""
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()


@pytest.fixture
def relay(hive3_uri: str) -> Iterator[Relay]:
    made = Relay(hive3_uri)
    yield made
    made.close()


def _opened(relay: Relay) -> HiveCatalog:
    opened = hive3.CONNECTOR.open("lake", hive3.CONNECTOR.parse_settings({"uri": relay.uri, "client.timeout": "20"}))
    assert isinstance(opened, HiveCatalog)
    return opened


def test_a_server_restarted_between_two_calls(tmp_path: FilePath) -> None:
    server = started(lambda run_dir: hive.start(hive.HIVE3, run_dir), tmp_path / "metastore")
    relay = Relay(server.uri)
    database = ("hive", "kept")
    with ExitStack() as cleanup:
        # The later server of the same directory is found there, too.
        cleanup.callback(lambda: get_server(tmp_path / "metastore").stop())
        cleanup.callback(relay.close)
        catalog = cleanup.enter_context(_opened(relay))
        catalog.create_namespace(NamespaceRecord("lake", database, location=f"file:{tmp_path}/kept"))
        assert relay.connections == 1
        server.stop()
        relay.cut()
        with pytest.raises(ServiceUnavailable):
            catalog.describe_namespace(database)
        server = started(lambda run_dir: hive.start(hive.HIVE3, run_dir), tmp_path / "metastore")
        relay.target = server.uri
        before = relay.connections
        # A write right after a restart finds the old connection dead and opens another before it sends anything.
        declared = catalog.declare_table(TableRecord("lake", (*database, "t"), f"file:{tmp_path}/t"))
        assert catalog.describe_table((*database, "t")).digest == declared.digest
        assert relay.connections == before + 1


def test_a_read_whose_connection_breaks_is_asked_once_more(relay: Relay) -> None:
    with _opened(relay) as catalog:
        catalog.list_namespaces(())
        relay.drop_answer_to = b"get_databases"
        with pytest.raises(ServiceUnavailable):
            catalog.list_namespaces(("hive",))
        assert (relay.dropped, relay.connections) == (2, 2)
        relay.drop_answer_to = b""
        assert "default" in catalog.list_namespaces(("hive",))


def test_a_write_whose_answer_is_lost_is_not_repeated(relay: Relay, hive3_uri: str, tmp_path: FilePath) -> None:
    metastore = Metastore(hive3_uri, 2, ("hive",), tmp_path)
    path = (*metastore.database(), "t")
    wanted = TableRecord("lake", path, metastore.location("t"))
    with _opened(relay) as catalog, metastore.open() as direct:
        catalog.list_namespaces(())
        relay.drop_answer_to = b"create_table"
        with attribute_calls("lost"), pytest.raises(ServiceUnavailable):
            catalog.declare_table(wanted)
        assert relay.dropped == 1
        # The view was created all the same, perhaps after the connector had looked for it to remove it.
        end = time.monotonic() + 10
        while not (left := direct.observe(path)).unfinished and time.monotonic() < end:
            time.sleep(0.05)
        assert left.is_absent or left.unfinished == "lost"
        direct.remove_unfinished(path, "lost")
        assert direct.observe(path).is_absent

        declared = direct.declare_table(wanted)
        relay.drop_answer_to = b"drop_table"
        with pytest.raises(ServiceUnavailable):
            catalog.deregister_table(declared)
        # It was carried out all the same, a moment later, and sent once.
        end = time.monotonic() + 60
        while not direct.observe(path).is_absent and time.monotonic() < end:
            time.sleep(0.05)
        assert direct.observe(path).is_absent
        assert relay.dropped == 2
