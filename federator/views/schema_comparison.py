"""The columns of one table as its catalog declares them and as they are stored, side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from federator.model import Path, parse_path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.comparison import ColumnDifference, column_names, compare_columns
from federator.store import Index
from federator.views import tree
from federator.views.declaration_graph import DeclarationGraph, build_graph
from federator.views.freshness import Freshness


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column on both sides. Names are compared without case, and types by their group, because catalogs name types differently."""

    name: Annotated[str, Field(examples=["price"])]
    declared: Annotated[str | None, Field(examples=["double"], description="type in the catalog; null: not declared")]
    stored: Annotated[str | None, Field(examples=["float"], description="type in the Lance schema; null: not stored")]
    difference: Annotated[ColumnDifference | None, Field(description="null: no difference, or one side is not known")]
    missing_in: Annotated[list[str], Field(description="those of `copies` that declare no column of this name")]


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """The declared columns of a table in their order, then the columns that are only stored."""

    id: Annotated[str, Field(examples=["lake_hive$sales$orders"])]
    declares_columns: Annotated[bool, Field(description="false: the catalog declares no columns")]
    is_stored_known: Annotated[bool, Field(description="false: no verification read the stored schema")]
    version: Annotated[int | None, Field(description="version of the table that the stored columns are from")]
    is_reordered: Annotated[bool, Field(description="both sides have the same columns in another order")]
    copies: Annotated[
        list[str],
        Field(
            description="object ids of the copies that mirrors made of the table, and of their copies, which declare columns"
        ),
    ]
    columns: list[ComparedColumn]
    freshness: Freshness


def compare_schemas(index: Index, node: Path, *, scopes: Scopes = EVERYTHING) -> SchemaComparison:
    """Compare both schemas of the table ``source$path`` from the index alone. Raise as ``tree.get_table`` does."""
    table = tree.get_table(index, node, scopes=scopes)
    stored = table.dataset.schema if table.dataset is not None else None
    columns_by_copy = _list_columns_of_copies(index, node, scopes) if table.mirrored else {}
    comparison = compare_columns(json.dumps(table.schema) if table.schema else None, json.dumps(stored) if stored else None)
    return SchemaComparison(
        id=table.id, declares_columns=bool(table.schema), is_stored_known=bool(stored),
        version=table.dataset.version if table.dataset is not None else None, is_reordered=comparison.is_reordered,
        copies=list(columns_by_copy),
        columns=[
            ComparedColumn(
                column.name, column.declared, column.stored, column.difference,
                [copy for copy, names in columns_by_copy.items() if column.name.lower() not in names],
            )
            for column in comparison.columns
        ],
        freshness=table.freshness,
    )  # fmt: skip


def _list_columns_of_copies(index: Index, node: Path, scopes: Scopes) -> dict[str, set[str]]:
    """Return the column names of each copy of a table, and of its copies, by object id. Copies that declare no columns are left out."""
    graph = build_graph(index, node, scopes=scopes)
    declared = {table.id for table in graph.tables if table.is_declared}
    columns: dict[str, set[str]] = {}
    for copy in sorted(_collect_copies(graph) & declared):
        schema = tree.get_table(index, parse_path_key(copy), scopes=scopes).schema
        if schema:
            columns[copy] = set(column_names(json.dumps(schema)))
    return columns


def _collect_copies(graph: DeclarationGraph) -> set[str]:
    """Return the object ids of the copies of the graph's table, and of their copies."""
    targets: dict[str, list[str]] = {}
    for link in graph.mirrored:
        targets.setdefault(link.origin, []).append(link.target)
    copies: set[str] = set()
    frontier = {graph.id}
    while frontier:
        reached = {target for origin in frontier for target in targets.get(origin, ())}
        # Mirrors may form a circle.
        frontier = reached - copies - {graph.id}
        copies |= frontier
    return copies
