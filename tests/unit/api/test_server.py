"""The service as a process of its own: roles, signals, and one run end to end through the worker and Spark."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from federator.api.server import _bound_socket, run_service
from federator.connector import ConfigError, StateError
from federator.settings import Settings, load_settings
from federator.store import audit_log, journal, open_index
from federator.store.journal import NO_MIRROR
from federator.testing import MemoryStore
from tests.fixtures.waiting import wait_until
from tests.unit.api.service_process import ODD, Process

#: a call that lasts far longer than ``Process.end`` waits
_HANG = "hang:sales=600"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_api_alone_answers_and_ends_with_a_signal(start: Callable[..., Process], number: int) -> None:
    process = start("api", FEDERATOR_LOG="json")
    url = process.url()
    assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
    assert httpx.post(f"{url}/api/v1/runs", json={"kind": "crawl"}).json()["state"] == "queued"
    assert process.end(number) == 0
    assert not listens(int(url.rpartition(":")[2]))
    assert "Traceback" not in process.text


@pytest.mark.parametrize(("role", "line"), [("api", "listens"), ("worker", "spark is ready"), ("all", "spark is ready")])
def test_a_signal_ends_each_role_whichever_thread_it_reaches(start: Callable[..., Process], role: str, line: str) -> None:
    process = start(role)
    process.await_line(line)
    process.signal_other_thread(signal.SIGTERM)
    assert process.wait() == 0


def test_a_second_signal_ends_open_requests_without_a_word(start: Callable[..., Process]) -> None:
    process = start("api")
    port = httpx.URL(process.url()).port or 0
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(
            b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 16\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not listens(port), "the port is closed")
        assert process.end(signal.SIGINT) == 0
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
        wait_until(lambda: not listens(port), "the port is closed")
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
    index = open_index("sqlite:///federator.db", base=tmp_path)
    kept = (json.loads(row.event) for row in audit_log.iter_events(index))
    (recorded,) = (event["detail"]["changed"] for event in kept if event["kind"] == "config_changed")
    index.close()
    # The file sets the port and not the host.
    assert {key for key in recorded if key.startswith("serve.")} == {"serve.port"}
    assert (tmp_path / "federator.db.scheduler.lock").exists()
    assert '"run ended"' in process.text


def test_a_write_in_flight_gets_four_seconds_and_its_intent_stays_open(start: Callable[..., Process], tmp_path: Path) -> None:
    MemoryStore(str(tmp_path / "lake.json")).faults(_HANG)
    process = start("api")
    url = process.url()

    responses: list[httpx.Response] = []

    def drop(path: str, body: object) -> None:
        responses.append(httpx.post(f"{url}{path}", json=body, timeout=60))

    requests = [
        ("/v1/namespace/lake%24sales/drop", {"behavior": "Cascade"}),
        ("/DropNamespace", {"name": "sales", "parent": ["lake"]}),
    ]
    callers = [threading.Thread(target=drop, args=request, daemon=True) for request in requests]
    for caller in callers:
        caller.start()
    index = open_index("sqlite:///federator.db", base=tmp_path)

    def open_intents() -> list[str]:
        with index.read() as connection:
            return [intent.action for intent in journal.list_open_intents(connection, NO_MIRROR)]

    wait_until(lambda: open_intents() == ["drop_namespace"] * 2)
    began = time.monotonic()
    assert process.end() == 0
    assert time.monotonic() - began > 3.5
    assert "calls in flight did not end in time" in process.text
    assert open_intents() == ["drop_namespace"] * 2
    index.close()
    for caller in callers:
        caller.join(60)
    detail, hint = (
        "the service ends, and the call did not end in time",
        "repeat the call; a write may have been made, so check its",
    )
    documents = {response.headers["content-type"]: response.json() for response in responses}
    assert [response.status_code for response in responses] == [503, 503]
    lance, problem = documents["application/json"], documents["application/problem+json"]
    assert (lance["error"], lance["code"], lance["detail"][: len(hint)]) == (detail, 17, hint)
    assert (problem["detail"], problem["code"], problem["hint"][: len(hint)]) == (detail, 17, hint)


@pytest.mark.timeout(300)
def test_a_crawl_that_hangs_delays_the_end_by_no_more(start: Callable[..., Process], tmp_path: Path) -> None:
    MemoryStore(str(tmp_path / "lake.json")).faults(_HANG)
    process = start("all")
    url = process.url()
    process.await_line("spark is ready", 120)
    address = httpx.post(f"{url}/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).headers["location"]
    wait_until(lambda: httpx.get(f"{url}{address}").json()["state"] == "running")
    time.sleep(2)
    assert process.end_group(signal.SIGTERM) == 0
    # Spark's JVM would report that it got the signal, and calls to it would fail.
    assert "Traceback" not in process.text
    assert "py4j" not in process.text


def crawled(client: httpx.Client) -> None:
    """Asks for a crawl, and waits for its end."""
    end = time.monotonic() + 240
    address = client.post("/api/v1/runs", json={"kind": "crawl", "sources": ["lake"]}).headers["location"]
    while (request := client.get(address).json())["state"] in ("queued", "running"):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert request["state"] == "done"
    run = client.get(f"/api/v1/runs/{request['run_id']}").json()
    assert (run["state"], run["sources"][0]["tables"]) == ("ok", 2)


def test_a_port_in_use_is_a_state_error(start: Callable[..., Process], tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "federator.toml")
    with taken() as port, pytest.raises(StateError, match=f"cannot listen on 127.0.0.1:{port}"):
        run_service(settings, port=port, role="api")


def test_a_port_in_use_is_found_before_the_worker_starts(start: Callable[..., Process], tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "federator.toml")
    with taken() as port, pytest.raises(StateError, match=f"cannot listen on 127.0.0.1:{port}"):
        run_service(settings, port=port, role="all")
    assert not (tmp_path / "federator.db.scheduler.lock").exists()


def test_an_invalid_configuration_of_serve_is_refused(start: Callable[..., Process], tmp_path: Path) -> None:
    settings: Settings = load_settings(tmp_path / "federator.toml")
    with pytest.raises(ConfigError, match="'some' is not a role"):
        run_service(settings, role="some")
    for role in ("api", "all"):
        with pytest.raises(ConfigError, match=r"required to listen on 0\.0\.0\.0"):
            run_service(settings, host="0.0.0.0", role=role)
    # Not even the worker of ``all`` has started.
    assert not (tmp_path / "federator.db.scheduler.lock").exists()


@contextmanager
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_small_answers_are_sent_at_once() -> None:
    """asyncio turns off Nagle's algorithm for sockets of the protocol TCP only, and accepted ones are of their listener's."""
    with _bound_socket("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP
