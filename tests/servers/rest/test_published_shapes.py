"""The connector against responses in the shapes that Gravitino's and LanceDB's documents and sources publish; neither server was run.

Gravitino as it is now: ``tests/stubs/gravitino.py``. Its first version with this service, 1.1, listed whole ids and sent HTTP statuses
as codes: ``GravitinoLanceNameSpaceOperations`` and ``LanceExceptionMapper`` of its commits 02345063 and 0c35e4aa.
LanceDB: https://github.com/lancedb/lancedb at commit 45cd0534 (2026-08-22), below ``rust/lancedb/src/remote``: the headers
``x-api-key`` and ``x-lancedb-database`` (``client.rs`` 611-636), the paths of ``db.rs`` 628-1024, and in ``table.rs`` 3352-3373 the
response of ``describe`` that its remote client reads, which has no location.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from federator.connector import Catalog, Internal, InvalidInput, Unauthenticated, Unsupported
from federator.model import Coverage, Kind, Path, TableRecord
from federator.testing.conformance.report import Verdict
from federator.testing.conformance.run import run_conformance
from federator.testing.conformance.target import Target
from federator_connectors.rest import CONNECTOR
from tests.stubs.gravitino import GravitinoStub, LakehouseCatalog, Schema

GRAVITINO_1_1: dict[str, tuple[int, Any]] = {
    "GET /lance/v1/namespace/%24/list": (200, {"namespaces": ["lance_catalog"]}),
    "GET /lance/v1/namespace/lance_catalog/list": (200, {"namespaces": ["schema"]}),
    "GET /lance/v1/namespace/lance_catalog%24schema/list": (200, {"namespaces": []}),
    "POST /lance/v1/namespace/lance_catalog/describe": (200, {"properties": {}}),
    "POST /lance/v1/namespace/lance_catalog%24schema/describe": (200, {"properties": {"team": "sales"}}),
    "GET /lance/v1/namespace/%24/table/list": (400, {"error": "Expected 2-level namespace but got: 0", "code": 400}),
    "GET /lance/v1/namespace/lance_catalog/table/list": (400, {"error": "Expected 2-level namespace but got: 1", "code": 400}),
    "GET /lance/v1/namespace/lance_catalog%24schema/table/list": (200, {"tables": ["lance_catalog$schema$table01"]}),
    "POST /lance/v1/table/lance_catalog%24schema%24table01/describe": (
        200,
        {"location": "s3://lake/table01", "properties": {}},
    ),
    "POST /lance/v1/table/lance_catalog%24schema%24gone/describe": (404, {"error": "Table not found: gone", "code": 404}),
}
LANCEDB: dict[str, tuple[int, Any]] = {
    "GET /v1/namespace/%24/list": (200, {"namespaces": []}),
    "GET /v1/namespace/%24/table/list": (200, {"tables": ["words"]}),
    "POST /v1/table/words/describe": (200, {"table": "words", "version": 1, "schema": {"fields": []}, "stats": {}}),
}


class Published(ThreadingHTTPServer):
    """Answers with ``responses``, by method and path. ``required`` headers decide whether a request is answered."""

    responses: dict[str, tuple[int, Any]]
    required: dict[str, str]


class _Handler(BaseHTTPRequestHandler):
    server: Published

    def log_message(self, *_: object) -> None: ...

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = self.server.responses.get(f"{self.command} {self.path.partition('?')[0]}", (404, "no such route"))
        if any(self.headers.get(name) != value for name, value in self.server.required.items()):
            status, body = 401, {"error": "missing credentials", "code": 16}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer


@pytest.fixture
def server() -> Iterator[Published]:
    with Published(("127.0.0.1", 0), _Handler) as server:
        server.required = {}
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def opened(server: Published, path: str = "", **properties: str) -> Catalog:
    uri = f"http://127.0.0.1:{server.server_port}{path}"
    return CONNECTOR.open(uri, CONNECTOR.parse_settings({"uri": uri, **properties}))


def crawl(catalog: Catalog) -> tuple[dict[Path, Any], dict[Path, Coverage]]:
    items = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    records = {item.path: item for item in items if not isinstance(item, Coverage)}
    return records, {item.namespace: item for item in items if isinstance(item, Coverage)}


@pytest.mark.parametrize("path", ["/lance", "/lance/"])
def test_the_first_gravitino_lists_whole_ids(server: Published, path: str) -> None:
    server.responses = GRAVITINO_1_1
    with opened(server, path) as catalog:
        records, coverage = crawl(catalog)
        schema = ("lance_catalog", "schema")
        assert catalog.list_tables(schema) == ["table01"]
        assert records[(*schema, "table01")].location == "s3://lake/table01"
        assert coverage[schema].complete
        # Tables of a catalog cannot be listed, which is no proof that it has none.
        assert not coverage[("lance_catalog",)].complete
        assert coverage[("lance_catalog",)].found


def test_a_status_as_code_proves_no_absence(server: Published) -> None:
    server.responses = GRAVITINO_1_1
    with opened(server, "/lance") as catalog, pytest.raises(Internal, match="Table not found: gone"):
        catalog.observe(("lance_catalog", "schema", "gone"))


def test_lancedb_needs_a_key_and_a_database(server: Published) -> None:
    server.responses, server.required = LANCEDB, {"x-api-key": "k3y", "x-lancedb-database": "words-db"}
    with opened(server, "/", api_key="k3y", **{"header.x-lancedb-database": "words-db"}) as catalog:
        records, coverage = crawl(catalog)
        assert records[("words",)].kind is Kind.UNDESCRIBED
        assert coverage[()].complete
        assert not coverage[()].detail.complete


@pytest.fixture
def gravitino() -> Iterator[GravitinoStub]:
    with GravitinoStub() as stub:
        stub.metalake.catalogs["lake"] = LakehouseCatalog({"location": "s3://lake"})
        stub.metalake.hidden.add("hive")
        yield stub


def test_a_crawl_of_gravitino_is_complete_with_its_depth(gravitino: GravitinoStub) -> None:
    lake = gravitino.metalake.catalogs["lake"]
    lake.schemas |= {"sales": Schema({}), "empty": Schema({})}
    lake.schemas["sales"].tables["orders"] = {"location": "s3://lake/orders/", "external": "true", "team": "sales"}
    with opened_stub(gravitino, depth="2", page_size="1") as catalog:
        records, coverage = crawl(catalog)
    assert {path: item.complete for path, item in coverage.items()} == {
        (): True, ("lake",): True, ("lake", "sales"): True, ("lake", "empty"): True,
    }  # fmt: skip
    assert records[("lake", "sales", "orders")].canonical == "s3://lake/orders"
    assert {"namespace table/list ", "namespace table/list lake"}.isdisjoint(gravitino.requests)
    with opened_stub(gravitino) as catalog:
        assert not crawl(catalog)[1][("lake",)].complete, "without the depth, a catalog may have tables"


def test_a_catalog_that_went_during_the_crawl_is_not_empty(gravitino: GravitinoStub) -> None:
    with opened_stub(gravitino, depth="2") as catalog:
        shards = catalog.plan_shards()
        del gravitino.metalake.catalogs["lake"]
        items = [item for shard in shards for item in catalog.read_shard(shard)]
    (coverage,) = [item for item in items if isinstance(item, Coverage) and item.namespace == ("lake",)]
    assert not coverage.complete
    assert not coverage.found


def test_gravitinos_errors_have_their_meaning(gravitino: GravitinoStub) -> None:
    gravitino.metalake.catalogs["lake"].schemas["sales"] = Schema({})
    with opened_stub(gravitino, depth="2") as catalog:
        assert catalog.observe(("lake", "sales", "none")).is_absent
        assert catalog.find_namespace(("hive",)) is None
        # The route does not exist, which says nothing of the table.
        catalog.declare_table(TableRecord("g", ("lake", "sales", "t"), "s3://lake/t.lance"))
        with pytest.raises(Unsupported, match="does not have this route"):
            catalog.rename_table(catalog.describe_table(("lake", "sales", "t")), ("lake", "sales", "u"))
        # A namespace with tables is invalid input there, not code 3.
        with pytest.raises(InvalidInput, match="not empty"):
            catalog.drop_namespace(("lake", "sales"))
    gravitino.token = "right"
    with opened_stub(gravitino, auth_token="wrong") as catalog, pytest.raises(Unauthenticated):
        catalog.list_namespaces(())
    with opened_stub(gravitino, auth_token="right") as catalog:
        assert catalog.list_namespaces(()) == ["lake"]


def test_gravitinos_operations_pass_the_contract_suite(gravitino: GravitinoStub) -> None:
    # Its page tokens count entries: what is removed during a listing hides an entry of the next page. 16 are the most at once.
    properties = {"uri": gravitino.url, "keeps_properties": "true", "depth": "2", "page_size": "16"}
    target = Target(CONNECTOR, properties, crawls_everything=True, races_for_names=True, server_only=True)
    report = run_conformance(target, lambda check: None)
    failed = {check.title for check in report.checks if check.verdict is Verdict.FAILED}
    assert failed == {
        # The root cannot be described.
        "the root always exists and stays",
        # The code is 13 instead of 3.
        "what is not empty is neither dropped nor overwritten",
    }
    assert sum(check.verdict is Verdict.PASSED for check in report.checks) == 34
    assert report.remaining == []
    assert gravitino.metalake.catalogs == {"lake": LakehouseCatalog({"location": "s3://lake"})}


def opened_stub(stub: GravitinoStub, **properties: str) -> Catalog:
    return CONNECTOR.open("g", CONNECTOR.parse_settings({"uri": stub.url, "keeps_properties": "true", **properties}))
