"""A Lance namespace of another project behind the Lance REST protocol. Runs in the environment of that project, alone.

The first line of stdin has ``impl`` and ``properties`` of ``lance_namespace.connect``. The first line of stdout is the port. At the
end of stdin the process ends, and prints how many errors had no code.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import lance_namespace
from lance_namespace.errors import LanceNamespaceError

_NAMESPACE = {name: f"{name}_namespace" for name in ("create", "describe", "drop")} | {"exists": "namespace_exists"}
_TABLE = {name: f"{name}_table" for name in ("declare", "describe", "drop", "deregister", "register", "rename")} | {
    "exists": "table_exists"
}
_STATUS = {0: 406, **dict.fromkeys((1, 4), 404), **dict.fromkeys((2, 3, 5, 14, 19), 409), 13: 400, 15: 403, 16: 401, 17: 503}
#: The package's own exceptions, with their codes.
_EXCEPTIONS = {
    "NamespaceNotFoundException": 1, "NamespaceAlreadyExistsException": 2, "TableNotFoundException": 4,
    "TableAlreadyExistsException": 5, "InvalidInputException": 13,
}  # fmt: skip
#: Texts of errors without a code, with the codes for namespaces and for tables.
_TEXTS = (
    (re.compile(r"not empty|non-empty"), 3, 3),
    (re.compile(r"already exists"), 2, 5),
    (re.compile(r"does not exist|not found"), 1, 4),
    (
        re.compile(r"[Ii]nvalid .*identifier|requires exactly|[Cc]annot drop root|not a Lance table|not supported for this"),
        13,
        13,
    ),
)


class Bridge:
    """Calls of the namespace by route. Thread-safe if the namespace is: calls are made one after the other."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace
        self._lock = threading.Lock()
        self.errors_without_code = 0

    def answer(self, route: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and body of the response."""
        operation, fields = _parse_route(route, query, body)
        if operation is None:
            return 404, {"error": "no such route", "code": 0}
        request_type = getattr(lance_namespace, "".join(word.title() for word in operation.split("_")) + "Request", None)
        if request_type is None:
            request_type = lance_namespace.ListTablesRequest
        try:
            with self._lock:
                response = getattr(self._namespace, operation)(request_type(**fields))
        except LanceNamespaceError as error:
            return _STATUS.get(int(error.code), 500), {"error": str(error), "code": int(error.code)}
        except NotImplementedError as error:
            return 406, {"error": str(error), "code": 0}
        except Exception as error:  # noqa: BLE001 - every failure of the namespace is a response
            self.errors_without_code += 1
            about_table = "table" in operation and operation != "list_tables"
            code = _EXCEPTIONS.get(type(error).__name__) or _code_of(str(error), about_table=about_table)
            return _STATUS.get(code, 500), {"error": f"{type(error).__name__}: {error}", "code": code}
        return 200, json.loads(response.model_dump_json(exclude_none=True)) if response is not None else {}


def _parse_route(route: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    paging: dict[str, Any] = {key: query[key][0] for key in ("limit", "page_token") if key in query}
    parts = route.strip("/").split("/")[1:]
    kind, path, action = parts[0], parts[1] if len(parts) > 1 else "", "/".join(parts[2:])
    path = [] if unquote(path) in ("", "$") else unquote(path).split("$")
    if kind == "namespace" and action in ("list", "table/list"):
        return ("list_namespaces" if action == "list" else "list_tables"), {"id": path, **paging}
    if kind == "table" and not action:
        return "list_all_tables", paging
    operation = {"namespace": _NAMESPACE, "table": _TABLE}.get(kind, {}).get(action)
    return operation, {**body, "id": path}


def _code_of(text: str, *, about_table: bool) -> int:
    """Return the code that the text of an error names; 18 if it names none."""
    for pattern, namespace_code, table_code in _TEXTS:
        if pattern.search(text):
            return table_code if about_table else namespace_code
    return 18


def main() -> None:
    start = json.loads(sys.stdin.readline())
    # Importing the module registers its impls.
    __import__("lance_namespace_impls")
    bridge = Bridge(lance_namespace.connect(start["impl"], start["properties"]))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            status, content = bridge.answer(url.path, parse_qs(url.query), json.loads(body or b"{}"))
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _respond

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the parameter of http.server
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    print(bridge.errors_without_code, flush=True)


if __name__ == "__main__":
    main()
