"""A Lance namespace server for the general spec's ``POST /<operationId>`` routes, which keeps state in memory.

There is no real server of that protocol: this one is the contract, and every server of it can be held to the same tests. It follows
the spec's text and its 14 operations; bodies and statuses are those of the early OpenAPI document.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fixtures.http_handler import KeepAliveHandler

Path = tuple[str, ...]
OPERATIONS = (
    "ListOperations", "ListNamespaces", "NamespaceExists", "GetNamespace", "CreateNamespace", "AlterNamespace", "DropNamespace",
    "ListTables", "TableExists", "GetTable", "CreateTable", "RegisterTable", "AlterTable", "DropTable",
)  # fmt: skip


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass
class World:
    """What the server holds. A table whose location is in ``not_lance`` exists and cannot be loaded."""

    root: str = "s3://server"
    page_size: int = 1000
    namespaces: dict[Path, dict[str, str]] = field(default_factory=lambda: {(): {}})
    tables: dict[Path, dict[str, Any]] = field(default_factory=dict)
    not_lance: set[Path] = field(default_factory=set)
    #: these namespaces are denied to callers whose bearer token is ``limited``
    denied: set[Path] = field(default_factory=set)
    #: what a name that exists already is answered with: the document allows both
    taken: HTTPStatus = HTTPStatus.CONFLICT

    def list_operations(self, body: Any) -> Any:
        return {"operations": list(OPERATIONS)}

    def list_namespaces(self, body: Any) -> Any:
        parent = tuple(body.get("parent") or ())
        self._namespace(parent)
        return self._page([path[-1] for path in self.namespaces if path and path[:-1] == parent], body, "namespaces")

    def namespace_exists(self, body: Any) -> Any:
        return {"exists": (*(body.get("parent") or ()), body["name"]) in self.namespaces}

    def get_namespace(self, body: Any) -> Any:
        path = (*(body.get("parent") or ()), body["name"])
        return {"name": path[-1], "parent": list(path[:-1]), "properties": self._namespace(path)}

    def create_namespace(self, body: Any) -> Any:
        path = (*(body.get("parent") or ()), body["name"])
        self._namespace(path[:-1])
        if path in self.namespaces and body.get("mode") == "CREATE":
            raise Refused(self.taken, f"the namespace {path} exists")
        if path not in self.namespaces or body.get("mode") == "OVERWRITE":
            self.namespaces[path] = dict(body.get("options") or {})
        return self.get_namespace(body)

    def alter_namespace(self, body: Any) -> Any:
        path = (*(body.get("parent") or ()), body["name"])
        self.namespaces[path] = _altered(self._namespace(path), body)
        return self.get_namespace(body)

    def drop_namespace(self, body: Any) -> Any:
        path = (*(body.get("parent") or ()), body["name"])
        self._namespace(path)
        if any(other[:-1] == path for other in (*self.namespaces, *self.tables) if other):
            raise Refused(HTTPStatus.CONFLICT, f"the namespace {path} is not empty")
        del self.namespaces[path]
        return {}

    def list_tables(self, body: Any) -> Any:
        namespace = tuple(body["namespace"])
        self._namespace(namespace)
        return self._page([path[-1] for path in self.tables if path[:-1] == namespace], body, "tables")

    def table_exists(self, body: Any) -> Any:
        return {"exists": (*body["namespace"], body["name"]) in self.tables}

    def get_table(self, body: Any) -> Any:
        path = (*body["namespace"], body["name"])
        table = self._table(path)
        if path in self.not_lance:
            raise Refused(HTTPStatus.BAD_REQUEST, f"{table['location']} does not follow the Lance table format")
        return {"name": path[-1], "namespace": list(path[:-1]), "managedBy": "storage", **table}

    def create_table(self, body: Any) -> Any:
        if "fields" not in (body.get("schema") or {}):
            raise Refused(HTTPStatus.BAD_REQUEST, "schema is required")
        location = body.get("location") or "/".join((self.root, *body["namespace"], f"{body['name']}.lance"))
        return self.register_table({**body, "location": location})

    def register_table(self, body: Any) -> Any:
        path = (*body["namespace"], body["name"])
        self._namespace(path[:-1])
        if path in self.tables:
            raise Refused(self.taken, f"the table {path} exists")
        self.tables[path] = {"location": body["location"], "properties": dict(body.get("properties") or {})}
        return self.get_table(body)

    def alter_table(self, body: Any) -> Any:
        table = self._table((*body["namespace"], body["name"]))
        table["properties"] = _altered(table["properties"], body)
        return self.get_table(body)

    def drop_table(self, body: Any) -> Any:
        path = (*body["namespace"], body["name"])
        self._table(path)
        del self.tables[path]
        return {}

    def _namespace(self, path: Path) -> dict[str, str]:
        if path not in self.namespaces:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no namespace {path}")
        return self.namespaces[path]

    def _table(self, path: Path) -> dict[str, Any]:
        if path not in self.tables:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no table {path}")
        return self.tables[path]

    def _page(self, names: list[str], body: Any, items: str) -> Any:
        ordered = [name for name in sorted(names) if name > (body.get("pageToken") or "")]
        size = min(body.get("pageSize") or self.page_size, self.page_size)
        more = len(ordered) > size
        return {items: ordered[:size], "nextPageToken": ordered[size - 1] if more else None}


def _altered(properties: dict[str, str], body: Any) -> dict[str, str]:
    removals = body.get("removals") or []
    return {key: value for key, value in {**properties, **(body.get("updates") or {})}.items() if key not in removals}


class GeneralRestStub:
    """The server on a port of its own, as a context manager. ``calls`` are the operations that it was asked for, in order."""

    def __init__(self) -> None:
        self.world = World()
        self.calls: list[str] = []
        #: an answer ``(status, headers, body)`` in place of an operation's own
        self.instead: Callable[[str, Any], tuple[int, dict[str, str], str] | None] = lambda operation, body: None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, operation: str, body: Any, token: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of one request."""
        with self._lock:
            self.calls.append(operation)
            instead = self.instead(operation, body)
            if instead is not None:
                return instead
            try:
                if operation not in OPERATIONS:
                    raise Refused(HTTPStatus.NOT_ACCEPTABLE, f"{operation} is not supported")
                inside = tuple(body.get("namespace") or body.get("parent") or ())
                if token == "Bearer limited" and inside in self.world.denied:
                    raise Refused(HTTPStatus.FORBIDDEN, f"{inside} is not for you")
                snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).strip("_")
                return 200, {}, json.dumps(getattr(self.world, snake)(body))
            except Refused as refused:
                problem = {
                    "type": "about:blank",
                    "title": refused.status.phrase,
                    "status": refused.status,
                    "detail": refused.detail,
                }
                return refused.status, {"Content-Type": "application/problem+json"}, json.dumps(problem)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(KeepAliveHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                status, headers, text = stub.answer(self.path.strip("/"), body, self.headers.get("Authorization", ""))
                self.respond(status, text.encode(), headers)

        return Handler
