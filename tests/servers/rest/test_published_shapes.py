"""The connector against responses in the shapes that Gravitino's and LanceDB's documents and sources publish; neither server was run.

Gravitino: ``docs/lance-rest-service.md`` (the URL ends in ``/lance``, two levels of namespaces, ``$`` as ``%24``),
``GravitinoLanceNameSpaceOperations`` (whole ids in listings, tables only below schemas), ``LanceExceptionMapper`` (HTTP statuses as
codes).
LanceDB: ``docs.lancedb.com/api-reference/rest`` (``x-api-key``, ``x-lancedb-database``), and the response of ``describe`` that its
remote client reads, which has no location.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from federator.connector import Catalog, Internal
from federator.model import Coverage, Kind, Path
from federator_connectors.rest import CONNECTOR

GRAVITINO: dict[str, tuple[int, Any]] = {
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
def test_gravitino_lists_whole_ids(server: Published, path: str) -> None:
    server.responses = GRAVITINO
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
    server.responses = GRAVITINO
    with opened(server, "/lance") as catalog, pytest.raises(Internal, match="Table not found: gone"):
        catalog.observe(("lance_catalog", "schema", "gone"))


def test_lancedb_needs_a_key_and_a_database(server: Published) -> None:
    server.responses, server.required = LANCEDB, {"x-api-key": "k3y", "x-lancedb-database": "words-db"}
    with opened(server, "/", api_key="k3y", **{"header.x-lancedb-database": "words-db"}) as catalog:
        records, coverage = crawl(catalog)
        assert records[("words",)].kind is Kind.UNDESCRIBED
        assert coverage[()].complete
        assert not coverage[()].detail.complete
