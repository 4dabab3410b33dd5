"""S3 servers that accept requests and answer none, or answer for ever: how many requests a write takes, and when a read ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from federator.connector import ServiceUnavailable, storage
from federator_connectors._dir.storage import Directory
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Drip, Lie


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


_DOCTOR = """
import sys
from federator.cli import main
from federator.connector import storage

storage._LISTING_SECONDS = 0.5
sys.argv = ["federator", "doctor"]
main()
"""


def test_a_listing_that_drips_ends_and_so_does_the_process(s3_storage_options: dict[str, str], tmp_path: Path) -> None:
    """Each byte comes long before the timeout of the store's client, which waits for the last one at the end of the process."""
    with HttpProxy(s3_storage_options["aws_endpoint"]) as proxy:
        proxy.lie(Lie(".*", Drip(0.1)))
        environment = {
            **os.environ,
            **{key.upper(): text for key, text in s3_storage_options.items()},
            "AWS_ENDPOINT": proxy.url,
        }
        options = "\n".join(f'{key} = "${{{key.upper()}}}"' for key in s3_storage_options)
        config = f'[sources.lake]\nimpl = "dir"\nroot = "s3://lance-data/tables"\n[sources.lake.storage]\n{options}\n'
        (tmp_path / "federator.toml").write_text(config)
        command = [sys.executable, "-c", _DOCTOR]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=45)
    assert "did not complete its response in time (call timeout=0.5 s)" in result.stdout + result.stderr
    assert result.returncode == 1, result
