"""``search``: the same words, and the same tables in the same order, as the API's search. No Spark, no catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete
from federator.cli.context import Cli, command
from federator.cli.output import Column, shown

if TYPE_CHECKING:
    from federator.index.search import Facets

_FIELDS = ("id", "name", "kind", "location", "verified", "message")


def search(
    cli: Cli,
    text: Annotated[
        str,
        typer.Argument(
            metavar="[TEXT]", help="Words, beginnings (ord*), globs ('sales$*'), fields (name:orders, column:price)."
        ),
    ] = "",
    source: Annotated[
        list[str] | None, typer.Option("--source", autocompletion=complete.sources, help="In this source, or a glob of names.")
    ] = None,
    namespace: Annotated[list[str] | None, typer.Option("--namespace", help="Words, or the path, of the namespace.")] = None,
    owner: Annotated[list[str] | None, typer.Option("--owner", help="The owner.")] = None,
    property_: Annotated[list[str] | None, typer.Option("--property", help="A property: key, or key=value.")] = None,
    column: Annotated[list[str] | None, typer.Option("--column", help="A column's name.")] = None,
    location: Annotated[list[str] | None, typer.Option("--location", help="A part of the location.")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="What verification found: valid, missing, ...")] = None,
    facets: Annotated[bool, typer.Option("--facets", help="Count the matches by source, namespace, state and owner.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 50,
) -> None:
    """Find tables. All that is given must hold."""
    from federator.index.search import find

    given = {
        "source": source, "namespace": namespace, "owner": owner, "property": property_, "column": column, "location": location,
        "state": state,
    }  # fmt: skip
    # A quote ends a quoted term, and is a separator inside words anyway.
    filters = [f'{field}:"{value.replace(chr(34), " ")}"' for field, values in given.items() for value in values or ()]
    wanted = " ".join([text, *filters]).strip() or "*"
    with cli.index() as index:
        found = find(index, wanted, limit=limit, facets=facets)
    if cli.json:
        counts = {"facets": _facets(found.facets)} if found.facets else {}
        nodes = [{name: getattr(node, name) for name in _FIELDS} for node in found.nodes]
        cli.out.document({"nodes": nodes, "more": found.next is not None or found.capped, **counts})
        return
    if not found.nodes:
        cli.note(f"no table matches {shown(wanted)}; words match whole, and ord* matches their beginnings")
        return
    columns = [Column("table", wide=True), Column("state"), Column("location", wide=True)]
    cli.out.table(columns, [(node.id, node.verified or "", node.location) for node in found.nodes])
    if found.facets:
        _show(cli, found.facets)
    if found.next is not None:
        cli.note(f"there are more; --limit {limit * 4} shows more of them")
    elif found.capped:
        cli.note(f"there are more; --limit {limit * 4} shows more of them, further words find the ones that are meant")


def _facets(facets: Facets) -> dict[str, Any]:
    values = {name: [{"value": value, "count": count} for value, count in pairs] for name, pairs in facets.values.items()}
    return {"counted": facets.counted, "exact": facets.exact, **values}


def _show(cli: Cli, facets: Facets) -> None:
    least = "" if facets.exact else "at least "
    rows = [(name, value, f"{least}{count:,}") for name, pairs in facets.values.items() for value, count in pairs]
    cli.out.line()
    cli.out.table([Column("by"), Column("value", wide=True), Column("tables", right=True)], rows)


def register(app: typer.Typer) -> None:
    command(app, "search")(search)
