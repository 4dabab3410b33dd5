"""The stub over HTTP, on loopback and in a thread of its own."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http.cookies import SimpleCookie
from http.server import ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fixtures.http_handler import KeepAliveHandler
from tests.stubs.unity.world import Json, Query, Refused, World

API = "/api/2.1/unity-catalog"
#: seconds between the check for a table of the same name and its creation
_GAP = 0.003
_PLAIN = {"Content-Type": "text/plain; charset=utf-8"}


@dataclass(frozen=True)
class _Calls:
    create: Callable[[World, str, str | None], Json]
    read: Callable[[World, str], Json]
    list: Callable[[World, Query], Json]
    drop: Callable[[World, str, Query], None]


_CALLS = {
    "catalogs": _Calls(
        lambda world, raw, principal: world.create_catalog(json.loads(raw), principal),
        World.catalog, World.list_catalogs, World.drop_catalog,
    ),
    "schemas": _Calls(
        lambda world, raw, principal: world.create_schema(json.loads(raw), principal),
        World.schema, World.list_schemas, World.drop_schema,
    ),
    "tables": _Calls(
        World.create_table, World.table, World.list_tables, lambda world, full, _: world.drop_table(full),
    ),
}  # fmt: skip

#: status, headers and body
Scripted = tuple[int, dict[str, str], str]


class UnityStub:
    """``with UnityStub() as stub``: a server at ``stub.url``, whose state is ``stub.world``; ``tls`` makes it an https server.

    ``seen`` holds every request as ``METHOD path?query``; what is put into ``script`` is answered first, one to a request.
    """

    def __init__(self, world: World | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.world = world or World()
        self.seen: list[str] = []
        self.script: deque[Scripted] = deque()
        self.lock = threading.Lock()
        self.stopped = False
        handler = type("BoundHandler", (_Handler,), {"stub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def meets(self, method: str, path: str, raw: str) -> bool:
        """Whether a table to create is there when its request arrives. The server looks then, and creates a moment later."""
        if method != "POST" or not path.endswith("/tables"):
            return True
        body = json.loads(raw)
        with self.lock:
            existed = tuple(body.get(key) for key in ("catalog_name", "schema_name", "name")) in self.world.tables
        time.sleep(_GAP)
        return existed

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(KeepAliveHandler):
    stub: UnityStub
    # One packet for head and body.
    wbufsize = -1

    def handle_any(self) -> None:
        if self.stub.stopped:
            # Connections that are kept alive outlive the server that accepts them: they end without an answer.
            self.close_connection = True
            return
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        existed = self.stub.meets(self.command, self.path, raw)
        with self.stub.lock:
            self.stub.seen.append(f"{self.command} {self.path}")
            if self.stub.script:
                status, headers, text = self.stub.script.popleft()
                self._send(status, text, **headers)
                return
            try:
                self._answer(raw, raced=not existed)
            except Refused as error:
                self._send(error.status, _json(error.body))

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any

    def _answer(self, raw: str, *, raced: bool) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        noun, _, name = unquote(address.path.removeprefix(API + "/")).partition("/")
        principal = self._principal()
        if noun == "permissions" and self.command == "GET":
            self._send(200, _json(self.stub.world.permissions(name)))
            return
        if noun == "metastore_summary" and self.command == "GET":
            self._send(200, _json({"metastore_id": self.stub.world.metastore_id}))
            return
        if noun == "temporary-table-credentials" and self.command == "POST":
            self._send(200, _json(self.stub.world.temporary_credentials(json.loads(raw))))
            return
        if noun not in _CALLS:
            raise Refused(404, "NOT_FOUND", "")
        calls, world = _CALLS[noun], self.stub.world
        if self.command == "PATCH" and noun == "schemas":
            self._send(200, _json(world.update_schema(name, json.loads(raw))))
        elif self.command == "POST" and noun == "tables":
            self._send(200, _json(world.create_table(raw, principal, raced=raced)))
        elif self.command == "POST":
            self._send(200, _json(calls.create(world, raw, principal)))
        elif self.command == "GET":
            self._send(200, _json(calls.read(world, name) if name else calls.list(world, query)))
        elif self.command == "DELETE":
            calls.drop(world, name, query)
            self._send(200, "200 OK", **_PLAIN)
        else:
            # Not in its own error format, but in its web framework's.
            self._send(405, "Status: 405\nDescription: Method Not Allowed\n", **_PLAIN)

    def _principal(self) -> str | None:
        token = self.stub.world.token
        if token is None:
            return None
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("UC_TOKEN")
        shown = self.headers.get("Authorization", f"Bearer {cookie.value}" if cookie else "")
        if not shown:
            raise Refused(401, "UNAUTHENTICATED", "No authorization found.")
        if shown != f"Bearer {token}":
            raise Refused(401, "UNAUTHENTICATED", "Invalid access token.")
        return "admin"

    def _send(self, status: int, text: str, **headers: str) -> None:
        self.respond(status, text.encode(), headers)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
