"""Outermost middleware: security headers on every response, HEAD requests, and the errors for too large bodies and at shutdown.

Every response has the security headers, also server errors and CORS preflights. A HEAD request is a GET whose body is not sent. A
request body beyond the size limit is refused before routing, and a call that does not end in time after SIGTERM is cancelled; their
errors are problem documents like any other.
"""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federator.api.problems import problem_response
from federator.connector import ServiceUnavailable

#: headers of a response with secrets, which nothing may store
NO_STORE = {"Cache-Control": "no-store"}

_CONTENT_SECURITY_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# The pages use none of the devices that a browser could offer.
_PERMISSIONS_POLICY = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"
_TOO_LARGE = 413


def install_http_middleware(app: Starlette, *, inline_style: str) -> None:
    """Wrap an app in the middleware. ``inline_style``: digest of the inline style of ``/docs``, ``sha256-…``."""
    build = app.build_middleware_stack
    # Starlette's error middleware and FastAPI's body limit are outside any middleware that is added in the documented way.
    app.build_middleware_stack = lambda: HttpMiddleware(build(), inline_style=inline_style)  # type: ignore[method-assign]


class HttpMiddleware:
    """ASGI middleware: security headers, HEAD, and problem documents for too large bodies and cancelled calls."""

    def __init__(self, app: ASGIApp, *, inline_style: str) -> None:
        self._app = app
        self._page_policy = (
            f"{_CONTENT_SECURITY_POLICY}; script-src 'self'; style-src 'self' '{inline_style}'; connect-src 'self'; "
            "img-src 'self' data:; require-trusted-types-for 'script'"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        has_started = is_complete = False

        async def send_message(message: Message) -> None:
            nonlocal is_complete
            if is_complete:
                return
            if message["type"] != "http.response.start":
                await send(message)
                return
            if message["status"] == _TOO_LARGE and Headers(scope=message).get("content-type", "").startswith("text/plain"):
                is_complete = True
                await problem_response(
                    _path(scope), _TOO_LARGE, "Content too large", "the request body exceeds the size limit of this route"
                )(scope, receive, send_with_headers)
                return
            await send_with_headers(message)
            if is_head:
                is_complete = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                self._add_security_headers(MutableHeaders(scope=message))
            await send(message)

        async def receive_message() -> Message:
            # End an event stream after its headers: the body of a HEAD request is never sent.
            return {"type": "http.disconnect"} if is_head and is_complete else await receive()

        try:
            await self._app({**scope, "method": "GET"} if is_head else scope, receive_message, send_message)
        except asyncio.CancelledError:
            # The server cancels only calls that are still in flight when the grace time after SIGTERM ends.
            if has_started:
                raise
            await problem_response(
                _path(scope), 503, "Shutting down", "the service ends, and the call did not end in time", {"Connection": "close"},
                code=ServiceUnavailable.code, hint="repeat the call; a write may have been made, so check its outcome first",
            )(scope, receive, send_message)  # fmt: skip

    def _add_security_headers(self, headers: MutableHeaders) -> None:
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Frame-Options"] = "DENY"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Permissions-Policy"] = _PERMISSIONS_POLICY
        page = headers.get("content-type", "").startswith("text/html")
        headers["Content-Security-Policy"] = self._page_policy if page else _CONTENT_SECURITY_POLICY
        # Only the client may cache a response, and it must revalidate the response with its ETag.
        headers.setdefault("Cache-Control", "private, no-cache")


def _path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("ascii", "replace")
