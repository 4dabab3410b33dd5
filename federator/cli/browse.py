"""``tree``, ``ls``, ``show``: looking at the index. No Spark, no catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete
from federator.cli.context import Cli, command
from federator.cli.merged import View, show_merged
from federator.cli.output import Column, Printer
from federator.cli.tableview import show_past_table, show_table, why_not_mirrored
from federator.connector.errors import CatalogError, StateError

if TYPE_CHECKING:
    from federator.index import Index
    from federator.index.moments import Moment
    from federator.index.tree import Node
    from federator.model import Path

PATH = Annotated[
    str | None,
    typer.Argument(
        metavar="[PATH]",
        autocompletion=complete.sources,
        help="A source or namespace: 'lake$sales', or lake/sales without quotes.",
    ),
]
AS_OF = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="WHEN", help="As it was at the end of a run, or at a time: 2026-11-20, 2026-11-20T08:30, -2d."
    ),
]
_PAGE = 1000
_FIELDS = ("id", "name", "kind", "location", "coverage", "verified", "message")


def tree(
    cli: Cli,
    path: PATH = None,
    depth: Annotated[int | None, typer.Option("--depth", min=1, help="Levels to show. Default: all.")] = None,
    as_of: AS_OF = None,
    view: Annotated[
        View, typer.Option("--view", help="By source, or merged: what sources call the same is one entry.")
    ] = View.SOURCE,
) -> None:
    """Show everything that is known as one tree."""
    if view is View.MERGED:
        show_merged(cli, parsed(path), depth, as_of)
        return
    with cli.index() as index:
        start, at = parsed(path), moment_of(index, as_of)
        top = _children(index, start, at)
        if cli.json:
            cli.out.document({"id": path_text(start), "children": [_nested(index, node, depth, at) for node in top]})
            return
        if start:
            cli.out.line(path_text(start), style="bold")
        draw(cli.out, index, start, depth, at=at)
        if not top and not start:
            cli.note("nothing was known then" if at else "nothing is known yet; federator crawl reads the sources")


def ls(
    cli: Cli,
    path: PATH = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Kind, verification and location of each.")] = False,
    as_of: AS_OF = None,
) -> None:
    """List what lies directly in a namespace; sources without PATH. A name that ends in $ holds others."""
    with cli.index() as index:
        nodes = _children_or_itself(index, parsed(path), moment_of(index, as_of))
    if cli.json:
        cli.out.document({"nodes": [_data(node) for node in nodes]})
    elif long:
        columns = [
            Column("name", wide=True),
            Column("kind"),
            Column("state"),
            Column("location", wide=True),
            Column("note", wide=True),
        ]
        cli.out.table(columns, [(_name(n), n.kind.replace("_", " "), _state(n), n.location, n.message) for n in nodes])
    else:
        for node in nodes:
            cli.out.line(_name(node))


def show(
    cli: Cli,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            autocompletion=complete.sources,
            help="A table: 'lake$sales$orders', or lake/sales/orders without quotes.",
        ),
    ],
    as_of: AS_OF = None,
) -> None:
    """Show everything that is known about one table, or one source."""
    from federator.index import tree as views
    from federator.model import path_key

    node = parsed(path)
    with cli.index() as index:
        if at := moment_of(index, as_of):
            _show_past(cli, index, node, at)
            return
        if len(node) < 2:
            _show_source(cli, index, node)
            return
        try:
            view = views.table(index, node)
        except CatalogError:
            if _is_namespace(index, node):
                raise StateError(
                    f"{path_text(node)} is a namespace, not a table", hint=f"federator ls '{path_text(node)}'"
                ) from None
            raise
        origins = {name: mirror.origin for name, mirror in cli.settings.mirrors.items()}
        why = why_not_mirrored(index, origins, view.source, path_key(tuple(view.path)))
    if cli.json:
        cli.out.document({**view.to_json(), "not_mirrored": why})
    else:
        show_table(cli.out, view, why)


def parsed(text: str | None) -> Path:
    """The path of what was typed. A slash separates as well where there is no ``$``: a shell would read that one as its own."""
    from federator.model import parse_key

    text = (text or "").strip("$") if text != "/" else ""
    if "$" not in text and "/" in text:
        return tuple(name for name in text.split("/") if name)
    return parse_key(text)


def path_text(path: Path) -> str:
    from federator.model import path_key

    return path_key(path)


def moment_of(index: Index, as_of: str | None) -> Moment | None:
    """The moment that ``--as-of`` names; None: now."""
    from federator.index.moments import moment

    return moment(index, as_of) if as_of is not None else None


def _children(index: Index, node: Path, at: Moment | None = None) -> list[Node]:
    """Every child, in an order that no database's collation decides."""
    from federator.index import history
    from federator.index import tree as views

    nodes: list[Node] = []
    after: str | None = ""
    while after is not None:
        if at is None:
            page = views.children(index, node, after=after, limit=_PAGE)
        else:
            page = history.children(index, node, at, after=after, limit=_PAGE)
        nodes += page.nodes
        after = page.next
    return sorted(nodes, key=lambda node: (node.name, node.kind))


def _children_or_itself(index: Index, node: Path, at: Moment | None) -> list[Node]:
    try:
        return _children(index, node, at)
    except CatalogError:
        if len(node) > 1:
            itself = [child for child in _children_or_none(index, node[:-1], at) if child.name == node[-1]]
            if itself:
                return itself
        raise


def _children_or_none(index: Index, node: Path, at: Moment | None = None) -> list[Node]:
    try:
        return _children(index, node, at)
    except CatalogError:
        return []


def _is_namespace(index: Index, node: Path) -> bool:
    return any(child.name == node[-1] and child.kind == "namespace" for child in _children_or_none(index, node[:-1]))


def _nested(index: Index, node: Node, depth: int | None, at: Moment | None) -> dict[str, Any]:
    data = _data(node)
    if node.kind in ("source", "namespace"):
        below = None if depth is None else depth - 1
        deeper = [] if below == 0 else _children(index, parsed(node.id), at)
        data["children"] = [_nested(index, child, below, at) for child in deeper]
    return data


def draw(out: Printer, index: Index, start: Path, depth: int | None, indent: str = "", *, at: Moment | None = None) -> None:
    """Prints what is below a node as a tree, ``depth`` levels of it."""
    nodes = _children(index, start, at)
    for number, node in enumerate(nodes):
        last = number == len(nodes) - 1
        branch, deeper = ("", "") if not start else ("└── ", "    ") if last else ("├── ", "│   ")
        out.line(f"{indent}{branch}{'  '.join(_described(node))}", style=None if start else "bold")
        if node.kind in ("source", "namespace") and (depth is None or depth > 1):
            draw(out, index, (*start, node.name), None if depth is None else depth - 1, indent + deeper, at=at)


def _described(node: Node) -> Iterator[str]:
    yield node.name
    if node.kind not in ("source", "namespace", "table"):
        yield f"({node.kind.replace('_', ' ')})"
    if node.location and node.kind not in ("source", "namespace"):
        yield node.location
    state = _state(node)
    if state not in ("", "ok", "complete", "carried", "valid"):
        yield f"[{state.replace('_', ' ')}]"
    if node.message:
        yield f"({node.message})"


def _state(node: Node) -> str:
    return node.coverage or node.verified or ""


def _name(node: Node) -> str:
    from federator.model import path_key

    return path_key((node.name,)) + ("$" if node.kind in ("source", "namespace") else "")


def _data(node: Node) -> dict[str, Any]:
    return {name: getattr(node, name) for name in _FIELDS}


def _show_past(cli: Cli, index: Index, node: Path, at: Moment) -> None:
    from federator.index import history

    view = history.table(index, node, at)
    if cli.json:
        cli.out.document(view.to_json())
    else:
        show_past_table(cli.out, view)


def _show_source(cli: Cli, index: Index, node: Path) -> None:
    from dataclasses import asdict

    from federator.cli.output import at
    from federator.index import tree as views

    found = [view for view in views.sources(index) if (view.name,) == node]
    if not found:
        known = ", ".join(view.name for view in views.sources(index)) or "none; run federator crawl"
        raise StateError(f"no source {path_text(node)!r} is in the index", hint=f"known: {known}")
    view = found[0]
    if cli.json:
        cli.out.document(asdict(view))
        return
    cli.out.pairs([
        ("source", view.name), ("impl", view.impl), ("state", view.state), ("revision", view.revision),
        ("namespaces", view.namespaces), ("tables", view.tables), ("not read in full", view.failed_namespaces),
        ("carried", view.carried), ("crawled", at(view.crawled_at)), ("read in full", at(view.full_at)),
        ("changed", at(view.published_at)), ("note", view.message or ""),
    ])  # fmt: skip


def register(app: typer.Typer) -> None:
    for function in (tree, ls, show):
        command(app, function.__name__)(function)
