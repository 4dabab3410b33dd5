"""Timeouts of the connectors that speak HTTP, and the retries that texts name, against sockets that do not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from federator.connector import Connector, ServiceUnavailable
from federator.model import NamespaceRecord
from federator_connectors import iceberg, polaris, rest, unity

pytestmark = pytest.mark.timeout(60)

# In each connector's own unit, and as it is in the client's message.
UNITY = [
    pytest.param(unity.CONNECTOR, {"connect_timeout": "1", "read_timeout": "1"}, r"timeout=1\b", id="unity"),
    pytest.param(unity.CONNECTOR, {"connect_timeout_ms": "250", "read_timeout_ms": "250"}, r"timeout=0\.25", id="unity-ms"),
]
_MILLISECONDS = {"connect_timeout": "250", "read_timeout": "250"}
POLARIS = pytest.param(polaris.CONNECTOR, _MILLISECONDS, r"timeout=0\.25", id="polaris")
ICEBERG = pytest.param(iceberg.CONNECTOR, {**_MILLISECONDS, "warehouses": "main"}, r"timeout=0\.25", id="iceberg")
_REST_TIMEOUTS = {"connect_timeout_ms": "250", "read_timeout_ms": "250"}
REST = [
    pytest.param(rest.CONNECTOR, {**_REST_TIMEOUTS, "protocol": protocol}, r"timeout=0\.25", id=f"rest-{protocol}")
    for protocol in ("lance", "general")
]


@contextmanager
def silent_server(*, backlog: int) -> Iterator[socket.socket]:
    """A socket that accepts connections in the kernel only, as many as ``backlog`` and one more, and answers none."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(backlog)
        server.setblocking(False)
        yield server


def _count_connections(server: socket.socket) -> int:
    count = 0
    try:
        while True:
            server.accept()[0].close()
            count += 1
    except BlockingIOError:
        return count


def _properties(connector: Connector[Any], server: socket.socket, timeouts: dict[str, str], retries: int) -> dict[str, str]:
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    # The number of retries is no setting of ``rest``.
    address = {"uri": url} if connector is rest.CONNECTOR else {"endpoint": url, "max_retries": str(retries)}
    return {**address, **timeouts}


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize(("connector", "timeouts", "message"), [*UNITY, POLARIS, ICEBERG])
def test_a_read_waits_for_its_timeout_and_is_repeated_as_often_as_configured(
    connector: Connector[Any], timeouts: dict[str, str], message: str, retries: int
) -> None:
    with silent_server(backlog=16) as server:
        settings = connector.parse_settings(_properties(connector, server, timeouts, retries))
        with connector.open("lake", settings) as catalog, pytest.raises(ServiceUnavailable, match=f"read {message}"):
            catalog.list_namespaces(("main",))
        assert _count_connections(server) == retries + 1


@pytest.mark.parametrize(("connector", "timeouts", "message"), REST)
def test_a_read_of_a_rest_server_waits_for_its_timeout_at_each_attempt(
    connector: Connector[Any], timeouts: dict[str, str], message: str
) -> None:
    with silent_server(backlog=16) as server:
        settings = connector.parse_settings(_properties(connector, server, timeouts, 0))
        with connector.open("lake", settings) as catalog, pytest.raises(ServiceUnavailable, match=f"read {message}"):
            catalog.list_namespaces(("main",))
        assert _count_connections(server) == settings.limits.attempts


# Not Iceberg: it reads the configuration of the warehouse first.
@pytest.mark.parametrize(("connector", "timeouts", "message"), [*UNITY, POLARIS, *REST])
def test_a_write_is_sent_once(connector: Connector[Any], timeouts: dict[str, str], message: str) -> None:
    with silent_server(backlog=16) as server:
        settings = connector.parse_settings(_properties(connector, server, timeouts, 2))
        with connector.open("lake", settings) as catalog, pytest.raises(ServiceUnavailable, match=f"read {message}"):
            catalog.create_namespace(NamespaceRecord("lake", ("main", "new")))
        assert _count_connections(server) == 1


@pytest.mark.parametrize(("connector", "timeouts", "message"), [*UNITY, POLARIS, ICEBERG, *REST])
def test_a_connection_waits_for_its_timeout(connector: Connector[Any], timeouts: dict[str, str], message: str) -> None:
    with silent_server(backlog=0) as server, socket.create_connection(server.getsockname()):
        settings = connector.parse_settings(_properties(connector, server, timeouts, 0))
        with connector.open("lake", settings) as catalog, pytest.raises(ServiceUnavailable, match=f"connect {message}"):
            catalog.list_namespaces(("main",))
