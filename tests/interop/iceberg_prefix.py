"""A relay that removes the warehouse from the paths of an Iceberg REST catalog.

``lance-namespace-impls`` uses the warehouse's name as the prefix if the server gives none. Iceberg's own server gives none, and
answers 400 to such paths; hosted services accept them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests


@contextmanager
def prefix_relay(url: str, prefix: str) -> Iterator[str]:
    """Relay requests to the catalog at ``url``, and yield the relay's address."""

    class Handler(BaseHTTPRequestHandler):
        def _relay(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.replace(f"/v1/{prefix}/", "/v1/", 1)
            response = requests.request(
                self.command, url + path, data=body, timeout=60, headers={"Content-Type": "application/json"}
            )
            self.send_response(response.status_code)
            self.send_header("Content-Type", response.headers.get("Content-Type", "application/json"))
            self.send_header("Content-Length", str(len(response.content)))
            self.end_headers()
            self.wfile.write(response.content)

        do_GET = do_HEAD = do_POST = do_DELETE = _relay

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the parameter of http.server
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
