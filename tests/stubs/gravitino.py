"""A Lance REST server that answers as Gravitino's does, by its sources; Gravitino itself was not run.

Each fact names its file and lines in https://github.com/apache/gravitino at commit f461aa31 (2026-08-22), below
``lance/lance-rest-server/src/main/java/org/apache/gravitino/lance`` (SERVER) or
``lance/lance-common/src/main/java/org/apache/gravitino/lance/common`` (COMMON). Nothing of them is copied.

- The routes are below ``/lance`` (SERVER ``LanceRESTService.java`` 56, 99). The mapper of errors is outside of the package that is
  searched for resources (58, 83), so an unknown route is a 404 without the protocol's body.
- Ids are split at the delimiter, and empty names are dropped (COMMON ``ops/gravitino/ObjectIdentifier.java`` 37-51): ``$`` is the root.
- A page token is the number of the next name; the default page has 1,000 names (COMMON ``ops/gravitino/PageUtil.java`` 34-71).
- Statuses and codes of errors, with the stack trace as detail: SERVER ``service/LanceExceptionMapper.java`` 68-134. A refused
  credential has the status as code: SERVER ``service/LanceAuthenticationFilter.java`` 54-92.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fixtures.http_handler import KeepAliveHandler

Properties = dict[str, str]
_PREFIX = ["", "lance", "v1"]
_PAGE = 1000
_STATUS = {1: 404, 4: 404, 2: 409, 5: 409, 0: 406, 13: 400}


class Refused(Exception):
    """An error of the protocol. SERVER ``service/LanceExceptionMapper.java`` 91-125 has the status of each code."""

    def __init__(self, code: int, error: str) -> None:
        super().__init__(error)
        self.status = _STATUS[code]
        self.code = code


@dataclass
class Schema:
    """A namespace of the second level, and its tables' properties."""

    properties: Properties
    tables: dict[str, Properties] = field(default_factory=dict)


@dataclass
class LakehouseCatalog:
    """A namespace of the first level."""

    properties: Properties
    schemas: dict[str, Schema] = field(default_factory=dict)


@dataclass
class Metalake:
    """What the server has. ``hidden`` are names of catalogs of another kind."""

    catalogs: dict[str, LakehouseCatalog] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)

    # COMMON ``ops/gravitino/GravitinoLanceNamespaceWrapper.java`` 156-171
    def catalog(self, name: str) -> LakehouseCatalog:
        if name in self.hidden:
            raise Refused(1, f"Catalog is not a lakehouse catalog: {name}")
        if name not in self.catalogs:
            raise Refused(1, f"Catalog not found: {name}")
        return self.catalogs[name]

    def schema(self, path: list[str]) -> Schema:
        schemas = self.catalog(path[0]).schemas
        if path[1] not in schemas:
            raise Refused(1, f"Schema not found: {path[1]}")
        return schemas[path[1]]

    # COMMON ``ops/gravitino/GravitinoLanceNameSpaceOperations.java`` 86-131
    def list_namespaces(self, path: list[str], _: Any) -> dict[str, Any]:
        if len(path) > 2:
            raise Refused(13, f"Expected at most 2-level namespace but got: {len(path)}")
        if len(path) == 2:
            self.schema(path)
        return {"namespaces": [] if len(path) == 2 else sorted(self.catalog(path[0]).schemas if path else self.catalogs)}

    # The same file, 449-468.
    def list_tables(self, path: list[str], _: Any) -> dict[str, Any]:
        if len(path) != 2:
            raise Refused(13, f"Expected 2-level namespace but got: {len(path)}")
        return {"tables": sorted(self.schema(path).tables)}

    # The same file, 133-162.
    def describe_namespace(self, path: list[str], _: Any) -> dict[str, Any]:
        self._require_namespace(path)
        return {"properties": self.catalog(path[0]).properties if len(path) == 1 else self.schema(path).properties}

    # The same file, 164-190, 236-339.
    def create_namespace(self, path: list[str], body: Any) -> dict[str, Any]:
        self._require_namespace(path)
        mode, properties = (body.get("mode") or "create").lower(), dict(body.get("properties") or {})
        if path[0] in self.hidden and len(path) == 1:
            raise Refused(2, f"Catalog already exists but is not a lakehouse catalog: {path[0]}")
        siblings: dict[str, Any] = self.catalogs if len(path) == 1 else self.catalog(path[0]).schemas
        if path[-1] not in siblings:
            siblings[path[-1]] = LakehouseCatalog(properties) if len(path) == 1 else Schema(properties)
        elif mode == "create":
            raise Refused(2, f"{'Catalog' if len(path) == 1 else 'Schema'} already exists: {path[-1]}")
        elif mode == "overwrite":
            # The properties are altered: nothing below the namespace is lost.
            siblings[path[-1]].properties = properties
        return {"properties": siblings[path[-1]].properties}

    # The same file, 341-402: a namespace that is not empty is invalid input.
    def drop_namespace(self, path: list[str], body: Any) -> dict[str, Any]:
        self._require_namespace(path)
        siblings: dict[str, Any] = self.catalogs if len(path) == 1 else self.catalog(path[0]).schemas
        kind = "Catalog" if len(path) == 1 else "Schema"
        if path[-1] not in siblings:
            if (body.get("mode") or "fail").lower() == "fail":
                raise Refused(1, f"{kind} not found: {path[-1]}")
            return {}
        found = siblings[path[-1]]
        if (found.schemas if len(path) == 1 else found.tables) and (body.get("behavior") or "restrict").lower() != "cascade":
            raise Refused(13, f"{kind} {path[-1]} is not empty")
        del siblings[path[-1]]
        return {}

    # COMMON ``ops/gravitino/GravitinoLanceTableOperations.java`` 107-156
    def describe_table(self, path: list[str], _: Any) -> dict[str, Any]:
        properties = self._table(path)
        return {
            "metadata": properties, "properties": properties, "location": properties["location"], "version": None,
            "storage_options": {}, "managed_versioning": False,
        }  # fmt: skip

    # The same file, 214-232.
    def declare_table(self, path: list[str], body: Any) -> dict[str, Any]:
        created = self._create(path, body, {"lance.declared": "true"})
        return {"location": created["location"], "storage_options": {}, "properties": created, "managed_versioning": False}

    # The same file, 234-263; SERVER ``service/rest/LanceTableOperations.java`` 183-210.
    def register_table(self, path: list[str], body: Any) -> dict[str, Any]:
        if (body.get("mode") or "create").lower() == "overwrite":
            self.schema(_table_id(path)).tables.pop(path[2], None)
        created = self._create(path, body, {"lance.register": "true"})
        return {"location": created["location"], "properties": created}

    # The same file, 265-310: a table that is not external is refused.
    def deregister_table(self, path: list[str], _: Any) -> dict[str, Any]:
        properties = self._table(path)
        if properties.get("external") != "true":
            raise Refused(0, f"deregisterTable only supports external tables, but table {path[-1]} is managed")
        del self.schema(path).tables[path[2]]
        return {"id": path, "location": properties["location"], "properties": properties}

    def _require_namespace(self, path: list[str]) -> None:
        if not 0 < len(path) <= 2:
            raise Refused(13, f"Expected at most 2-level and at least 1-level namespace but got: {len(path)}")

    def _table(self, path: list[str]) -> Properties:
        tables = self.schema(_table_id(path)).tables
        if path[2] not in tables:
            raise Refused(4, f"Table not found: {path[2]}")
        return tables[path[2]]

    # The same file, 158-212. The location: ``catalogs/catalog-lakehouse-generic`` below ``org/apache/gravitino/catalog/lakehouse``,
    # ``generic/GenericCatalogOperations.java`` 239 and 291, ``lance/LanceTableOperations.java`` 251-253.
    def _create(self, path: list[str], body: Any, more: Properties) -> Properties:
        schema = self.schema(_table_id(path))
        if path[2] in schema.tables:
            raise Refused(5, f"Table already exists: {path[2]}")
        parent = schema.properties.get("location") or self.catalog(path[0]).properties.get("location")
        location = body.get("location") or (parent and f"{parent.rstrip('/')}/{path[2]}/")
        if not location:
            raise Refused(13, "Table location must be specified")
        fixed = {"location": location, "format": "lance", "external": "true", "lance.creation-mode": "CREATE"}
        schema.tables[path[2]] = {**(body.get("properties") or {}), **fixed, **more}
        return schema.tables[path[2]]


def _table_id(path: list[str]) -> list[str]:
    if len(path) != 3:
        raise Refused(13, f"Expected at 3-level namespace but got: {len(path)}")
    return path


# SERVER ``service/rest/LanceNamespaceOperations.java`` 62-190, ``service/rest/LanceTableOperations.java`` 83-229
_ROUTES = {
    ("GET", "namespace", "list"): Metalake.list_namespaces,
    ("GET", "namespace", "table/list"): Metalake.list_tables,
    ("POST", "namespace", "describe"): Metalake.describe_namespace,
    ("POST", "namespace", "create"): Metalake.create_namespace,
    ("POST", "namespace", "drop"): Metalake.drop_namespace,
    ("POST", "table", "describe"): Metalake.describe_table,
    ("POST", "table", "declare"): Metalake.declare_table,
    ("POST", "table", "register"): Metalake.register_table,
    ("POST", "table", "deregister"): Metalake.deregister_table,
}


class GravitinoStub(ThreadingHTTPServer):
    """The server on a free port of loopback. With ``token``, requests without this bearer token are refused."""

    token: str | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.metalake = Metalake()
        self.lock = threading.Lock()
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/lance"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(KeepAliveHandler):
    server: GravitinoStub

    def _answer(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        parts = url.path.split("/")
        kind, text_id, action = (*parts[3:5], "/".join(parts[5:])) if len(parts) > 5 else ("", "", "")
        operation = _ROUTES.get((self.command, kind, action)) if parts[:3] == _PREFIX else None
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        if self.server.token is not None and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._send(401, {"code": 401, "error": "Authentication failed", "detail": "", "instance": ""})
        elif operation is None:
            self._send(404, None)
        else:
            instance = unquote(text_id)
            path = [name for name in instance.split(query.get("delimiter", "$")) if name]
            try:
                with self.server.lock:
                    self.server.requests.append(f"{kind} {action} {'.'.join(path)}")
                    response = operation(self.server.metalake, path, json.loads(text or b"{}"))
                self._send(200, _page(response, query))
            except Refused as error:
                self._send(
                    error.status, {"code": error.code, "error": str(error), "detail": "a stack trace", "instance": instance}
                )

    def _send(self, status: int, body: Any) -> None:
        if body is None:
            self.respond(status, b"<html>HTTP ERROR 404 Not Found</html>", {"Content-Type": "text/html"})
        else:
            self.respond(status, json.dumps(body).encode())

    do_GET = do_POST = _answer


def _page(response: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
    for items in ("namespaces", "tables"):
        if items in response:
            start, size = int(query.get("page_token") or 0), int(query.get("limit") or _PAGE)
            if size < 1 or start < 0 or start > len(response[items]):
                raise Refused(13, "Page token out of range")
            end = start + size
            return {items: response[items][start:end], "page_token": str(end) if end < len(response[items]) else None}
    return response
