"""``tree --view merged``: one tree over all sources, by logical path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli

if TYPE_CHECKING:
    from federator.index import Index
    from federator.index.merged import MergedNode
    from federator.index.moments import Moment
    from federator.model import Path

_PAGE = 1000


class View(StrEnum):
    """The trees that there are."""

    SOURCE = "source"
    MERGED = "merged"


def show_merged(cli: Cli, start: Path, depth: int | None, as_of: str | None = None) -> None:
    """Prints the merged view below a path: each entry with its homes, the default first; ``as_of`` as it was at a moment."""
    from federator.index.moments import moment
    from federator.model import path_key

    with cli.index() as index:
        tree = _Tree(index, cli.settings.merged, moment(index, as_of) if as_of is not None else None)
        if cli.json:
            found = [tree.nested(node, depth) for node in tree.children(start)]
            cli.out.document({"id": path_key(start), "children": found})
            return
        if start:
            cli.out.line(path_key(start), style="bold")
        _draw(cli, tree, start, depth, "")


@dataclass(frozen=True, slots=True)
class _Tree:
    index: Index
    skipped: dict[str, int]
    at: Moment | None

    def children(self, path: Path) -> Iterator[MergedNode]:
        from federator.index import merged

        after: str | None = ""
        while after is not None:
            page = merged.children(self.index, self.skipped, path, after=after, limit=_PAGE, at=self.at)
            yield from page.nodes
            after = page.next

    def nested(self, node: MergedNode, depth: int | None) -> dict[str, Any]:
        data = asdict(node)
        if node.kind == "namespace":
            below = None if depth is None else depth - 1
            deeper = [] if below == 0 else self.children(_path(node))
            data["children"] = [self.nested(child, below) for child in deeper]
        return data


def _draw(cli: Cli, tree: _Tree, start: Path, depth: int | None, indent: str) -> None:
    nodes = list(tree.children(start))
    for number, node in enumerate(nodes):
        last = number == len(nodes) - 1
        branch, deeper = ("", "") if not start else ("└── ", "    ") if last else ("├── ", "│   ")
        cli.out.line(f"{indent}{branch}{_described(node)}", style=None if start else "bold")
        if node.kind == "namespace" and (depth is None or depth > 1):
            _draw(cli, tree, _path(node), None if depth is None else depth - 1, indent + deeper)


def _described(node: MergedNode) -> str:
    if node.kind == "namespace":
        return f"{node.name}  ({', '.join(dict.fromkeys(home.source for home in node.homes))})"
    if not node.conflict:
        return f"{node.name}  {node.homes[0].location or ''}  ({', '.join(home.id for home in node.homes)})"
    places = "; ".join(f"{home.id} at {home.location}" for home in node.homes)
    return f"{node.name}  [conflict] {places}"


def _path(node: MergedNode) -> Path:
    from federator.model import parse_key

    return parse_key(node.id)
