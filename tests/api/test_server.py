"""The service as a process of its own: roles, signals, and one run end to end through the worker and Spark."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from federator.api.server import _listening, serve
from federator.connector import ConfigError, StateError
from federator.settings import Settings, load
from federator.testing import MemoryStore

CONFIG = """
[serve]
port = 0
[verify]
enabled = false
[sources.lake]
impl = "federator.testing:CONNECTOR"
file = "{directory}/lake.json"
"""
ODD = "a/b%$😀"


class Process:
    """A service that was started, with what it said so far."""

    def __init__(self, directory: Path, role: str, **environment: str) -> None:
        script = (
            "import sys; from pathlib import Path; from federator.settings import load; from federator.api.server import serve; "
            "serve(load(Path('federator.toml')), role=sys.argv[1])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", script, role],
            cwd=directory,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self.said += self._process.stderr

    @property
    def text(self) -> str:
        return "".join(self.said)

    def url(self) -> str:
        return self.await_line(r"federator listens on (http://\S+)")

    def await_line(self, pattern: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._process.poll() is None:
            if match := re.search(pattern, self.text):
                return match[match.re.groups]
            time.sleep(0.05)
        raise AssertionError(f"it did not say {pattern}:\n{self.text}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self._process.send_signal(number)
        return self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    (tmp_path / "federator.toml").write_text(CONFIG.format(directory=tmp_path), encoding="utf-8")
    store = MemoryStore(str(tmp_path / "lake.json"))
    store.add_table(("sales", "orders"))
    store.add_table(("sales", ODD), doc="odd")
    started: list[Process] = []

    def begin(role: str, **environment: str) -> Process:
        started.append(Process(tmp_path, role, **environment))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_api_alone_answers_and_ends_with_a_signal(start: Callable[..., Process], number: int) -> None:
    process = start("api", FEDERATOR_LOG="json")
    url = process.url()
    assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
    assert httpx.post(f"{url}/api/v1/runs", json={"kind": "crawl"}).json()["state"] == "queued"
    assert process.end(number) == 0
    assert not listens(int(url.rpartition(":")[2]))
    assert "Traceback" not in process.text


def test_answers_in_flight_end(start: Callable[..., Process]) -> None:
    process = start("api")
    port = httpx.URL(process.url()).port or 0
    head = (
        b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        b"Content-Type: application/json\r\nContent-Length: 16\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head)
        # The request is in hand, and its body is asked for.
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        ending = threading.Thread(target=process.end)
        ending.start()
        end = time.monotonic() + 60
        while listens(port) and time.monotonic() < end:
            time.sleep(0.05)
        assert not listens(port)
        connection.sendall(b'{"kind":"crawl"}')
        assert connection.recv(100).startswith(b"HTTP/1.1 202")
        ending.join()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.timeout(900)
def test_a_run_from_request_to_tree(start: Callable[..., Process], tmp_path: Path) -> None:
    process = start("all", FEDERATOR_LOG="json")
    url = process.url()
    process.await_line("spark is ready", 120)
    with httpx.Client(base_url=url) as client:
        crawled(client)
        crawled(client)
        nodes = client.get("/api/v1/tree", params={"path": "lake$sales"}).json()["nodes"]
        assert {node["name"] for node in nodes} == {"orders", ODD}
        odd = next(node["id"] for node in nodes if node["name"] == ODD)
        assert client.get(f"/api/v1/tables/{quote(odd, safe='')}").json()["doc"] == "odd"
        assert client.get("/api/v1/sources/lake").json()["freshness"]["state"] == "ok"
    assert process.end() == 0
    assert (tmp_path / "federator.db.scheduler.lock").exists()
    assert '"run ended"' in process.text


def crawled(client: httpx.Client) -> None:
    """Asks for a crawl, and waits for its end."""
    end = time.monotonic() + 240
    address = client.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).headers["location"]
    while (asked := client.get(address).json())["state"] in ("queued", "running"):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert asked["state"] == "done"
    run = client.get(f"/api/v1/runs/{asked['run_id']}").json()
    assert (run["state"], run["sources"][0]["tables"]) == ("ok", 2)


def test_a_port_that_is_taken_is_an_error_of_ours(start: Callable[..., Process], tmp_path: Path) -> None:
    settings = load(tmp_path / "federator.toml")
    with taken() as port, pytest.raises(StateError, match=f"cannot listen on 127.0.0.1:{port}"):
        serve(settings, port=port, role="api")


def test_what_it_cannot_serve_is_refused(start: Callable[..., Process], tmp_path: Path) -> None:
    settings: Settings = load(tmp_path / "federator.toml")
    with pytest.raises(ConfigError, match="no role 'some'"):
        serve(settings, role="some")
    with pytest.raises(ConfigError, match=r"required to listen on 0\.0\.0\.0"):
        serve(settings, host="0.0.0.0", role="api")


@contextmanager
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_small_answers_are_sent_at_once() -> None:
    """asyncio turns off Nagle's algorithm for sockets of the protocol TCP only, and accepted ones are of their listener's."""
    with _listening("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP
