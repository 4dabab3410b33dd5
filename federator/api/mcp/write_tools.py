"""The tools that write: request a plan, approve a plan. They need the role operator and the confirmation of a person."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field

from federator.api.mcp.call_context import CallContexts
from federator.api.mcp.confirmation import ask
from federator.api.mcp.read_tools import Digest, to_result
from federator.api.mcp.requests import ApiRequests
from federator.api.mcp.schemas import build_tool
from federator.api.principals import Role
from federator.runtime.text import escape_controls
from federator.settings.field_types import Name
from federator.store.plans import PlanRecord
from federator.store.requests import Request

_PLANS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
_APPROVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

Mirrors = Annotated[list[Name], Field(min_length=1, max_length=20, description="names of the mirrors")]


class WriteTools:
    """The tools as methods, like ``ReadTools``."""

    def __init__(self, api: ApiRequests, contexts: CallContexts) -> None:
        self._api, self._contexts = api, contexts

    def build(self) -> list[Tool]:
        """Return the tools with the schemas of their results."""
        return [build_tool(self.request_plan, Request, _PLANS), build_tool(self.approve_plan, PlanRecord, _APPROVES)]

    async def request_plan(self, context: Context[Any, Any], mirrors: Mirrors) -> CallToolResult | InputRequiredResult:
        """Queue a run that reads the catalogs of mirrors and plans their changes. It applies nothing. The service's worker executes
        it; list_plans then shows the plans. Needs the role operator and the confirmation of a person."""
        principal = self._contexts.get_principal(context)
        principal.require(Role.OPERATOR)
        for name in mirrors:
            await self._find_mirror(context, name)
        names = ", ".join(mirrors)
        question = f"Read the catalogs of these mirrors and plan their changes, without applying them: {names}"
        if asking := await ask(context, escape_controls(question), command=f"federator plan {' '.join(mirrors)}"):
            return asking
        return to_result(await self._api.post(principal, "/api/v1/runs", {"kind": "plan", "mirrors": mirrors}))

    async def approve_plan(self, context: Context[Any, Any], digest: Digest) -> CallToolResult | InputRequiredResult:
        """Approve the held changes of a plan, which may remove declarations from a catalog, never data. The next sync of the mirror
        applies them if their evidence still holds. Needs the role operator and the confirmation of a person."""
        principal = self._contexts.get_principal(context)
        principal.require(Role.OPERATOR)
        plan = await self._api.get(principal, f"/api/v1/plans/{digest}/question")
        if asking := await ask(context, plan["question"], command=f"federator plans approve {digest[:12]}"):
            return asking
        await self._api.post(principal, f"/api/v1/plans/{digest}/approve", if_match=plan["if_match"], has_result=False)
        # Without its changes: a result after a write must not be too large.
        page = await self._api.get(principal, "/api/v1/plans", {"digest": digest, "limit": 1})
        return to_result({field.name: page["plans"][0][field.name] for field in fields(PlanRecord)})

    async def _find_mirror(self, context: Context[Any, Any], name: str) -> None:
        await self._api.get(self._contexts.get_principal(context), f"/api/v1/mirrors/{name}")
