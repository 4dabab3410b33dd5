"""``search``: the same query language and results as the API's search. It uses neither Spark nor a catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command
from federator.cli.errors import USAGE, print_error
from federator.cli.printer import escape_text
from federator.cli.terminal import Column

if TYPE_CHECKING:
    from federator.views.search.engine import SearchPage
    from federator.views.search.facets import Facets

_FIELDS = ("id", "name", "kind", "location", "verified", "message")


def search(
    cli: Cli,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="Query: words, prefixes (ord*), globs ('sales$*'), fields (name:orders). '-' or NOT before a term excludes it.",
        ),
    ] = "",
    source: Annotated[
        list[str] | None,
        typer.Option("--source", autocompletion=completion.complete_sources, help="Name of the source, or a glob of names."),
    ] = None,
    namespace: Annotated[list[str] | None, typer.Option("--namespace", help="Words of the namespace, or its path.")] = None,
    owner: Annotated[list[str] | None, typer.Option("--owner", help="Owner of the table.")] = None,
    property_: Annotated[list[str] | None, typer.Option("--property", help="Property: key, or key=value.")] = None,
    column: Annotated[list[str] | None, typer.Option("--column", help="Name of a column.")] = None,
    location: Annotated[list[str] | None, typer.Option("--location", help="Part of the location.")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="Verification state: valid, missing, ...")] = None,
    facets: Annotated[bool, typer.Option("--facets", help="Count the matches by source, namespace, state and owner.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of tables.")] = 50,
) -> int | None:
    """Find tables that match the query and all options."""
    from federator.connector import InvalidInput
    from federator.views.freshness import get_freshness
    from federator.views.search.engine import search_tables

    filter_values = {
        "source": source, "namespace": namespace, "owner": owner, "property": property_, "column": column, "location": location,
        "state": state,
    }  # fmt: skip
    # A quote would end the quoted term. The search treats quotes as separators anyway, so a space is equivalent.
    filters = [f'{field}:"{value.replace(chr(34), " ")}"' for field, values in filter_values.items() for value in values or ()]
    query = " ".join([text, *filters]).strip() or "*"
    try:
        with cli.index() as index:
            for name in source or ():
                if not set(name) & set("*?["):
                    get_freshness(index, name)
            # The counts also say how many tables match.
            results = search_tables(index, query, limit=limit, facets=True)
    except InvalidInput as error:
        print_error(error, json_format=cli.json)
        return USAGE
    if cli.json:
        _print_json(cli, results, facets=facets)
    else:
        _print_page(cli, results, query, limit=limit, facets=facets)
    return None


def _print_page(cli: Cli, results: SearchPage, query: str, *, limit: int, facets: bool) -> None:
    suggestions = " or ".join(escape_text(text) for text in results.did_you_mean)
    if not results.nodes:
        cli.print_note(f"no table matches {escape_text(query)}" + (f"; did you mean {suggestions}?" if suggestions else ""))
        return
    if results.nodes[0].match.kind == "typo":
        cli.print_note(
            f"no table matches {escape_text(query)}; these have similar names" + (f": {suggestions}" if suggestions else "")
        )
    columns = [Column("table", wide=True), Column("state"), Column("location", cut=True)]
    cli.out.table(columns, [(node.id, node.verified or "", node.location) for node in results.nodes])
    if results.facets and facets:
        _print_facets(cli, results.facets)
    total = results.total
    if results.next is not None or results.capped:
        number = f"{'' if total.exact else 'more than '}{total.count:,} tables match" if total else "there are more"
        narrower = " Add a word to narrow the search." if results.capped else ""
        cli.print_note(f"{number}; --limit {limit * 4} shows more of them.{narrower}")
    elif suggestions and results.nodes[0].match.kind != "typo":
        cli.print_note(f"did you mean {suggestions}?")


def _print_json(cli: Cli, results: SearchPage, *, facets: bool) -> None:
    counts = {"facets": _facets_to_json(results.facets)} if results.facets and facets else {}
    nodes = [{name: getattr(node, name) for name in _FIELDS} | {"match": asdict(node.match)} for node in results.nodes]
    total = asdict(results.total) if results.total else None
    more = results.next is not None or results.capped
    document = {"nodes": nodes, "more": more, "total": total, "did_you_mean": list(results.did_you_mean), **counts}
    cli.out.document(document, rows="nodes", columns=(*_FIELDS, "match"))


def _facets_to_json(facets: Facets) -> dict[str, Any]:
    values = {name: [{"value": value, "count": count} for value, count in pairs] for name, pairs in facets.values.items()}
    return {"counted": facets.counted, "exact": facets.exact, **values}


def _print_facets(cli: Cli, facets: Facets) -> None:
    prefix = "" if facets.exact else "at least "
    rows = [(name, value, f"{prefix}{count:,}") for name, pairs in facets.values.items() for value, count in pairs]
    cli.out.line()
    cli.out.table([Column("by"), Column("value", wide=True), Column("tables", right=True)], rows)


def register(app: typer.Typer) -> None:
    command(app, "search", paged=True)(search)
