"""The REST protocol in front of any Python namespace, for ``federator conformance --uri``. Runs in a client's environment, alone.

The first line of standard input has ``impl`` and ``properties`` of ``lance_namespace.connect``. The first line of standard output is
the address. Nothing is corrected: the codes are those of the namespace's own exceptions, and 18 for an exception without a code.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import lance_namespace

from tests.interop.namespace_process import MODULES

OPERATIONS = {
    ("GET", "namespace", "list"): "list_namespaces",
    ("GET", "namespace", "table/list"): "list_tables",
    ("POST", "namespace", "describe"): "describe_namespace",
    ("POST", "namespace", "exists"): "namespace_exists",
    ("POST", "namespace", "create"): "create_namespace",
    ("POST", "namespace", "drop"): "drop_namespace",
    ("POST", "table", "describe"): "describe_table",
    ("POST", "table", "exists"): "table_exists",
    ("POST", "table", "declare"): "declare_table",
    ("POST", "table", "register"): "register_table",
    ("POST", "table", "deregister"): "deregister_table",
    ("POST", "table", "rename"): "rename_table",
    ("POST", "table", "drop"): "drop_table",
}
#: exceptions of lance-namespace-impls, which have no codes
CODES = {
    "NamespaceNotFoundException": 1, "NamespaceAlreadyExistsException": 2, "TableNotFoundException": 4,
    "TableAlreadyExistsException": 5, "InvalidInputException": 13, "NotImplementedError": 0,
}  # fmt: skip
STATUSES = {0: 406, 1: 404, 2: 409, 3: 409, 4: 404, 5: 409, 13: 400, 14: 409, 15: 403, 16: 401, 17: 503, 21: 429}


def main() -> None:
    start = json.loads(sys.stdin.readline())
    if start["impl"] in MODULES:
        __import__(MODULES[start["impl"]])
    namespace = lance_namespace.connect(start["impl"], start["properties"])

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            parts = urlsplit(self.path)
            _, _, kind, identifier, operation = (*parts.path.split("/", 4), "", "", "")[:5]
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            delimiter = query.pop("delimiter", "$")
            path = [name for name in unquote(identifier).split(delimiter) if name]
            name = OPERATIONS.get((self.command, kind, operation))
            if name is None:
                self._answer(404, {"error": "no such route", "code": 0})
                return
            request_type = getattr(lance_namespace, "".join(word.title() for word in name.split("_")) + "Request")
            try:
                response = getattr(namespace, name)(request_type(**{**query, **body, "id": path}))
            except Exception as error:  # noqa: BLE001 - every failure of the namespace is a response
                code = int(getattr(error, "code", CODES.get(type(error).__name__, 18)))
                self._answer(STATUSES.get(code, 500), {"error": f"{type(error).__name__}: {error}", "code": code})
                return
            dumped = getattr(response, "model_dump", None)
            self._answer(200, dumped(mode="json", by_alias=True, exclude_none=True) if dumped else None)

        def _answer(self, status: int, body: object) -> None:
            content = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the parameter of http.server
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
