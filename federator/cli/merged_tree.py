"""``tree --view merged``: one tree over all sources by logical path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli

if TYPE_CHECKING:
    from federator.model import Path
    from federator.store import Index
    from federator.store.snapshots import Snapshot
    from federator.views.merged_tree import MergedEntry

_PAGE = 1000


class TreeView(StrEnum):
    """The views of the tree."""

    SOURCE = "source"
    MERGED = "merged"


def print_merged_tree(cli: Cli, start: Path, depth: int | None, as_of: str | None = None, limit: int | None = None) -> None:
    """Print the merged tree below a path: each entry with its declarations, the default first. ``as_of`` selects a snapshot."""
    from federator.model import path_key
    from federator.store.snapshots import resolve_snapshot
    from federator.views.merged_tree import MergedEntry

    with cli.index() as index:
        reader = _MergedTreeReader(
            index, cli.settings.merged_tree_levels, resolve_snapshot(index, as_of) if as_of is not None else None
        )
        if cli.json:
            children = (reader.nested(node, depth) for node in reader.children(start))
            cli.out.tree_document(path_key(start), children, MergedEntry)
            return
        if start:
            cli.out.line(path_key(start), style="bold")
        _print_level(cli, reader, start, depth, limit or cli.out.tree_limit)


@dataclass(frozen=True, slots=True)
class _MergedTreeReader:
    index: Index
    skipped: dict[str, int]
    snapshot: Snapshot | None

    def children(self, path: Path) -> Iterator[MergedEntry]:
        from federator.views import merged_tree

        after: str | None = ""
        while after is not None:
            page = merged_tree.list_merged_children(
                self.index, self.skipped, path, after=after, limit=_PAGE, snapshot=self.snapshot
            )
            yield from page.nodes
            after = page.next

    def nested(self, node: MergedEntry, depth: int | None) -> dict[str, Any]:
        data = asdict(node)
        if node.kind == "namespace":
            remaining = None if depth is None else depth - 1
            children = [] if remaining == 0 else self.children(_path(node))
            data["children"] = [self.nested(child, remaining) for child in children]
        return data


def _print_level(
    cli: Cli, reader: _MergedTreeReader, start: Path, depth: int | None, limit: int | None, indent: str = ""
) -> None:
    nodes = list(reader.children(start))
    for number, node in enumerate(nodes[:limit]):
        is_last = number == len(nodes) - 1
        branch, child_indent = ("", "") if not start else ("└── ", "    ") if is_last else ("├── ", "│   ")
        begin, location, end = _entry_details(node)
        cli.out.cut_line(f"{indent}{branch}{begin}", location, end, style=None if start else "bold")
        if node.kind == "namespace" and (depth is None or depth > 1):
            _print_level(cli, reader, _path(node), None if depth is None else depth - 1, limit, indent + child_indent)
    if limit and len(nodes) > limit:
        cli.out.line(f"{indent}{'└── ' if start else ''}… {len(nodes) - limit:,} more: --limit {len(nodes)}")


def _entry_details(node: MergedEntry) -> tuple[str, str, str]:
    """Return what a line of the tree has before the location, the location, and what it has after it."""
    if node.kind == "namespace":
        return node.name, "", f"({', '.join(dict.fromkeys(declaration.source for declaration in node.homes))})"
    if not node.conflict:
        return node.name, node.homes[0].location or "", f"({', '.join(declaration.id for declaration in node.homes)})"
    locations = "; ".join(f"{declaration.id} at {declaration.location}" for declaration in node.homes)
    return f"{node.name}  [conflict] {locations}", "", ""


def _path(node: MergedEntry) -> Path:
    from federator.model import parse_path_key

    return parse_path_key(node.id)
