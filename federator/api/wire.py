"""Around everything else: what every answer has, whoever gives it, and what HTTP wants of any server.

Every answer carries the security headers, errors of the server itself and preflights too. A HEAD is a GET without its body. A body
beyond the size limit, which is refused before any route is looked at, is answered as every other error is.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federator.api.problems import answer

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_TOO_LARGE = 413


def install(app: Starlette, *, inline: Sequence[str]) -> None:
    """Puts this around an app; ``inline`` are the digests of the scripts and styles of our own pages."""
    build = app.build_middleware_stack
    # Starlette puts what answers errors of its own, and FastAPI what measures bodies, around any middleware that is added.
    app.build_middleware_stack = lambda: Wire(build(), inline=inline)  # type: ignore[method-assign]


class Wire:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, inline: Sequence[str]) -> None:
        self._app = app
        allowed = " ".join(f"'{digest}'" for digest in inline)
        self._page_policy = f"{_POLICY}; script-src {allowed}; style-src {allowed}; connect-src 'self'; img-src data:"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"
        ended = False

        async def sending(message: Message) -> None:
            nonlocal ended
            if ended:
                return
            if message["type"] != "http.response.start":
                await send(message)
                return
            if message["status"] == _TOO_LARGE and Headers(scope=message).get("content-type", "").startswith("text/plain"):
                ended = True
                await answer(_path(scope), _TOO_LARGE, "Content too large", "the body has more bytes than this route takes")(
                    scope, receive, hardening
                )
                return
            await hardening(message)
            if head:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        async def hardening(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._harden(MutableHeaders(scope=message))
            await send(message)

        async def receiving() -> Message:
            # A stream that nobody reads has nobody to go on for.
            return {"type": "http.disconnect"} if head and ended else await receive()

        await self._app({**scope, "method": "GET"} if head else scope, receiving, sending)

    def _harden(self, headers: MutableHeaders) -> None:
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Frame-Options"] = "DENY"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        page = headers.get("content-type", "").startswith("text/html")
        headers["Content-Security-Policy"] = self._page_policy if page else _POLICY
        # Kept by nobody but the one who asked, and asked for again with its ETag.
        headers.setdefault("Cache-Control", "private, no-cache")


def _path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("ascii", "replace")
