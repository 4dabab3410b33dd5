"""Responses with nodes of the tree and of the merged tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.field_types import OptionalTimestamp
from federator.views.freshness import Freshness
from federator.views.merged_tree import MergedEntry
from federator.views.tree import MAX_COUNTED, TreeNode

NextChildren = Annotated[str | None, Field(description="cursor of the next page of children")]


@dataclass(frozen=True, slots=True)
class Node(TreeNode):
    """A node of the tree: a source, a namespace or a table."""

    freshness: Annotated[Freshness | None, Field(description="freshness of a source; null for other nodes")] = None
    tables: Annotated[
        int | None,
        Field(
            examples=[64],
            description=f"number of tables below a namespace, with `counts=true`; {MAX_COUNTED + 1}: more than {MAX_COUNTED}. "
            "null: not requested, or the principal's scopes do not cover the namespace as a whole",
        ),
    ] = None
    declarations: Annotated[
        int | None,
        Field(
            examples=[2],
            description="declarations of the dataset of a table, with `with=verified`; null: not requested",
        ),
    ] = None
    children: Annotated[list[Node] | None, Field(description="children, with depth > 1; null: not requested")] = None
    next: NextChildren = None


class Tree(ResponseModel):
    """A page of the nodes below a path."""

    path: str = Field(examples=["lake_hive$sales"])
    freshness: Freshness | None = Field(
        description="freshness of the path's source; null at the tree root, where each source has its own"
    )
    nodes: list[Node]
    next: str | None = Field(description="cursor of the next page; null: last page")
    as_of: OptionalTimestamp = Field(default=None, description="time of the requested snapshot; null: now")


@dataclass(frozen=True, slots=True)
class MergedNode(MergedEntry):
    """An entry of the merged tree: all objects with one logical path."""

    children: Annotated[list[MergedNode] | None, Field(description="children, with depth > 1; null: not requested")]
    next: NextChildren


class MergedTree(ResponseModel):
    """A page of the entries below a path of the merged tree."""

    path: str = Field(examples=["sales"])
    freshness: FreshnessList
    nodes: list[MergedNode]
    next: str | None = Field(description="cursor of the next page; null: last page")
    as_of: OptionalTimestamp = Field(
        default=None, description="time of the requested snapshot; null: now, and `freshness` has the state of each source"
    )
