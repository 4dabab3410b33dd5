"""Writes to an S3 server that accepts requests and answers none: how many requests they take, and which."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from federator.connector import ServiceUnavailable, storage
from federator_connectors._dir.storage import Directory


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """A server that answers nothing: its address, and the method and target of each request."""
    received: list[str] = []
    open_connections: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection = server.accept()[0]
                open_connections.append(connection)
                head = connection.recv(10_000).partition(b"\r\n")[0].decode()
                received.append(head.removesuffix(" HTTP/1.1"))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", received
        server.shutdown(socket.SHUT_RDWR)
        thread.join(30)
        for connection in open_connections:
            connection.close()


@pytest.mark.parametrize(
    ("write", "request_line"),
    [
        (Directory.create_marker, "PUT /lake/tables/orders.lance/.marker"),
        (Directory.remove_marker, "HEAD /lake/tables/orders.lance/.marker"),
    ],
    ids=["create", "remove"],
)
def test_a_write_sends_one_request_and_does_not_repeat_it(
    requests: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Directory, str, str], None],
    request_line: str,
) -> None:
    address, received = requests
    monkeypatch.setattr(storage, "_WRITE_REQUEST_SECONDS", 1)
    keys = {"access_key_id": "key", "secret_access_key": "secret"}
    directory = Directory("s3://lake/tables", {"endpoint": address, "region": "us-east-1", "allow_http": "true", **keys})
    with pytest.raises(ServiceUnavailable):
        write(directory, "orders.lance", ".marker")
    assert received == [request_line]
