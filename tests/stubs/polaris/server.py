"""Polaris over HTTP on loopback: routes, sign-in, and faults that a test orders."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fixtures.http_handler import KeepAliveHandler
from tests.stubs.polaris.answers import Answer, Refusal, no_route
from tests.stubs.polaris.state import State

CLIENT = ("root", "s3cr3t")
_TOKENS = "/api/catalog/v1/oauth/tokens"


@dataclass(frozen=True)
class Request:
    """One request: ``path`` as it was sent, percent-encoded; ``query`` decoded."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body))


@dataclass
class Fault:
    """What a test wants instead of the right answer, or before it. ``path`` is searched in the decoded path and parent."""

    method: str
    path: str
    status: int | None = None
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: how often; None is always
    times: int | None = None
    #: called before the request is answered
    before: Callable[[], object] = lambda: None

    def takes(self, request: Request) -> bool:
        where = unquote(request.path) + (f"?parent={request.query['parent']}" if "parent" in request.query else "")
        return self.times != 0 and request.method == self.method and re.search(self.path, where) is not None


class PolarisStub:
    """A server of a test's own. Thread-safe; a context manager. ``requests`` are those that were answered, in their order."""

    def __init__(self, *, paging: bool = False, token_seconds: int = 3600) -> None:
        self.state = State(paging=paging)
        self.token_seconds = token_seconds
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self._tokens: dict[str, float] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server; connections that are open answer no more. Harmless twice."""
        self.faults = [Fault(method, "", 503) for method in ("GET", "POST", "DELETE", "HEAD", "PUT")]
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # What tests order

    def answer(self, method: str, path: str, status: int, text: str = "", **more: Any) -> Fault:
        """Answers requests whose path matches the expression with something else."""
        self.faults.append(Fault(method, path, status, text, **more))
        return self.faults[-1]

    def forbid(self, method: str, path: str, operation: str) -> None:
        """Denies as PolarisAuthorizerImpl of 1.4.1 does."""
        message = (
            "Principal 'root' with activated PrincipalRoles '[]' and activated grants via '[]' "
            f"is not authorized for op {operation}"
        )
        self.answer(method, path, 403, Refusal(403, "ForbiddenException", message).answer.text)

    def before(self, method: str, path: str, do: Callable[[], object], times: int = 1) -> None:
        """Does something just before the first request whose path matches is answered."""
        self.faults.append(Fault(method, path, before=do, times=times))

    def revoke_tokens(self) -> None:
        """No token that was given is valid any more."""
        self._tokens.clear()

    # Answering

    def respond(self, request: Request) -> tuple[Answer, Mapping[str, str]]:
        with self.state.lock:
            self.requests.append(request)
            fault = next((fault for fault in self.faults if fault.takes(request)), None)
            if fault:
                fault.times = None if fault.times is None else fault.times - 1
                fault.before()
                if fault.status is not None:
                    return _Raw(fault.status, fault.text), fault.headers
            try:
                return self._right(request), {}
            except Refusal as refusal:
                return refusal.answer, {}

    def _right(self, request: Request) -> Answer:
        if request.path == _TOKENS and request.method == "POST":
            return self._token(request.form)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._tokens.get(token, 0) <= time.monotonic():
            raise Refusal(401)
        return _route(self.state, request)

    def _token(self, form: Mapping[str, str]) -> Answer:
        if (form.get("client_id"), form.get("client_secret")) != CLIENT:
            error = {"error": "unauthorized_client", "error_description": "The client is not authorized", "error_uri": None}
            return Answer(401, error)
        token = f"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.{secrets.token_urlsafe(12)}"
        self._tokens[token] = time.monotonic() + self.token_seconds
        return Answer(200, {
            "access_token": token, "token_type": "bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "expires_in": self.token_seconds,
        })  # fmt: skip


class _Raw(Answer):
    """A body as it is."""

    @property
    def text(self) -> str:
        return str(self.body)


def _route(state: State, request: Request) -> Answer:
    parts = [unquote(part) for part in request.path.split("/")[1:]]
    match request.method, parts:
        case "POST", ["api", "management", "v1", "catalogs"]:
            return state.create_catalog(request.json)
        case "GET", ["api", "management", "v1", "catalogs"]:
            return state.list_catalogs()
        case "DELETE", ["api", "management", "v1", "catalogs", name]:
            return state.drop_catalog(name)
        case "GET", ["api", "management", "v1", "catalogs", name, "catalog-roles"]:
            return state.list_roles(name)
        case "GET", ["api", "management", "v1", "catalogs", name, "catalog-roles", role, "grants"]:
            return state.list_grants(name, role)
        case "GET", ["api", "catalog", "v1", "config"]:
            return state.config(request.query.get("warehouse"))
        case _, ["api", "catalog", "v1", prefix, "namespaces", *rest]:
            return _iceberg(state, request, prefix, rest)
        case _, ["api", "catalog", "polaris", "v1", prefix, "namespaces", namespace, "generic-tables", *rest]:
            return _generic(state, request, prefix, _levels(namespace), rest)
    raise no_route()


def _iceberg(state: State, request: Request, prefix: str, rest: list[str]) -> Answer:
    match request.method, rest:
        case "GET", []:
            return state.list_namespaces(prefix, _levels(request.query.get("parent", "")), request.query)
        case "POST", []:
            return state.create_namespace(prefix, request.json)
        case "GET", [namespace]:
            return state.load_namespace(prefix, _levels(namespace))
        case "HEAD", [namespace]:
            return state.namespace_exists(prefix, _levels(namespace))
        case "DELETE", [namespace]:
            return state.drop_namespace(prefix, _levels(namespace))
        case "POST", [namespace, "properties"]:
            return state.update_namespace(prefix, _levels(namespace), request.json)
        case "GET", [namespace, "tables"]:
            return state.list_iceberg(prefix, _levels(namespace))
        case "POST", [namespace, "tables"]:
            return state.create_iceberg(prefix, _levels(namespace), request.json)
        case "HEAD", [namespace, ("tables" | "views") as kind, name]:
            return state.iceberg_exists(prefix, _levels(namespace), name, kind.removesuffix("s"))
        case "GET", [namespace, "tables", name]:
            return state.load_iceberg(prefix, _levels(namespace), name)
    raise no_route()


def _generic(state: State, request: Request, prefix: str, namespace: tuple[str, ...], rest: list[str]) -> Answer:
    match request.method, rest:
        case "GET", []:
            return state.list_tables(prefix, namespace)
        case "POST", []:
            return state.create_table(prefix, namespace, request.json)
        case "GET", [name]:
            return state.load_table(prefix, namespace, name)
        case "DELETE", [name]:
            return state.drop_table(prefix, namespace, name)
    raise no_route()


def _levels(text: str) -> tuple[str, ...]:
    return tuple(text.split("\x1f")) if text else ()


def _handler(stub: PolarisStub) -> type[BaseHTTPRequestHandler]:
    class Handler(KeepAliveHandler):
        # One write an answer.
        wbufsize = -1

        def answer(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            query = dict(parse_qsl(url.query, keep_blank_values=True))
            answer, headers = stub.respond(Request(self.command, url.path, query, dict(self.headers), body))
            self.respond(answer.status, answer.text.encode(), headers)

        do_GET = do_POST = do_DELETE = do_PUT = do_HEAD = answer

    return Handler
