"""``tree``, ``ls`` and ``show``: browse the index. They use neither Spark nor a catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command
from federator.cli.merged_tree import TreeView, print_merged_tree
from federator.cli.printer import Printer
from federator.cli.table_output import print_table, print_table_at
from federator.cli.terminal import Column
from federator.connector.errors import CatalogError, InvalidInput, split_hint

if TYPE_CHECKING:
    from federator.model import Path
    from federator.store import Index
    from federator.store.snapshots import Snapshot
    from federator.views.tree import TreeNode

PATH = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        autocompletion=completion.complete_paths,
        help="Source or namespace: 'lake$sales', or lake/sales without quotes.",
    ),
]
AS_OF = Annotated[
    str | None,
    typer.Option("--as-of", metavar="WHEN", help="Snapshot: a run id, or a time: 2026-11-20, 2026-11-20T08:30, -2d."),
]
_PAGE = 1000
_FIELDS = ("id", "name", "kind", "location", "coverage", "verified", "message")


def tree(
    cli: Cli,
    path: PATH = None,
    depth: Annotated[int | None, typer.Option("--depth", min=1, help="Number of levels to show. Default: all.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, help="Children to show of each namespace, as text. Default: 100 on a terminal, else all."
        ),
    ] = None,
    as_of: AS_OF = None,
    view: Annotated[
        TreeView, typer.Option("--view", help="source, or merged: one entry per logical name across sources.")
    ] = TreeView.SOURCE,
) -> None:
    """Show all sources as one tree."""
    if view is TreeView.MERGED:
        print_merged_tree(cli, parse_path(path), depth, as_of, limit)
        return
    with cli.index() as index:
        start, snapshot = parse_path(path), resolve_as_of(index, as_of)
        top = _list_children(index, start, snapshot)
        if cli.json:
            children = (_nested_json(index, node, depth, snapshot) for node in top)
            cli.out.tree_document(format_path(start), children, _FIELDS)
            return
        if start:
            cli.out.line(format_path(start), style="bold")
        print_tree(cli.out, index, start, depth, snapshot=snapshot, limit=limit or cli.out.tree_limit)
        if not top and not start:
            cli.print_note(
                "the index was empty at that time" if snapshot else "the index is empty; read the sources with federator crawl"
            )


def ls(
    cli: Cli,
    path: PATH = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Also show kind, state and location.")] = False,
    as_of: AS_OF = None,
) -> None:
    """List the children of a namespace; without PATH, the sources. Names ending in $ are namespaces."""
    with cli.index() as index:
        nodes = _list_children_or_self(index, parse_path(path), resolve_as_of(index, as_of))
    if cli.json:
        cli.out.document({"nodes": [_node_json(node) for node in nodes]}, rows="nodes", columns=_FIELDS)
    elif long:
        columns = [
            Column("name", wide=True),
            Column("kind"),
            Column("state"),
            Column("location", cut=True),
            Column("note", wide=True),
        ]
        cli.out.table(
            columns,
            [(_display_name(n), n.kind.replace("_", " "), _display_state(n), n.location, _one_line(n.message)) for n in nodes],
        )
    else:
        for node in nodes:
            cli.out.line(_display_name(node))


def show(
    cli: Cli,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            autocompletion=completion.complete_paths,
            help="Table: 'lake$sales$orders', or lake/sales/orders without quotes. Or a source.",
        ),
    ],
    as_of: AS_OF = None,
) -> None:
    """Show all details of one table or one source."""
    from federator.model import path_key
    from federator.views import tree as views
    from federator.views.plans import list_table_refusals

    node = parse_path(path)
    with cli.index() as index:
        if snapshot := resolve_as_of(index, as_of):
            _show_table_at(cli, index, node, snapshot)
            return
        if len(node) < 2:
            _show_source(cli, index, node)
            return
        try:
            view = views.get_table(index, node)
        except CatalogError:
            if _is_namespace(index, node):
                raise InvalidInput(
                    f"{format_path(node)} is a namespace, not a table", hint=f"federator ls '{format_path(node)}'"
                ) from None
            raise
        origins = {name: mirror.origin for name, mirror in cli.settings.mirrors.items()}
        refusals = list_table_refusals(index, origins, view.source, path_key(tuple(view.path)))
    if cli.json:
        data = asdict(view)
        not_mirrored = [asdict(refusal) for refusal in refusals]
        cli.out.document({**data, "crawled_at": data.pop("freshness")["crawled_at"], "not_mirrored": not_mirrored})
    else:
        print_table(cli.out, view, refusals)


def parse_path(text: str | None) -> Path:
    """Parse a typed path. If it has no ``$``, which shells interpret, a slash is the separator."""
    from federator.model import parse_path_key

    text = (text or "").strip("$") if text != "/" else ""
    if "$" not in text and "/" in text:
        return tuple(name for name in text.split("/") if name)
    return parse_path_key(text)


def format_path(path: Path) -> str:
    from federator.model import path_key

    return path_key(path)


def resolve_as_of(index: Index, as_of: str | None) -> Snapshot | None:
    """Return the snapshot of ``--as-of``; None: now."""
    from federator.store.snapshots import resolve_snapshot

    return resolve_snapshot(index, as_of) if as_of is not None else None


def _list_children(index: Index, node: Path, snapshot: Snapshot | None = None) -> list[TreeNode]:
    """Return all children, in an order that does not depend on the database's collation."""
    from federator.views import history
    from federator.views import tree as views

    nodes: list[TreeNode] = []
    after: str | None = ""
    while after is not None:
        if snapshot is None:
            page = views.list_children(index, node, after=after, limit=_PAGE)
        else:
            page = history.list_children_at(index, node, snapshot, after=after, limit=_PAGE)
        nodes += page.nodes
        after = page.next
    return sorted(nodes, key=lambda node: (node.name, node.kind))


def _list_children_or_self(index: Index, node: Path, snapshot: Snapshot | None) -> list[TreeNode]:
    try:
        return _list_children(index, node, snapshot)
    except CatalogError:
        if len(node) > 1:
            matches = [child for child in _list_children_or_empty(index, node[:-1], snapshot) if child.name == node[-1]]
            if matches:
                return matches
        raise


def _list_children_or_empty(index: Index, node: Path, snapshot: Snapshot | None = None) -> list[TreeNode]:
    try:
        return _list_children(index, node, snapshot)
    except CatalogError:
        return []


def _is_namespace(index: Index, node: Path) -> bool:
    return any(child.name == node[-1] and child.kind == "namespace" for child in _list_children_or_empty(index, node[:-1]))


def _nested_json(index: Index, node: TreeNode, depth: int | None, snapshot: Snapshot | None) -> dict[str, Any]:
    data = _node_json(node)
    if node.kind in ("source", "namespace"):
        remaining = None if depth is None else depth - 1
        children = [] if remaining == 0 else _list_children(index, parse_path(node.id), snapshot)
        data["children"] = [_nested_json(index, child, remaining, snapshot) for child in children]
    return data


def print_tree(
    out: Printer,
    index: Index,
    start: Path,
    depth: int | None,
    indent: str = "",
    *,
    snapshot: Snapshot | None = None,
    limit: int | None = None,
) -> None:
    """Print ``depth`` levels below a node as a tree, and ``limit`` children of each; None: all."""
    nodes = _list_children(index, start, snapshot)
    more = len(nodes[limit:]) if limit else 0
    for number, node in enumerate(nodes[:limit]):
        is_last = number == len(nodes) - 1
        branch, child_indent = ("", "") if not start else ("└── ", "    ") if is_last else ("├── ", "│   ")
        begin, location, end = _node_details(node)
        out.cut_line(f"{indent}{branch}{begin}", location, end, style=None if start else "bold")
        if node.kind in ("source", "namespace") and (depth is None or depth > 1):
            remaining = None if depth is None else depth - 1
            print_tree(
                out, index, (*start, node.name), remaining, indent + child_indent, snapshot=snapshot, limit=limit
            )  # fmt: skip
    if more:
        out.line(f"{indent}{'└── ' if start else ''}… {more:,} more: --limit {len(nodes)}")


def _node_details(node: TreeNode) -> tuple[str, str, str]:
    """Return what a line of the tree has before the location, the location, and what it has after it."""
    is_table = node.kind not in ("source", "namespace")
    kind = f"  ({node.kind.replace('_', ' ')})" if is_table and node.kind != "table" else ""
    state = _display_state(node)
    shown = f"[{state.replace('_', ' ')}]" if state not in ("", "ok", "complete", "carried", "valid") else ""
    message = f"({_one_line(node.message)})" if node.message else ""
    return node.name + kind, (node.location or "") if is_table else "", "  ".join(part for part in (shown, message) if part)


def _display_state(node: TreeNode) -> str:
    return node.coverage or node.verified or ""


def _display_name(node: TreeNode) -> str:
    from federator.model import path_key

    return path_key((node.name,)) + ("$" if node.kind in ("source", "namespace") else "")


def _node_json(node: TreeNode) -> dict[str, Any]:
    return {name: getattr(node, name) for name in _FIELDS}


def _show_table_at(cli: Cli, index: Index, node: Path, snapshot: Snapshot) -> None:
    from federator.views import history

    view = history.get_table_at(index, node, snapshot)
    if cli.json:
        cli.out.document(asdict(view))
    else:
        print_table_at(cli.out, view)


def _one_line(message: str | None) -> str:
    """Return the text of an error with its hint behind it."""
    return "; ".join(part for part in split_hint(message or "") if part)


def _show_source(cli: Cli, index: Index, node: Path) -> None:
    from federator.cli.printer import format_time
    from federator.views import tree as views
    from federator.views.freshness import get_freshness

    get_freshness(index, node[0])
    (view,) = (view for view in views.list_sources(index) if (view.name,) == node)
    if cli.json:
        cli.out.document(asdict(view))
        return
    cli.out.pairs([
        ("source", view.name), ("impl", view.impl), ("state", view.state), ("revision", view.revision),
        ("namespaces", view.namespaces), ("tables", view.tables), ("not read completely", view.failed_namespaces),
        ("carried", view.carried), ("crawled", format_time(view.crawled_at)), ("last full crawl", format_time(view.full_at)),
        ("changed", format_time(view.published_at)), *([("note", _one_line(view.message))] if view.message else ()),
    ])  # fmt: skip


def register(app: typer.Typer) -> None:
    for function in (tree, ls, show):
        command(app, function.__name__, paged=True)(function)
