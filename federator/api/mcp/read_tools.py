"""The read tools. Each is one GET of the API, and its result has the schema of that route's response."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from federator.api.mcp.call_context import CallContexts
from federator.api.mcp.requests import ApiRequests, to_text
from federator.api.mcp.schemas import build_tool
from federator.api.models.datasets import DriftPage
from federator.api.models.history import DifferencePage
from federator.api.models.plans import PlanPage, PlanView
from federator.api.models.search import SearchResults
from federator.api.models.snippets import SnippetList
from federator.api.models.sources import SourcePage
from federator.api.models.tree import Tree
from federator.model.differences import DifferenceKind
from federator.model.drift import DriftKind, DriftSeverity
from federator.views.explain import Explanation
from federator.views.tree import Table

_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

Id = Annotated[
    str, Field(min_length=1, max_length=4000, description="object id as other tools return it: `source$namespace$table`")
]
Path = Annotated[str, Field(max_length=4000, description="object id, `source$namespace`; empty: everything")]
Limit = Annotated[int, Field(ge=1, le=100, description="maximum number of entries in the result")]
Cursor = Annotated[
    str | None, Field(max_length=8000, description="`next` of the previous result, with the same other parameters")
]
Digest = Annotated[
    str, Field(pattern="^[0-9a-f]+$", max_length=128, description="complete digest of the plan, from list_plans")
]
SnapshotText = Annotated[
    str | None, Field(max_length=64, description="a run id, or a time: `2026-11-20`, `2026-11-20T08:30:00Z`, `-2d`")
]


class ReadTools:
    """The tools as methods; the SDK reads their parameters from the signatures and their descriptions from the docstrings."""

    def __init__(self, api: ApiRequests, contexts: CallContexts) -> None:
        self._api, self._contexts = api, contexts

    def build(self) -> list[Tool]:
        """Return the tools with the schemas of their results."""
        models: dict[Any, Any] = {
            self.search_tables: SearchResults, self.browse_tree: Tree, self.describe_table: Table,
            self.show_table_code: SnippetList,
            self.explain_object: Explanation, self.list_drift: DriftPage, self.list_changes: DifferencePage,
            self.list_sources: SourcePage, self.list_plans: PlanPage, self.describe_plan: PlanView,
        }  # fmt: skip
        return [build_tool(function, model, _READ_ONLY) for function, model in models.items()]

    async def search_tables(
        self,
        context: Context[Any, Any],
        query: Annotated[
            str,
            Field(
                min_length=1, max_length=1000,
                description="words, prefixes (`ord*`), globs (`sales$*`), and fields: `name:`, `namespace:`, `property:key=value`, "
                "`column:`, `location:`, `owner:`, `source:`, `state:`. All terms must match; `-` before a term excludes it",
            ),
        ],
        facets: Annotated[bool, Field(description="count the matches by source, namespace, state and owner")] = False,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> CallToolResult:  # fmt: skip
        """Find Lance tables of all catalogs by name, column, property, owner or location, best match first. Use it if you do not
        know where a table is; `total` counts the matches."""
        return await self._get(context, "/api/v1/search", q=query, facets=facets, limit=limit, cursor=cursor)

    async def browse_tree(
        self,
        context: Context[Any, Any],
        path: Path = "",
        depth: Annotated[int, Field(ge=1, le=3, description="number of levels")] = 1,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> CallToolResult:
        """List the namespaces and tables below a path, ordered by path. Without a path: the sources (catalogs)."""
        return await self._get(context, "/api/v1/tree", path=path, depth=depth, limit=limit, cursor=cursor)

    async def describe_table(self, context: Context[Any, Any], id: Id) -> CallToolResult:  # noqa: A002 - as in the API
        """Show one table as its catalog declares it: location, schema, properties, owner, and what was verified at the location
        (state, rows, version). The index is read, not the catalog: `freshness` has the time of the last crawl."""
        return await self._get(context, f"/api/v1/tables/{id}")

    async def show_table_code(self, context: Context[Any, Any], id: Id) -> CallToolResult:  # noqa: A002 - as in the API
        """Show Python code that opens a table through the service with pylance, lancedb, Spark and DuckDB. It contains no secret: if
        the service requires a token, the code reads the environment variable FEDERATOR_TOKEN."""
        return await self._get(context, f"/api/v1/snippets/{id}", uri=self._contexts.get_service_url(context))

    async def explain_object(self, context: Context[Any, Any], id: Id) -> CallToolResult:  # noqa: A002 - as in the API
        """Explain why a table or namespace exists or is absent: the evidence of the last crawl, its roles in mirrors, its history,
        and the next planned action. Works for absent objects, too."""
        return await self._get(context, f"/api/v1/explain/{id}")

    async def list_drift(
        self,
        context: Context[Any, Any],
        kind: Annotated[DriftKind | None, Field(description="only this kind")] = None,
        severity: Annotated[DriftSeverity | None, Field(description="only this severity")] = None,
        source: Annotated[str | None, Field(max_length=100, description="source of the drifted table")] = None,
        about: Annotated[str | None, Field(max_length=4000, description="object id of one table, on either side")] = None,
        resolved: Annotated[bool, Field(description="only drift that is resolved, instead of open drift")] = False,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> CallToolResult:
        """List persistent differences between catalogs, mirrors and storage, as the last drift detection found them."""
        return await self._get(
            context, "/api/v1/drift",
            kind=kind, severity=severity, source=source, about=about, resolved=resolved, limit=limit, cursor=cursor,
        )  # fmt: skip

    async def list_changes(
        self,
        context: Context[Any, Any],
        since: SnapshotText = None,
        until: SnapshotText = None,
        path: Path = "",
        kind: Annotated[DifferenceKind | None, Field(description="only this kind of difference")] = None,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> CallToolResult:
        """List what was added, removed or changed between two times, with the run and the mirror write that caused it. Without
        `since`: the changes of the last run."""
        return await self._get(
            context, "/api/v1/diff", **{"from": since, "to": until}, path=path, kind=kind, limit=limit, cursor=cursor
        )

    async def list_sources(self, context: Context[Any, Any], limit: Limit = 100, cursor: Cursor = None) -> CallToolResult:
        """List the sources (catalogs) with their freshness: state and time of the last crawl, and the numbers of namespaces and
        tables. Use it to judge how current the other results are."""
        return await self._get(context, "/api/v1/sources", limit=limit, cursor=cursor)

    async def list_plans(
        self,
        context: Context[Any, Any],
        mirror: Annotated[str | None, Field(max_length=80, description="only plans of this mirror")] = None,
        state: Annotated[
            str | None, Field(max_length=20, description="ready, held, approved, rejected, applied or outdated")
        ] = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> CallToolResult:
        """List the plans of mirrors, newest first, with the numbers of their changes. `state` held: plans that wait for an
        approval."""
        return await self._get(context, "/api/v1/plans", mirror=mirror, state=state, limit=limit, cursor=cursor)

    async def describe_plan(self, context: Context[Any, Any], digest: Digest) -> CallToolResult:
        """Show one plan with its changes, its refusals and the guards that hold it. `waiting` lists what an approval releases."""
        return await self._get(context, f"/api/v1/plans/{digest}")

    async def _get(self, context: Context[Any, Any], path: str, /, **query: Any) -> CallToolResult:
        return to_result(await self._api.get(self._contexts.get_principal(context), path, query))


def to_result(data: dict[str, Any]) -> CallToolResult:
    """Return a view as a tool's result, as structured content and as its JSON text for clients that only read text.

    Raise RequestFailed if it is too large.
    """
    return CallToolResult(content=[TextContent(type="text", text=to_text(data))], structured_content=data)
