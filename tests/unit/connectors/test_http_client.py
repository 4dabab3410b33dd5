"""The HTTP client against a test server: parameters, errors, retries, tokens, TLS, rates and the circuit breaker."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import ThreadingHTTPServer

import pytest

from federator.connector import (
    CallLimits,
    CatalogError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.connector.call_policy import CallPolicy, CircuitBreaker, CircuitOpen, RateLimiter
from federator_connectors._http.authentication import AccessToken, FixedHeaders, RefreshingToken
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import TlsOptions, error_for_status
from tests.fixtures.http_handler import KeepAliveHandler

Script = list[tuple[int, dict[str, str], str]]


class Server:
    """Answers with a script, one entry a request, the last one again and again; keeps what it was asked."""

    def __init__(self) -> None:
        self.script: Script = [(200, {}, "{}")]
        self.asked: list[tuple[str, str, dict[str, str], str]] = []
        outer = self

        class Handler(KeepAliveHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                outer.asked.append((self.command, self.path, dict(self.headers), body))
                status, headers, text = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                if status == 0:
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_DELETE = _answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/api"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def client(server: Server) -> Iterator[HttpClient]:
    http_client = HttpClient("lake", server.url, error_of=error_for_status, authentication=FixedHeaders.bearer("hunter2"))
    yield http_client
    http_client.close()


def test_a_read_carries_the_token_and_its_parameters(server: Server, client: HttpClient) -> None:
    server.script = [(200, {}, '{"names": ["a"]}')]
    assert client.get("/x%2Fy", {"page": "a b", "none": None}, about="listing").json_object == {"names": ["a"]}
    method, path, headers, _ = server.asked[0]
    assert (method, path) == ("GET", "/api/x%2Fy?page=a+b")
    assert headers["Authorization"] == "Bearer hunter2"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput),
        (401, Unauthenticated),
        (403, PermissionDenied),
        (404, Internal),
        (405, Unsupported),
        (418, Internal),
        (500, Internal),
        (302, InvalidInput),
    ],
)
def test_an_error_status_names_the_request(server: Server, client: HttpClient, status: int, kind: type) -> None:
    server.script = [(status, {"Location": "http://elsewhere/"}, '{"message": "no, hunter2"}')]
    with pytest.raises(kind) as raised:
        client.get("/x", about="listing the tables of a$b")
    assert "lake: listing the tables of a$b" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504, 0])
def test_a_read_is_repeated_after_a_soft_error_and_a_write_is_not(server: Server, client: HttpClient, status: int) -> None:
    server.script = [(status, {"Retry-After": "0"}, ""), (200, {}, '{"ok": 1}')]
    assert client.get("/x", about="reading").json_object == {"ok": 1}
    server.asked.clear()
    server.script = [(status, {"Retry-After": "0"}, ""), (200, {}, '{"ok": 1}')]
    with pytest.raises((Throttled, ServiceUnavailable)):
        client.send("POST", "/x", body={"a": 1}, about="writing")
    assert len(server.asked) == 1


def test_a_long_retry_after_is_not_waited_for(server: Server, client: HttpClient) -> None:
    server.script = [(429, {"Retry-After": "3600"}, "busy")]
    with pytest.raises(Throttled) as raised:
        client.get("/x", about="reading")
    assert raised.value.retry_after == 3600
    assert len(server.asked) == 1


def test_a_success_that_is_no_json_is_no_empty_answer(server: Server, client: HttpClient) -> None:
    server.script = [(200, {}, "<html>login</html>")]
    with pytest.raises(Internal, match="not JSON: <html>login</html>"):
        _ = client.get("/x", about="reading").json


def test_a_refused_token_is_fetched_once_more(server: Server) -> None:
    fetched = iter(["old", "new"])
    sign_in = RefreshingToken(lambda: AccessToken(next(fetched), expires_in=100))
    client = HttpClient("lake", server.url, error_of=error_for_status, authentication=sign_in)
    server.script = [(401, {}, ""), (200, {}, "{}")]
    client.send("POST", "/x", body={}, about="writing")
    assert [asked[2]["Authorization"] for asked in server.asked] == ["Bearer old", "Bearer new"]


def test_a_refused_token_that_another_call_has_replaced_is_not_discarded() -> None:
    fetched = iter(["old", "new"])
    sign_in = RefreshingToken(lambda: AccessToken(next(fetched), expires_in=100))
    sent = sign_in.headers()
    for _ in range(3):
        assert sign_in.discard_refused_token(sent)
        assert sign_in.headers() == {"Authorization": "Bearer new"}


def test_calls_that_wait_for_a_connection_are_not_made_once_the_server_is_known_to_hang() -> None:
    limits = CallLimits(attempts=1, breaker_failures=2, breaker_seconds=0.0, breaker_pause=600.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(12) as threads:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = HttpClient("lake", url, error_of=error_for_status, limits=limits, connections=1, read_timeout=0.2)
        calls = [threads.submit(client.get, "/x", about="reading") for _ in range(12)]
        errors = [call.exception() for call in calls]
    assert Counter(map(type, errors)) == {ServiceUnavailable: 2, CircuitOpen: 10}


def test_a_token_is_renewed_before_it_ends() -> None:
    now = [0.0]
    count = iter(range(10))
    sign_in = RefreshingToken(lambda: AccessToken(f"t{next(count)}", expires_in=100), clock=lambda: now[0])
    assert sign_in.headers() == {"Authorization": "Bearer t0"}
    now[0] = 89
    assert sign_in.headers() == {"Authorization": "Bearer t0"}
    now[0] = 90
    assert sign_in.headers() == {"Authorization": "Bearer t1"}


def test_netrc_is_not_read(
    server: Server, tmp_path: object, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    HttpClient("lake", server.url, error_of=error_for_status).get("/x", about="reading")
    assert "Authorization" not in server.asked[0][2]


@pytest.mark.parametrize(
    ("url", "reason"), [("http://127.0.0.1:9", "Connection refused"), ("http://nowhere.invalid", "Name or service not known")]
)
def test_a_server_that_is_not_there_is_unavailable(url: str, reason: str) -> None:
    client = HttpClient("lake", url, error_of=error_for_status, limits=CallLimits(attempts=1))
    with pytest.raises(ServiceUnavailable) as raised:
        client.get("/x", about="reading")
    assert raised.value.message == f"lake: reading: {url} cannot be reached ({reason})"
    assert raised.value.hint == "check the address and the network"


def test_a_connection_that_is_closed_without_a_response_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client = HttpClient("lake", url, error_of=error_for_status, limits=CallLimits(attempts=1))
        with pytest.raises(ServiceUnavailable) as raised:
            client.get("/x", about="reading")
        thread.join()
    assert raised.value.message in {
        f"lake: reading: {url} cannot be reached ({reason})"
        for reason in ("Remote end closed connection without response", "Connection reset by peer")
    }


def test_a_certificate_that_nobody_vouches_for_is_refused(server: Server) -> None:
    client = HttpClient(
        "lake",
        server.url.replace("http:", "https:"),
        error_of=error_for_status,
        limits=CallLimits(attempts=1),
        tls=TlsOptions(),
    )
    with pytest.raises(ServiceUnavailable, match="TLS"):
        client.get("/x", about="reading")


# Politeness, on a clock of its own.


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def unavailable() -> None:
    raise ServiceUnavailable("down")


def test_a_rate_spreads_calls_evenly() -> None:
    clock = Clock()
    rate = RateLimiter(4, clock, clock.sleep)
    for _ in range(9):
        rate.wait()
    assert clock.now == pytest.approx(2.0)


def attempt(call: Callable[[], None]) -> type[CatalogError] | None:
    try:
        call()
    except CatalogError as error:
        return type(error)
    return None


def test_a_breaker_spares_a_dead_server_and_finds_out_when_it_is_back() -> None:
    clock = Clock()
    calls: list[float] = []

    def down() -> None:
        calls.append(clock.now)
        unavailable()

    limits = CallLimits(breaker_failures=3, breaker_seconds=2, breaker_pause=10)
    polite = CallPolicy("lake", limits, clock=clock, sleep=clock.sleep)
    found = []
    for clock.now in (0.0, 0.5, 1.0, 1.5, 2.0):
        found.append(attempt(lambda: polite.call(down, repeatable=False)))
    assert found == [ServiceUnavailable] * 4 + [CircuitOpen]
    clock.now = 12
    assert attempt(lambda: polite.call(down, repeatable=False)) is ServiceUnavailable
    assert attempt(lambda: polite.call(down, repeatable=False)) is CircuitOpen
    clock.now = 23
    assert polite.call(lambda: "back", repeatable=False) == "back"
    assert polite.call(lambda: "again", repeatable=False) == "again"
    assert len(calls) == 5


def test_reads_at_the_same_time_outlast_a_short_outage(server: Server, client: HttpClient) -> None:
    server.script = [*((503, {}, ""),) * 8, (200, {}, '{"ok": 1}')]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: client.get(f"/{number}", about="reading").json_object, range(8)))
    assert answers == [{"ok": 1}] * 8


def test_an_answer_of_any_kind_closes_the_breaker() -> None:
    breaker = CircuitBreaker("lake", CallLimits(breaker_failures=2, breaker_seconds=0.0), Clock())

    def watched(error: CatalogError | None) -> None:
        with breaker.guard_call():
            if error:
                raise error

    for error in (ServiceUnavailable("x"), PermissionDenied("x"), ServiceUnavailable("x"), None, ServiceUnavailable("x")):
        assert attempt(lambda error=error: watched(error)) is (type(error) if error else None)  # type: ignore[misc]


def test_calls_that_are_not_made_tell_what_the_server_answered(server: Server) -> None:
    limits = CallLimits(breaker_failures=2, breaker_seconds=0.0)
    with closing(
        HttpClient("lake", server.url, error_of=error_for_status, authentication=FixedHeaders.bearer("hunter2"), limits=limits)
    ) as client:
        server.script = [(502, {}, ""), (503, {}, "down until noon, hunter2")]
        for _ in range(2):
            with pytest.raises(ServiceUnavailable):
                client.send("POST", "/x", body={}, about="writing")
        with pytest.raises(CircuitOpen) as refused:
            client.send("POST", "/x", body={}, about="writing")
    assert refused.value.message == (
        f"lake: {server.url} did not serve the last 2 calls, so no calls are made for 15 s; "
        "the last failure: lake: writing: down until noon, *** (HTTP 503)"
    )
    assert len(server.asked) == 2


def test_only_so_many_calls_run_at_once() -> None:
    polite = CallPolicy("lake", CallLimits(concurrency=2))
    inside, most, lock = [0], [0], threading.Lock()

    def call() -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.02)
        with lock:
            inside[0] -= 1

    threads = [threading.Thread(target=polite.call, args=(call,), kwargs={"repeatable": False}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 2


def test_the_limits_of_a_source_come_from_its_configuration() -> None:
    from federator_connectors.dir import CONNECTOR

    settings = CONNECTOR.parse_settings(
        {"root": "/x", "dir.limit.requests-per-second": "2.5", "limit.concurrent-requests": "3"}
    )
    assert settings.limits == CallLimits(requests_per_second=2.5, concurrency=3)
