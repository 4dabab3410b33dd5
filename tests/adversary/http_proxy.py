"""A lying proxy for HTTP, between a client and a server on loopback.

A call's name is the operation for AWS's JSON protocol (``GetTables``), else ``METHOD /path`` without the query.
"""

from __future__ import annotations

import http.client
import itertools
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.adversary.lies import (
    EACH,
    Action,
    Cut,
    Drip,
    Edit,
    Elsewhere,
    Endless,
    Hang,
    Lose,
    Op,
    Raise,
    Refuse,
    Repeat,
    Reset,
    Send,
    Stale,
)
from tests.adversary.proxy import Proxy, address, resetting
from tests.fixtures.http_handler import KeepAliveHandler

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding", "proxy-connection"}
_TIMEOUT = 60


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def call(self) -> str:
        for name, value in self.headers:
            if name.lower() == "x-amz-target":
                return value.rpartition(".")[2]
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpProxy(Proxy):
    """``url`` takes the place of the target's."""

    def __init__(self, target: str) -> None:
        self._first: dict[tuple[str, str, bytes], Response] = {}
        self._of_call: dict[str, Response] = {}
        self._tokens = itertools.count(1)
        super().__init__(target)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        _Handler(connection, ("127.0.0.1", 0), self)  # type: ignore[arg-type]

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        """The real response of a server."""
        upstream = http.client.HTTPConnection(*target, timeout=_TIMEOUT)
        try:
            headers = {name: value for name, value in request.headers if name.lower() not in _HOP}
            upstream.request(request.method, request.path, request.body or None, headers)
            got = upstream.getresponse()
            returned_headers = {name: value for name, value in got.getheaders() if name.lower() not in _HOP}
            response = Response(got.status, returned_headers, got.read())
        finally:
            upstream.close()
        self._first.setdefault((request.method, request.path, request.body), response)
        self._of_call.setdefault(request.call, response)
        return response

    def again(self, request: Request, action: Endless) -> Response:
        """The first response that the same call got, with a page token."""
        response = self._of_call.get(request.call) or self.forward(request, self.target)
        token = f"token-{next(self._tokens)}" if action.fresh else "token"
        return replace(response, body=json.dumps({**json.loads(response.body), action.token: token}).encode())

    def first(self, request: Request) -> Response:
        """The first response that the same request got."""
        return self._first.get((request.method, request.path, request.body)) or self.forward(request, self.target)


class _Handler(KeepAliveHandler):
    server: HttpProxy  # type: ignore[assignment]

    def _handle(self) -> None:
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length or 0))
        # A connection that was cut, in the headers or in the body. A server waits for the rest in vain.
        if len(body) < int(length or 0) or (length is None and self.command in {"POST", "PUT", "PATCH"}):
            self._end(reset=True)
            return
        request = Request(self.command, self.path, tuple(self.headers.items()), body)
        proxy = self.server
        action = proxy.script.action(request.call)
        if isinstance(action, Refuse):
            proxy.refuse()
            self._end(reset=True)
        elif isinstance(action, Hang):
            proxy.released.wait(_TIMEOUT)
            self._end(reset=True)
        else:
            self._answer(request, action)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _handle

    def _answer(self, request: Request, action: Action | None) -> None:
        proxy = self.server
        if isinstance(action, Send) and not action.forward:
            response = _sent(action)
        elif isinstance(action, Stale):
            response = proxy.first(request)
        elif isinstance(action, Endless):
            response = proxy.again(request, action)
        else:
            target = address(action.target) if isinstance(action, Elsewhere) else proxy.target
            if isinstance(action, Repeat):
                proxy.forward(request, target)
            response = proxy.forward(request, target)
        if isinstance(action, Lose):
            self._end(reset=True)
            return
        if isinstance(action, Send):
            response = _sent(action)
        elif isinstance(action, Edit):
            body = json.dumps(edited(json.loads(response.body), action)).encode()
            response = Response(response.status, response.headers, body)
        elif isinstance(action, Raise):
            raise TypeError("Raise is for thrift")
        self._write(response, action)

    def _write(self, response: Response, action: Action | None) -> None:
        lines = [f"HTTP/1.1 {response.status} {http.client.responses.get(response.status, '')}"]
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        lines.append(f"Content-Length: {len(response.body)}")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        body = b"" if self.command == "HEAD" else response.body
        if isinstance(action, Drip):
            for byte in head + body:
                if self.server.released.wait(action.pause):
                    break
                self.connection.sendall(bytes([byte]))
        elif isinstance(action, Cut | Reset):
            self.connection.sendall(head + body[: len(body) // 2])
            self._end(reset=isinstance(action, Reset))
        else:
            self.connection.sendall(head + body)

    def _end(self, *, reset: bool) -> None:
        self.close_connection = True
        if reset:
            resetting(self.connection)


def _sent(action: Send) -> Response:
    headers = {"Content-Type": action.content_type}
    if action.retry_after is not None:
        headers["Retry-After"] = action.retry_after
    return Response(action.status, headers, action.body)


def edited(data: Any, edit: Edit) -> Any:
    """``data`` (JSON) with an edit applied, in place where it can be."""
    return _edited(data, edit.path, edit)


def _edited(data: Any, path: tuple[Any, ...], edit: Edit) -> Any:
    if not path:
        return _changed(data, edit)
    step, rest = path[0], path[1:]
    if step is EACH:
        return [_edited(item, rest, edit) for item in data] if isinstance(data, list) else data
    if not isinstance(data, dict) or (step not in data and (rest or edit.op is not Op.SET)):
        return data
    if not rest and edit.op is Op.REMOVE:
        return {key: value for key, value in data.items() if key != step}
    return {**data, step: _edited(data.get(step), rest, edit)}


def _changed(value: Any, edit: Edit) -> Any:
    if edit.op is Op.SET:
        return edit.value
    if edit.op is Op.UPPER:
        return value.upper() if isinstance(value, str) else [_changed(item, edit) for item in value]
    return {Op.CLEAR: [], Op.DOUBLE: [*value, *value], Op.SHORTEN: value[:-1]}[edit.op]
