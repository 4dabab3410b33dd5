"""DuckDB with its Lance extension: tables by the locations of the REST protocol, and a namespace as an attached database."""

import importlib.resources
import json
import urllib.request
from typing import Any

import duckdb

from tests.interop.scenarios.runner import Server, Steps, equal, run

ROWS = "(VALUES (1, [1.0, 0.0]), (2, [2.0, 0.0]), (3, [3.0, 0.0])) AS rows(id, vector)"


def steps(server: Server) -> Steps:
    connection = _connect()
    above = server.new_namespace()
    namespace = "$".join(above)

    def query(sql: str) -> list[Any]:
        return connection.execute(sql).fetchall()

    def post(kind: str, name: str, operation: str) -> dict[str, Any]:
        url = f"{server.uri}/v1/{kind}/{name.replace('$', '%24')}/{operation}"
        headers = {"Content-Type": "application/json", "x-api-key": server.api_key}
        with urllib.request.urlopen(urllib.request.Request(url, b"{}", headers), timeout=60) as response:
            found: dict[str, Any] = json.loads(response.read() or b"{}")
            return found

    def location() -> str:
        return str(post("table", f"{namespace}$orders", "describe")["location"])

    def write() -> None:
        declared = post("table", f"{namespace}$orders", "declare")["location"]
        rows = f"SELECT id, vector::FLOAT[2] AS vector FROM {ROWS}"
        equal(query(f"COPY ({rows}) TO '{declared}' (FORMAT lance, MODE 'append')"), [(3,)])

    def search() -> None:
        found = query(f"SELECT id FROM lance_vector_search('{location()}', 'vector', [3.0, 0.0]::FLOAT[], k = 1)")
        equal(found, [(3,)])

    def create() -> None:
        query("CREATE TABLE attached.main.created AS SELECT 1 AS id")
        post("table", f"{namespace}$created", "describe")

    yield "create a namespace", lambda: post("namespace", namespace, "create")
    yield "write a declared table", write
    # DuckDB itself takes only a path that ends with .lance for a table.
    yield "read a table", lambda: equal(query(f"SELECT id FROM __lance_scan('{location()}') WHERE id > 2"), [(3,)])
    yield "search", search
    yield "attach the namespace", lambda: query(f"ATTACH '{namespace}' AS attached (TYPE LANCE, ENDPOINT '{server.uri}')")
    yield "list tables", lambda: equal(query("SHOW TABLES FROM attached"), [("orders",)])
    yield "read an attached table", lambda: equal(query("SELECT count(*) FROM attached.main.orders"), [(3,)])
    yield "create an attached table", create


def _connect() -> duckdb.DuckDBPyConnection:
    with importlib.resources.path("duckdb_extension_lance", "extensions") as extensions:
        (extension,) = extensions.glob("*/lance.duckdb_extension")
    connection = duckdb.connect()
    connection.load_extension(str(extension))
    return connection


run(steps)
