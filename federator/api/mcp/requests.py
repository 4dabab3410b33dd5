"""Requests of tools to the API's own routes, within the process.

A tool has no other way to data. So it returns the view that the route returns, after the same checks of role and scopes, and a write
makes the same audit events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI
from starlette.types import ASGIApp, Message

from federator.api import problems
from federator.api.cursor_seal import CursorSeal
from federator.api.dependencies import HOLD_SHARE, MAX_SIZE_KEY
from federator.api.mcp import plan_question
from federator.api.principals import Principal
from federator.api.routes import datasets, explain, history, mirrors, plans, runs, search, sources, table_details, tree
from federator.api.shares import ThreadShares
from federator.connector import FederatorError
from federator.data.spool import Spool
from federator.settings import Settings
from federator.store import Index

#: largest result of a tool, in bytes of JSON
MAX_RESULT_BYTES = 400_000
_SIZE_HINT = "use a smaller limit; a whole plan is on the page of the service"


class RequestFailed(FederatorError):
    """A route responded with a problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(problem["detail"], hint=problem.get("hint"))
        self.status = status


def build_routes(index: Index, settings: Settings, shares: ThreadShares, spool: Spool) -> FastAPI:
    """Return an app with the routes that the tools use, without middleware: its caller has authenticated the principal.

    ``shares`` and ``spool`` are those of the process.
    """
    # A redirect would be a response without JSON.
    app = FastAPI(openapi_url=None, redirect_slashes=False, dependencies=[HOLD_SHARE])
    app.state.index, app.state.settings, app.state.cursor_seal = index, settings, CursorSeal(index)
    app.state.thread_shares, app.state.spool = shares, spool
    problems.install_problem_handlers(app)
    for module in (datasets, explain, history, mirrors, plan_question, plans, runs, search, sources, table_details, tree):
        app.include_router(module.router)
    return app


@dataclass(frozen=True, slots=True)
class ApiRequests:
    """Sends requests to ``build_routes``."""

    routes: ASGIApp

    async def get(
        self, principal: Principal, path: str, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """Return the JSON of a GET. ``path`` is not percent-encoded; parameters that are None are left out.

        Raise RequestFailed for a problem document, and for a response of more than ``MAX_RESULT_BYTES``, which is not parsed.
        """
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        return await self._send(principal, "GET", path, query=urlencode(parameters), max_size=MAX_RESULT_BYTES)

    async def post(
        self, principal: Principal, path: str, body: Mapping[str, Any] | None = None, *, if_match: str | None = None,
        has_result: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the JSON of a POST. Without ``has_result``, its response is dropped, which may be large, and {} is returned.

        Raise RequestFailed for a problem document.
        """
        headers = {"content-type": "application/json"} | ({"if-match": f'"{if_match}"'} if if_match is not None else {})
        content = json.dumps(body).encode() if body is not None else b""
        return await self._send(principal, "POST", path, headers=headers, content=content, has_result=has_result)

    async def _send(
        self, principal: Principal, method: str, path: str, *, query: str = "", headers: Mapping[str, str] | None = None,
        content: bytes = b"", max_size: int | None = None, has_result: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        scope = {
            # From this version of the spec on, no response asks whether its client has left, which it would do here without a pause.
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1", "method": method, "scheme": "http", "root_path": "", "path": path,
            "raw_path": quote(path, errors="surrogatepass").encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in {"host": "localhost", **(headers or {})}.items()],
            "client": None, "server": None, "principal": principal, MAX_SIZE_KEY: max_size,
        }  # fmt: skip
        status, parts = 0, []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif has_result or status >= 400:
                parts.append(message.get("body", b""))

        await self.routes(scope, receive, send)
        text = b"".join(parts)
        if max_size is not None and len(text) > max_size:
            raise _too_large(len(text))
        data: dict[str, Any] = json.loads(text or b"{}")
        if status >= 400:
            raise RequestFailed(status, {"hint": _SIZE_HINT, **data} if status == 413 else data)
        return data


def to_text(data: Mapping[str, Any]) -> str:
    """Return the JSON text of a result. Raise RequestFailed if it has more than ``MAX_RESULT_BYTES``."""
    text = json.dumps(data, ensure_ascii=False)
    size = len(text.encode(errors="backslashreplace"))
    if size > MAX_RESULT_BYTES:
        raise _too_large(size)
    return text


def _too_large(size: int) -> RequestFailed:
    detail = f"the result has {size:,} bytes, and a tool returns at most {MAX_RESULT_BYTES:,}"
    return RequestFailed(413, {"detail": detail, "hint": _SIZE_HINT})
