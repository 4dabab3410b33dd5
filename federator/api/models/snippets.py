"""The response with code that opens a table."""

from __future__ import annotations

from pydantic import Field

from federator.api.models.base import ResponseModel
from federator.lance.snippets import Snippet
from federator.views.freshness import Freshness


class SnippetList(ResponseModel):
    """Code that opens one table, for each client."""

    id: str = Field(examples=["lake_hive$sales$orders"])
    snippets: list[Snippet] = Field(description="empty if the table cannot be opened")
    obstacle: str | None = Field(description="why the table cannot be opened; null: nothing is known that prevents it")
    freshness: Freshness
