"""``datasets``, ``drift``: what lies at each storage location, who declares it, and what disagrees. No Spark, no catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete
from federator.cli.browse import AS_OF
from federator.cli.context import Cli, command
from federator.cli.output import Column, Printer, ago, at, counted
from federator.model.drift import DriftKind, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from federator.index.datasets import DatasetView, Wanted
    from federator.index.drift import SeenDrift
    from federator.index.history import PastDataset


_COLUMNS = [Column("location", wide=True), Column("state"), Column("declared as", wide=True), Column("note", wide=True)]


def datasets(
    cli: Cli,
    location: Annotated[
        str | None,
        typer.Argument(metavar="[LOCATION]", help="One place in detail, in any of its spellings: s3a://lake/orders."),
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="Only those that opening found to be so: valid, missing, ... or unverified.")
    ] = None,
    declared_in: Annotated[
        str | None, typer.Option("--declared-in", autocompletion=complete.sources, help="Only those that this source declares.")
    ] = None,
    conflicts: Annotated[
        bool, typer.Option("--conflicts", help="Only those that are declared twice in a source, or on which catalogs disagree.")
    ] = False,
    as_of: AS_OF = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 200,
) -> None:
    """List the places where tables lie with everyone who declares them, or show one place."""
    from federator.connector.errors import StateError
    from federator.index import datasets as views
    from federator.index.freshness import of_source

    if state is not None and state not in views.STATES:
        raise StateError(f"{state!r} is no state of a dataset", hint=f"states: {', '.join(views.STATES)}")
    wanted = views.Wanted(state, declared_in, conflicts)
    if as_of is not None:
        _past(cli, location, as_of, wanted, limit=limit)
        return
    if location is not None:
        with cli.index() as index:
            _show(cli, views.get(index, location, cli.settings.aliases))
        return
    with cli.index() as index:
        if declared_in is not None:
            of_source(index, declared_in)
        page = views.page(index, wanted, limit=limit)
    if cli.json:
        cli.out.document({"datasets": [view.to_json() for view in page.datasets], "more": page.next is not None})
        return
    if not page.datasets:
        cli.note("no such dataset is known")
        return
    cli.out.table(_COLUMNS, [(v.location, v.state.replace("_", " "), _names(v), _note(v)) for v in page.datasets])
    if page.next is not None:
        cli.note(f"there are more; --limit {limit * 4} shows more of them")


def _past(cli: Cli, location: str | None, as_of: str, wanted: Wanted, *, limit: int) -> None:
    from federator.index import history
    from federator.index.moments import moment

    with cli.index() as index:
        then = moment(index, as_of)
        if location is not None:
            found, more = [history.dataset(index, location, cli.settings.aliases, then)], False
        else:
            page = history.datasets(index, then, **asdict(wanted), limit=limit)
            found, more = page.datasets, page.next is not None
    if cli.json:
        cli.out.document({"at": then.at, "datasets": [asdict(view) for view in found], "more": more})
        return
    if not found:
        cli.note("no such dataset was known then")
        return
    cli.out.table(_COLUMNS, [(v.location, (v.state or "not kept").replace("_", " "), _names(v), _note(v)) for v in found])
    if more:
        cli.note(f"there are more; --limit {limit * 4} shows more of them")


def _names(view: DatasetView | PastDataset) -> str:
    return ", ".join(declared.id for declared in view.declarations)


def _note(view: DatasetView | PastDataset) -> str:
    notes = [
        "declared twice in a source" if view.duplicates else "",
        f"they disagree on {', '.join(found.field for found in view.disagreements)}" if view.disagreements else "",
        f"inside {inside[0]}" if (inside := getattr(view, "inside", ())) else "",
    ]
    return "; ".join(note for note in notes if note)


def _show(cli: Cli, view: DatasetView) -> None:
    if cli.json:
        cli.out.document(view.to_json())
        return
    out = cli.out
    out.line(view.location, style="bold")
    out.pairs(_facts(view.state, view.verified or {}), indent="  ")
    out.line(f"declared as ({counted(len(view.declarations), 'declaration')})", style="bold")
    out.pairs([(declared.id, declared.location) for declared in view.declarations], indent="  ")
    _list(out, "declared more than once in its source", view.duplicates)
    for found in view.disagreements:
        _list(out, f"they disagree on {found.field}", [", ".join(side) for side in found.sides])
    _list(out, "inside another table's directory", view.inside)
    _list(out, "holds other tables", view.holds)


def _facts(state: str, found: dict[str, Any]) -> list[tuple[str, object]]:
    rows = [
        ("state", state.replace("_", " ")), ("why", found.get("message")), ("version", found.get("version")),
        ("rows", _number(found.get("rows"))), ("bytes", _number(found.get("size"))), ("fragments", found.get("fragments")),
        ("indices", found.get("indices")), ("file format", found.get("format")), ("schema", found.get("fingerprint")),
        ("changed", at(found["changed_at"]) if found.get("changed_at") else None),
        ("opened", at(found["checked_at"]) if found else None), ("through", found.get("checked_through")),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value is not None]


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _list(out: Printer, title: str, lines: list[str]) -> None:
    if lines:
        out.line(title, style="bold")
        for line in lines:
            out.line(f"  {line}")


def drift(
    cli: Cli,
    kind: Annotated[DriftKind | None, typer.Option("--kind", help="Only of this kind.")] = None,
    severity: Annotated[Severity | None, typer.Option("--severity", help="Only as grave as this.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", autocompletion=complete.sources, help="Only of this source's tables.")
    ] = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="What was found once and is no more.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 200,
) -> None:
    """List where catalogs, or a catalog and its storage, have come to say different things. Every run brings it up to date."""
    from dataclasses import asdict

    from federator.index import drift as store
    from federator.index.freshness import of_source

    with cli.index() as index:
        if source is not None:
            of_source(index, source)
        found = store.page(index, kind=kind, severity=severity, source=source, resolved=resolved, limit=limit + 1)
    shown = found[:limit]
    if cli.json:
        cli.out.document({"drift": [asdict(seen) for seen in shown], "more": len(found) > limit})
        return
    if not shown:
        cli.note("no drift is known")
        return
    show_drift(cli.out, shown)
    if len(found) > limit:
        cli.note(f"there are more; --limit {limit * 4} shows more of them")


def show_drift(out: Printer, shown: Sequence[SeenDrift]) -> None:
    """Prints what has drifted, a line each."""
    columns = [Column("severity"), Column("kind"), Column("table", wide=True), Column("against", wide=True), Column("since")]
    columns.append(Column("what", wide=True))
    out.table(columns, [(s.severity, s.kind.replace("_", " "), s.subject, s.other, ago(s.first_seen), s.detail) for s in shown])


def register(app: typer.Typer) -> None:
    for function in (datasets, drift):
        command(app, function.__name__)(function)
