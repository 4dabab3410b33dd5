"""``/mcp``: the MCP server over streamable HTTP.

A request is a POST and its response is JSON: no sessions and no event streams, so any process of the service answers any request, and
the limits of the API hold (authentication, rate, bodies, connections). The SDK also checks ``Host`` and ``Origin`` on loopback.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from federator.api.problems import NotFound
from federator.api.shares import ThreadShares
from federator.data.spool import Spool
from federator.settings import Settings
from federator.settings.field_types import LOOPBACK
from federator.store import Index

if TYPE_CHECKING:
    from mcp.server.transport_security import TransportSecuritySettings

    from federator.api.mcp.server import FederatorMcp

PATH = "/mcp"
# The SDK parses a body on the event loop: a megabyte takes 0.1 s from all callers. Sensible calls have some kilobytes.
MAX_BODY_BYTES = 64_000


def install_mcp(app: FastAPI, index: Index, settings: Settings, *, loopback: bool) -> None:
    """Add the route of MCP. ``loopback``: the service is reachable from this machine only."""
    app.router.routes.append(
        Route(
            PATH,
            McpEndpoint(index, settings, app.state.thread_shares, app.state.spool, loopback=loopback),
            methods=["POST"],
            include_in_schema=False,
        )
    )


class McpEndpoint:
    """ASGI app of the route. The first request builds the server, because the SDK takes a second to import."""

    def __init__(self, index: Index, settings: Settings, shares: ThreadShares, spool: Spool, *, loopback: bool) -> None:
        self._index, self._settings, self._loopback = index, settings, loopback
        self._shares, self._spool = shares, spool
        self._server: FederatorMcp | None = None
        self._building = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raise NotFound if the SDK is not installed."""
        server = self._server or await self._get_server()
        # A manager serves requests until the end of its `run`. Without sessions it has nothing to keep, so each request has its own.
        server.streamable_http_app(
            stateless_http=True, json_response=True, max_request_body_size=MAX_BODY_BYTES, transport_security=self._protection()
        )
        manager = server.session_manager
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _get_server(self) -> FederatorMcp:
        # Without the lock, many first requests would occupy all threads with as many builds.
        async with self._building:
            if self._server is None:
                self._server = await run_in_threadpool(self._build)
            return self._server

    def _build(self) -> FederatorMcp:
        try:
            from federator.api.mcp.server import build_server
        except ModuleNotFoundError as error:
            raise NotFound(
                f"MCP needs the module {error.name!r}, which is not installed", hint="pip install 'lance-federator[mcp]'"
            ) from None
        return build_server(self._index, self._settings, self._shares, self._spool)

    def _protection(self) -> TransportSecuritySettings:
        """Return the SDK's protection against DNS rebinding. Off loopback the service knows no name of its own, and it needs a
        credential there."""
        from mcp.server.transport_security import TransportSecuritySettings

        hosts = [f"[{host}]" if ":" in host else host for host in LOOPBACK]
        patterns = [pattern for host in hosts for pattern in (host, f"{host}:*")]
        origins = [f"{scheme}://{pattern}" for scheme in ("http", "https") for pattern in patterns]
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=self._loopback, allowed_hosts=patterns,
            allowed_origins=[*origins, *self._settings.serve.cors_origins],
        )  # fmt: skip
