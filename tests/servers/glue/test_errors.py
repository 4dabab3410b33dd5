"""Each error code of the Glue connector, from real responses: moto, and a scripted HTTP server."""

from __future__ import annotations

import itertools
import json
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.connector.call_policy import CircuitOpen
from federator.demo.servers.process import Server
from federator.model import ROOT, Coverage, NamespaceRecord
from federator_connectors._glue import call_limits
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors._glue.client import iter_items
from federator_connectors._glue.errors import translate_aws_errors
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import REGION, STATIC, GlueAccount, client_of, principals

pytestmark = pytest.mark.timeout(60)

Answer = tuple[int, str]


class Script:
    """A server that answers every call with the same, and counts them. ``answer``: HTTP status and body."""

    def __init__(self) -> None:
        self.answer: Answer = (200, "{}")
        self.calls: list[str] = []
        self.at_once = self.most_at_once = 0
        self.takes = 0.0
        self.lock = threading.Lock()
        self.may_answer = threading.Event()
        self.may_answer.set()
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                script.calls.append(self.headers.get("X-Amz-Target", "").rpartition(".")[2])
                with script.lock:
                    script.at_once += 1
                    script.most_at_once = max(script.most_at_once, script.at_once)
                script.may_answer.wait(30)
                time.sleep(script.takes)
                status, body = script.answer
                with script.lock:
                    script.at_once -= 1
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def says(self, status: int, code: str = "", text: str = "why") -> None:
        self.answer = (status, json.dumps({"__type": code, "Message": text}) if code else "")


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def opened(url: str, **more: str) -> GlueCatalog:
    keys = {"access_key_id": STATIC["aws_access_key_id"], "secret_access_key": STATIC["aws_secret_access_key"]}
    return CONNECTOR.open("aws", CONNECTOR.parse_settings({"endpoint": url, "region": REGION, **keys, **more}))


@pytest.mark.parametrize(("status", "expected"), [(403, Unauthenticated), (500, ServiceUnavailable), (503, ServiceUnavailable)])
def test_only_glue_s_own_status_proves_absence(script: Script, status: int, expected: type[CatalogError]) -> None:
    path = ("hive", "db", "t")
    with opened(script.url, catalog_id="hive") as catalog:
        script.says(400, "EntityNotFoundException")
        assert catalog.observe(path).is_absent
        script.says(status, "EntityNotFoundException")
        with pytest.raises(expected):
            catalog.observe(path)


@pytest.mark.parametrize("tables", [{}, {"t0": {}}, [{"Name": "t1"}, {"Name": "t1"}]])
def test_a_listing_that_is_no_list_or_has_a_name_twice_is_a_failure(script: Script, tables: object) -> None:
    with opened(script.url, catalog_id="hive") as catalog:
        script.answer = (200, json.dumps({"TableList": tables}))
        # The listing alone: each other call would refuse this answer.
        with pytest.raises(Internal, match=r"is not a list|has a name twice"), translate_aws_errors("listing"):
            list(iter_items(catalog._clients.reads.get_tables, "TableList", DatabaseName="db"))


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "ThrottlingException", Throttled),
        (429, "", Throttled),
        (503, "", ServiceUnavailable),
        (500, "InternalServiceException", ServiceUnavailable),
        (400, "OperationTimeoutException", ServiceUnavailable),
        (400, "FederationSourceRetryableException", ServiceUnavailable),
        (400, "ResourceNotReadyException", ServiceUnavailable),
        (400, "ConcurrentModificationException", ConcurrentModification),
        (400, "com.amazonaws.glue#InvalidInputException", InvalidInput),
        (400, "ValidationException", InvalidInput),
        (400, "AccessDeniedException", Unauthenticated),
        (403, "", Unauthenticated),
        (400, "ExpiredTokenException", Unauthenticated),
        (400, "UnrecognizedClientException", Unauthenticated),
        (400, "UnknownOperationException", Unsupported),
        (501, "", Unsupported),
        (404, "", Internal),
        (400, "GlueEncryptionException", Internal),
        (400, "ResourceNumberLimitExceededException", Internal),
    ],
)
def test_an_answer_and_its_error(script: Script, status: int, code: str, expected: type[CatalogError]) -> None:
    with opened(script.url, catalog_id="hive") as catalog:
        script.says(status, code)
        # A write, which is sent once whatever the answer is.
        with pytest.raises(CatalogError) as caught:
            catalog.create_namespace(NamespaceRecord("aws", ("hive", "db")))
    assert type(caught.value) is expected
    assert script.calls == ["CreateDatabase"]
    assert caught.value.message.startswith("aws: creating database hive$db")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (expected, str(caught.value))


def test_reads_are_tried_again_and_writes_are_not(script: Script) -> None:
    with opened(script.url, catalog_id="000000000000") as catalog:
        script.says(503)
        with pytest.raises(ServiceUnavailable):
            catalog.ping()
        assert script.calls == ["GetDatabases"] * 4


def test_a_wrong_signature_does_not_repeat_the_headers(script: Script) -> None:
    text = "The Canonical String should have been x-amz-security-token:TOKEN-OF-MINE"
    xml = f"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>{text}</Message></Error></ErrorResponse>"
    with opened(script.url, catalog_id="000000000000") as catalog:
        for answer in ((403, xml), (400, json.dumps({"__type": "InvalidSignatureException", "message": text}))):
            script.answer = answer
            with pytest.raises(Unauthenticated, match="does not accept the credentials") as caught:
                catalog.ping()
            assert "TOKEN-OF-MINE" not in str(caught.value)
            assert caught.value.__cause__ is None


def test_a_metastore_without_catalogs(script: Script) -> None:
    """An older API-compatible service: GetCatalogs is unknown to it."""
    script.says(400, "UnknownOperationException")
    with opened(script.url) as catalog, pytest.raises(InvalidInput, match="account") as caught:
        catalog.list_namespaces(ROOT)
    assert "catalog_id" in str(caught.value.hint)
    with opened(script.url, catalog_id="hive") as catalog:
        assert catalog.list_namespaces(ROOT) == ["hive"]
        assert catalog.canonical_path(("db", "t")) == ("hive", "db", "t")
        assert catalog.describe_namespace(("hive",)).native_id == "hive"


def test_a_token_that_repeats_ends_the_listing_with_an_error(script: Script) -> None:
    script.answer = (200, json.dumps({"DatabaseList": [{"Name": "db"}], "CatalogList": [], "NextToken": "again"}))
    with opened(script.url, catalog_id="hive") as catalog, pytest.raises(Internal, match="token"):
        catalog.list_namespaces(("hive",))


def test_an_empty_page_is_not_the_last(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(script.url, catalog_id="hive") as catalog:
        answers = iter([
            {"DatabaseList": [], "NextToken": "1"},
            {"DatabaseList": [{"Name": "a"}], "NextToken": "2"},
            {"DatabaseList": [], "NextToken": "3"},
            {"DatabaseList": [{"Name": "b"}]},
        ])  # fmt: skip
        asked: list[str | None] = []

        def page(NextToken: str | None = None, **_: Any) -> Any:
            asked.append(NextToken)
            return next(answers)

        monkeypatch.setattr(catalog._clients.reads, "get_databases", page)
        assert catalog.list_namespaces(("hive",)) == ["a", "b"]
        assert asked == [None, "1", "2", "3"]


def test_a_dead_endpoint_is_unavailable() -> None:
    wanted = NamespaceRecord("aws", ("hive", "db"))
    with (
        opened("http://127.0.0.1:9", catalog_id="hive") as catalog,
        pytest.raises(ServiceUnavailable, match="cannot be reached"),
    ):
        catalog.create_namespace(wanted)


def test_a_source_that_hangs_holds_no_other(script: Script, glue_account: GlueAccount) -> None:
    script.may_answer.clear()
    script.says(503)
    with opened(script.url, sts_endpoint=script.url) as hanging, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(hanging.list_namespaces, ROOT)
        while not script.calls:
            time.sleep(0.01)
        with CONNECTOR.open("alive", CONNECTOR.parse_settings(glue_account.properties)) as alive:
            assert alive.list_namespaces(ROOT) == [glue_account.account_id]
        assert not waiting.done()
        script.may_answer.set()
        with pytest.raises(ServiceUnavailable):
            waiting.result()


@pytest.mark.parametrize(
    ("limit", "takes", "least", "most"), [("requests-per-second=10", 0.0, 11 / 10, 8), ("concurrent-requests=2", 0.1, 0.6, 2)]
)
def test_limits_hold_over_every_catalog_of_a_source(script: Script, limit: str, takes: float, least: float, most: int) -> None:
    key, value = limit.split("=")
    script.takes = takes
    script.answer = (200, json.dumps({"DatabaseList": []}))

    def ping(_: int) -> None:
        with opened(script.url, catalog_id="hive", **{f"limit.{key}": value}) as catalog:
            catalog.ping()

    started = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ping, range(12)))
    assert len(script.calls) == 12
    assert time.monotonic() - started >= least
    assert script.most_at_once <= most


def test_a_call_that_fails_gives_its_turn_back(script: Script) -> None:
    with opened(script.url, catalog_id="hive", **{"limit.concurrent-requests": "1"}) as catalog:
        for answer in ((400, "InvalidInputException"), (500, ""), (403, "")):
            script.says(*answer)
            with pytest.raises(CatalogError):
                catalog.create_namespace(NamespaceRecord("aws", ("hive", "db")))
        script.answer = (200, json.dumps({"DatabaseList": []}))
        catalog.ping()
    with opened("http://127.0.0.1:9", catalog_id="hive", **{"limit.concurrent-requests": "1"}) as catalog:
        for _ in range(2):
            with pytest.raises(ServiceUnavailable):
                catalog.create_namespace(NamespaceRecord("aws", ("hive", "db")))


def test_a_server_that_does_not_answer_is_left_alone_for_a_while(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five calls in a row in three seconds or more, those of other catalogs among them; any answer, also an error, ends the row."""
    clock = [0.0]
    monkeypatch.setattr(call_limits, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=time.sleep))

    def create() -> None:
        with opened(script.url, catalog_id="hive") as catalog, pytest.raises(CatalogError) as caught:
            catalog.create_namespace(NamespaceRecord("aws", ("hive", "db")))
        raise caught.value

    answers = ((503, ""), (503, ""), (400, "InvalidInputException"), *((503, ""),) * 4, (500, "InternalServiceException"))
    for status, code in answers:
        script.says(status, code, "overloaded")
        clock[0] += 1
        with pytest.raises(CatalogError, match="creating database"):
            create()
    assert len(script.calls) == 8
    with pytest.raises(CircuitOpen) as refused:
        create()
    assert refused.value.message == (
        f"aws: {script.url} did not serve the last 5 calls, so no calls are made for 15 s; "
        "the last failure: InternalServiceException: overloaded"
    )
    assert len(script.calls) == 8, "nothing was sent"
    clock[0] += 16
    script.says(400, "InvalidInputException")
    for _ in range(2):
        with pytest.raises(InvalidInput):
            create()
    assert len(script.calls) == 10


def test_calls_that_are_not_made_name_the_connection_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(call_limits, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=time.sleep))
    with opened("http://127.0.0.1:9", catalog_id="hive") as catalog:
        for _ in range(5):
            with pytest.raises(ServiceUnavailable, match=r"http://127\.0\.0\.1:9/? cannot be reached"):
                catalog.create_namespace(NamespaceRecord("aws", ("hive", "db")))
        with pytest.raises(CircuitOpen, match=r"the last failure: http://127\.0\.0\.1:9/? cannot be reached$"):
            catalog.create_namespace(NamespaceRecord("aws", ("hive", "db")))


@pytest.fixture
def limited(glue_throwaway: Server) -> dict[str, str]:
    """Properties of a principal who may read databases and nothing else, on a server that enforces it."""
    client_of(glue_throwaway.uri).create_database(DatabaseInput={"Name": "db"})
    return principals(glue_throwaway.uri, "glue:GetDatabase*")[0]


def test_denied_is_16_and_not_absent(limited: dict[str, str]) -> None:
    with CONNECTOR.open("aws", CONNECTOR.parse_settings(limited)) as catalog:
        account = catalog.describe_namespace(("db",)).path[0]
        denied: list[Any] = [
            lambda: catalog.list_namespaces(ROOT),
            lambda: catalog.list_tables(("db",)),
            lambda: catalog.describe_table(("db", "t")),
            lambda: catalog.observe(("db", "t")),
            lambda: catalog.describe_table(("unseen", "db", "t")),
            lambda: catalog.observe(("unseen", "db", "t")),
            lambda: catalog.create_namespace(NamespaceRecord("aws", (account, "new"))),
            lambda: catalog.drop_namespace(("db",)),
        ]
        for operation in denied:
            with pytest.raises(Unauthenticated, match="access denied") as caught:
                operation()
            assert "<" not in caught.value.message
            assert "not authorized to perform: glue:" in caught.value.message
        rows = [row for shard in catalog.plan_shards() for row in catalog.read_shard(shard)]
        coverage = {row.namespace: row for row in rows if isinstance(row, Coverage)}
        assert {path: c.presence.code for path, c in coverage.items()} == {(): 16, (account,): None, (account, "db"): 16}
        assert all(c.found for c in coverage.values())
    for wrong in ({"secret_access_key": "wrong"}, {"access_key_id": "AKIAUNKNOWN"}):
        with (
            CONNECTOR.open("aws", CONNECTOR.parse_settings({**limited, **wrong})) as catalog,
            pytest.raises(Unauthenticated, match="does not accept the credentials"),
        ):
            catalog.plan_shards()
