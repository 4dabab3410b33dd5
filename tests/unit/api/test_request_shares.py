"""The share of a caller in the threads and connections of a process: slow requests of some callers delay no other."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from federator.api import large_plans, plan_access, shares
from federator.api.app import create_app
from federator.api.routes import plans as plan_routes
from federator.api.shares import MAX_RUNNING, MAX_WAITING
from federator.model.scopes import EVERYTHING
from federator.planning.plan import Plan
from federator.runtime.base64url import encode_base64url
from federator.settings import Settings
from federator.store import Index, plans, runs, tokens
from federator.testing import MemoryStore
from federator.views import datasets, diff, tree
from federator.views import plans as plans_view
from federator.views import runs as runs_view
from federator.views.search import engine
from tests.fixtures.serving import serve_app

#: what each route calls with the index, and the request
ROUTES: dict[str, tuple[Any, str, str]] = {
    "tree": (tree, "read_children", "/api/v1/tree?path=lake"),
    "search": (engine, "search_tables", "/api/v1/search?q=orders"),
    "datasets": (datasets, "list_datasets", "/api/v1/datasets"),
    "diff": (diff, "list_differences", "/api/v1/diff?from=1970-01-01T00:00:00Z"),
    "events": (runs_view, "get_run_progress", "/api/v1/runs/{run}/events"),
}


@dataclass
class Slow:
    """A function that waits until ``release``, and how often it was called."""

    started: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    release: threading.Event = field(default_factory=threading.Event)
    calls: int = 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            self.started.release()
            assert self.release.wait(120)
            return function(*arguments, **options)

        return wait


@pytest.fixture
def callers(index: Index, settings_of: Callable[..., Settings], tmp_path: Path) -> Iterator[Callable[..., httpx.Client]]:
    """Clients of one service, each with a token of its own, and a role."""
    memory = {"impl": "federator.testing:CONNECTOR"}
    sources = {
        "lake": {**memory, "store": "shares-lake"}, "slow": {**memory, "file": str(tmp_path / "slow.json"), "data_operations": True},
    }  # fmt: skip
    app = create_app(settings_of(serve={"auth": "required"}, sources=sources, mirrors={}))
    clients: list[httpx.Client] = []
    with serve_app(app, force_exit=True) as url:

        def open_client(name: str, role: str = "viewer") -> httpx.Client:
            token, _ = tokens.create_token(index, name, role=role, scopes=EVERYTHING, lifetime=3600, actor="tests")
            limits = httpx.Limits(max_connections=None)
            client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60, limits=limits)
            clients.append(client)
            return client

        yield open_client
        for client in clients:
            client.close()


@contextmanager
def sending(client: httpx.Client, url: str, count: int) -> Iterator[list[Future[httpx.Response]]]:
    with ThreadPoolExecutor(count) as threads:
        yield [threads.submit(client.get, url) for _ in range(count)]


@pytest.mark.parametrize("name", ROUTES)
def test_a_caller_with_slow_requests_delays_no_other(
    callers: Callable[..., httpx.Client], index: Index, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """One caller sends more than the process has threads. Without a share, the other one would wait for all of them."""
    run = runs.insert_run(index, "crawl", trigger="request", actor="api")
    runs.finish_run(index, run, "ok", summary={})
    module, function, template = ROUTES[name]
    url, slow = template.format(run=run.id), Slow()
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(module, function, slow.wrap(getattr(module, function)))
    greedy, other = callers("greedy"), callers("other")
    try:
        with sending(greedy, url, 60) as requests:
            for _ in range(MAX_RUNNING):
                assert slow.started.acquire(timeout=60)
            assert other.get("/api/v1/sources").status_code == 200
            for response in _first_responses(requests, 60 - MAX_RUNNING):
                assert (response.status_code, response.json()["code"], response.headers["retry-after"]) == (429, 21, "5")
            assert slow.calls == MAX_RUNNING
            slow.release.set()
        assert sorted(future.result().status_code for future in requests) == [200] * MAX_RUNNING + [429] * (60 - MAX_RUNNING)
        # What has ended no longer counts.
        assert greedy.get(url).status_code == 200
    finally:
        slow.release.set()


def test_large_plans_are_read_one_at_a_time(
    callers: Callable[..., httpx.Client], index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes much memory. One caller with many waits for itself, not another for all of them."""
    monkeypatch.setattr(plans_view, "LARGE_PLAN", 0)
    body = json.dumps(Plan("m", "d", 1, 1).to_json())
    with index.write() as connection:
        plans.save_plan(connection, digest="d" * 64, mirror="m", run_id="r", state="ready", body=body)
    slow = Slow()
    monkeypatch.setattr(large_plans, "_request_in_process", slow.wrap(large_plans._request_in_process))
    measured = Slow()
    measured.release.set()
    monkeypatch.setattr(plan_routes, "measure_plan", measured.wrap(plan_access.measure_plan))
    greedy, other = callers("greedy"), callers("other")
    try:
        with sending(greedy, f"/api/v1/plans/{'d' * 64}", MAX_RUNNING) as requests:
            assert slow.started.acquire(timeout=60)
            for _ in range(20):
                assert other.get("/api/v1/plans").status_code == 200
            assert slow.calls == 1
            with sending(other, f"/api/v1/plans/{'d' * 64}", 1) as (of_other,):
                while measured.calls < MAX_RUNNING + 1:
                    time.sleep(0.01)
                slow.release.set()
                assert of_other.result().status_code == 200
                assert sum(future.done() for future in requests) < MAX_RUNNING
        assert [future.result().status_code for future in requests] == [200] * MAX_RUNNING
    finally:
        slow.release.set()


def test_many_callers_with_slow_requests_leave_threads_for_others(
    callers: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three shares are as many requests as the process keeps connections to the index, eight as many as it has threads."""
    slow = Slow()
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(tree, "read_children", slow.wrap(tree.read_children))
    greedy, other = [callers(f"greedy{number}") for number in range(8)], callers("other")
    count = 8 * (MAX_RUNNING + 2)
    try:
        with ExitStack() as stack:
            sent = [stack.enter_context(sending(client, "/api/v1/tree?path=lake", count // 8)) for client in greedy]
            requests = [future for futures in sent for future in futures]
            while sum(future.done() for future in requests) + slow.calls < count:
                time.sleep(0.01)
            assert all(any(not future.done() for future in futures) for futures in sent), "each of them is served"
            assert other.get("/api/v1/sources", timeout=20).status_code == 200
            slow.release.set()
        assert {future.result().status_code for future in requests} == {200, 429}
    finally:
        slow.release.set()


@dataclass
class SilentProvider:
    """An identity provider that takes connections and does not answer, and how many it has."""

    listener: socket.socket
    connections: list[socket.socket] = field(default_factory=list)

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                self.connections.append(self.listener.accept()[0])


@pytest.fixture
def silent() -> Iterator[SilentProvider]:
    provider = SilentProvider(socket.create_server(("127.0.0.1", 0), backlog=128))
    thread = threading.Thread(target=provider.accept)
    thread.start()
    yield provider
    provider.listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for each in (provider.listener, *provider.connections):
        each.close()


@pytest.mark.parametrize("way", ["sign in", "JWT"])
def test_an_identity_provider_that_does_not_respond_stalls_those_alone_whom_it_must_confirm(
    index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, silent: SilentProvider, way: str
) -> None:
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.2)
    issuer = f"http://127.0.0.1:{silent.listener.getsockname()[1]}"
    sign_in = {"client_id": "f", "redirect_uri": "http://127.0.0.1/auth/callback"}
    oidc = {
        "issuer": issuer,
        "audience": "a",
        "role_claim": "groups",
        "roles": {"g": "viewer"},
        "timeout": "60s",
        "sign_in": sign_in,
    }
    app = create_app(settings_of(serve={"oidc": oidc}))
    token, _ = tokens.create_token(index, "known", role="viewer", scopes=EVERYTHING, lifetime=3600, actor="tests")
    invented = ".".join(encode_base64url(part) for part in (b'{"alg": "RS256", "kid": "k"}', b"{}", b"signature"))
    url, headers = ("/auth/login", {}) if way == "sign in" else ("/api/v1/me", {"Authorization": f"Bearer {invented}"})
    limits = httpx.Limits(max_connections=None)
    with serve_app(app, force_exit=True) as base, httpx.Client(base_url=base, limits=limits, timeout=60) as client:
        with ThreadPoolExecutor(60) as threads:
            requests = [threads.submit(client.get, url, headers=headers) for _ in range(60)]
            assert {response.status_code for response in _first_responses(requests, 60 - MAX_RUNNING)} == {429}
            while len(silent.connections) < MAX_RUNNING:
                time.sleep(0.01)
            assert len(silent.connections) == MAX_RUNNING
            assert client.get("/api/v1/sources", headers={"Authorization": f"Bearer {token}"}, timeout=20).status_code == 200
            assert client.get("/healthz", timeout=20).status_code == 200
            for connection in list(silent.connections):
                connection.shutdown(socket.SHUT_RDWR)
        assert [future.result().status_code for future in requests].count(503) == MAX_RUNNING


@pytest.mark.parametrize("operation", ["declare", "create"])
def test_a_catalog_that_does_not_respond_stalls_its_caller_only(
    callers: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operation: str
) -> None:
    """Also in routes that are coroutines."""
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.2)
    store = MemoryStore(str(tmp_path / "slow.json"))
    store.add_namespace(("s",))
    store.faults("slow:*")
    rows = BytesIO()
    with pa.ipc.new_stream(rows, pa.schema({"id": pa.int64()})):
        pass
    writer, other = callers("writer", "writer"), callers("other")
    body: dict[str, Any] = {"json": {}} if operation == "declare" else {"content": rows.getvalue()}
    try:
        with ThreadPoolExecutor(60) as threads:
            requests = [threads.submit(writer.post, f"/v1/table/slow$s$t{number}/{operation}", **body) for number in range(60)]
            refused = 0
            while refused < 60 - MAX_RUNNING:
                refused = sum(future.done() and _is_refused(future.result()) for future in requests)
                assert not [future.result().text for future in requests if future.done() and not _is_refused(future.result())]
            assert other.get("/api/v1/sources").status_code == 200
            assert other.post("/v1/table/lake$sales$orders/describe", json={}).status_code == 200
            store.faults("")
        # On a busy machine, fewer than its share may have arrived before the others were refused.
        assert sum(_is_refused(future.result()) for future in requests) >= 60 - MAX_RUNNING
    finally:
        store.faults("")


def _is_refused(response: httpx.Response) -> bool:
    """Whether the share of the caller was used up, or another table of its share holds the same one of the 256 locks."""
    return response.status_code == 429 or (response.status_code == 409 and response.json()["code"] == 14)


def _first_responses(requests: Sequence[Future[httpx.Response]], count: int) -> list[httpx.Response]:
    """As many responses as arrive while the requests of the share wait."""
    return [future.result() for future in islice(as_completed(requests, timeout=60), count)]


def test_a_burst_of_quick_requests_is_served(callers: Callable[..., httpx.Client]) -> None:
    """A cluster of executors has one token, and its clients do not retry."""
    with sending(callers("executors"), "/api/v1/tree?path=lake", MAX_RUNNING + MAX_WAITING) as requests:
        assert {future.result().status_code for future in requests} == {200}


def test_what_waits_is_bounded(callers: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(shares, "WAIT_SECONDS", 600.0)
    monkeypatch.setattr(tree, "read_children", slow.wrap(tree.read_children))
    count = MAX_RUNNING + MAX_WAITING + 3
    try:
        with sending(callers("greedy"), "/api/v1/tree?path=lake", count) as requests:
            refused = 0
            while refused < 3:
                refused = sum(future.done() and future.result().status_code == 429 for future in requests)
            slow.release.set()
        assert sorted(future.result().status_code for future in requests) == [200] * (count - 3) + [429] * 3
    finally:
        slow.release.set()
