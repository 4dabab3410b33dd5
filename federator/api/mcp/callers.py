"""The principal of a tool call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context

from federator.api.principals import Principal


@dataclass(frozen=True, slots=True)
class Callers:
    """Finds the principal of a call. ``local``: the principal of all calls on stdio; None for a server over HTTP."""

    local: Principal | None

    def of(self, context: Context[Any, Any]) -> Principal:
        """Return the principal that the security middleware has put into the call's HTTP request, else the local one.

        Raise RuntimeError if there is neither, so that a call without an authenticated request has no rights.
        """
        if self.local is not None:
            return self.local
        request = context.request_context.request
        if request is None:
            raise RuntimeError("a call over HTTP has no request")
        principal: Principal = request.scope["principal"]
        return principal
