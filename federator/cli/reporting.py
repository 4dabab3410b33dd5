"""``report``, ``reports``: what the index says, as a page, CSV, JSON and Parquet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete, results
from federator.cli.context import Cli, command
from federator.cli.output import Column, at
from federator.cli.running import working
from federator.connector.errors import ConfigError, StateError

if TYPE_CHECKING:
    from federator.index.reports import Kept

_KINDS = "inventory, drift, mirrors, freshness, growth, access"


def report(
    cli: Cli,
    name: Annotated[
        str,
        typer.Argument(metavar="REPORT", autocompletion=complete.reports, help=f"{_KINDS}, or one that is configured."),
    ],
    to: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="Also copy its files to a new directory.")] = None,
    formats: Annotated[
        str | None, typer.Option("--format", metavar="LIST", help="Of html, json, csv, parquet, by commas. Default: all.")
    ] = None,
) -> int:
    """Make a report of what is known now, and keep it."""
    from federator.settings.keeping import REPORT_FORMATS
    from federator.sync.reporting import ReportWanted

    chosen = tuple(part.strip() for part in formats.split(",")) if formats else ()
    unknown = [part for part in chosen if part not in REPORT_FORMATS]
    if unknown:
        raise ConfigError(f"--format: {unknown[0]!r} is no format", hint=f"formats: {', '.join(REPORT_FORMATS)}")
    wanted = ReportWanted.of(cli.settings, name, chosen)  # type: ignore[arg-type]  # formats, as was just seen
    if to is not None and to.exists():
        raise StateError(f"{to} is there already", hint="a report is never written over another: choose another name")
    with working(cli, spark=True) as federator:
        result = federator.make_report(wanted)
    for made in result.reports:
        if to is not None:
            shutil.copytree(made.directory, to)
        if cli.json:
            cli.out.document(_data(made))
        else:
            for file in made.files:
                cli.out.line(str((to or Path(made.directory)) / file.name))
    results.show_errors(cli, result)
    return results.exit_code(result)


def reports(
    cli: Cli,
    kind: Annotated[str | None, typer.Option("--kind", help=f"Only of this kind: {_KINDS}.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only of this name.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, newest first.")] = 20,
) -> None:
    """List the reports that are kept."""
    from federator.index import reports as store

    with cli.index() as index, index.read() as connection:
        found = store.page(connection, kind=kind, name=name, limit=limit)
    if cli.json:
        cli.out.document({"reports": [_data(made) for made in found]})
    elif not found:
        cli.note("no report is kept; federator report inventory makes one")
    else:
        columns = [Column("report"), Column("name"), Column("kind"), Column("by"), Column("made"), Column("in", wide=True)]
        cli.out.table(columns, [(r.id, r.name, r.kind, r.actor, at(r.made_at), r.directory) for r in found])


def _data(made: Kept) -> dict[str, Any]:
    return {
        "id": made.id, "kind": made.kind, "name": made.name, "actor": made.actor, "made_at": made.made_at,
        "directory": made.directory, "files": [{"name": file.name, "size": file.size} for file in made.files],
    }  # fmt: skip


def register(app: typer.Typer) -> None:
    command(app, "report")(report)
    command(app, "reports")(reports)
