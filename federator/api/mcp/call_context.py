"""The principal of a tool call, and the address of the service for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from starlette.requests import Request

from federator.api.principals import Principal


@dataclass(frozen=True, slots=True)
class CallContexts:
    """Finds a call's principal and the service's URL for it.

    ``local`` is the principal of all calls on stdio, None for a server over HTTP. ``configured_url`` is the service's URL; None: that
    of the request.
    """

    local: Principal | None
    configured_url: str | None

    def get_principal(self, context: Context[Any, Any]) -> Principal:
        """Return the principal that the security middleware has put into the call's HTTP request, else the local one.

        Raise RuntimeError if there is neither, so that a call without an authenticated request has no rights.
        """
        if self.local is not None:
            return self.local
        principal: Principal = self._request(context).scope["principal"]
        return principal

    def get_service_url(self, context: Context[Any, Any]) -> str:
        """Return the URL at which the principal reaches the service."""
        return self.configured_url or str(self._request(context).base_url)

    def _request(self, context: Context[Any, Any]) -> Request:
        request = context.request_context.request
        if not isinstance(request, Request):
            raise RuntimeError("a call over HTTP has no request")
        return request


def name_principal(context: ServerRequestContext[Any, Any]) -> str | None:
    """Return the name of the principal of a call over HTTP, to which the state of a question is bound; None on stdio."""
    return str(context.request.scope["principal"].name) if context.request is not None else None
