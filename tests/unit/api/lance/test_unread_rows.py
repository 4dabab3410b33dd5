"""Rows that a client has requested and does not read."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path as FilePath

import httpx
import lance
import pyarrow as pa

from tests.unit.api.lance.conftest import Service, served

LARGEST = 32 << 20
#: a response of 28 MB, more than the buffers of a connection hold
QUERY = {"k": 0, "vector": {}, "columns": {"column_aliases": {"x": f"repeat(name, {28 << 20})"}}}
PATH = "/v1/table/lake%24t/query"


def _connect(service: Service) -> socket.socket:
    """Send a query from a socket with a small window, which reads nothing."""
    url, body = httpx.URL(service.url), json.dumps(QUERY).encode()
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((url.host, url.port or 0))
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def _await_open_files(expected: int) -> None:
    """Wait until the service, which is this process, holds a number of its unlinked files open."""
    end = time.monotonic() + 60
    while (count := _open_files()) != expected:
        assert time.monotonic() < end, f"{count} files are open, not {expected}"
        time.sleep(0.05)


def _open_files() -> int:
    directory = FilePath("/proc/self/fd")
    targets = [os.readlink(entry) for entry in directory.iterdir() if os.path.lexists(entry)]  # noqa: PTH115 - a path that is gone
    return sum("federator-data-" in target and target.endswith("(deleted)") for target in targets)


def test_unread_rows_of_a_caller_have_a_size(tmp_path: FilePath) -> None:
    with served(tmp_path, {}, serve={"data": {"max_bytes": LARGEST}}) as service, ExitStack() as stack:
        lance.write_dataset(pa.table({"name": ["a"]}), str(service.root / "t.lance"))
        service.crawl("lake")
        assert _open_files() == 0
        unread = [stack.enter_context(_connect(service)) for _ in range(4)]
        _await_open_files(4)
        refused = service.post(PATH, QUERY)
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (429, 21, "10")
        assert f"exceed {4 * LARGEST} bytes" in refused.json()["error"]
        # A file is closed as soon as its client leaves.
        unread[0].close()
        _await_open_files(3)
        assert len(service.post(PATH, QUERY).content) > 28 << 20
        for connection in unread:
            connection.close()
        _await_open_files(0)
