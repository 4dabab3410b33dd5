"""``report`` and ``reports``: create and list reports in HTML, CSV, JSON and Parquet."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from federator.cli import completion, result_output
from federator.cli.context import Cli, command, cut_list
from federator.cli.interactive_run import open_run
from federator.cli.printer import format_column_time
from federator.cli.terminal import Column
from federator.connector.errors import ConfigError, StateError
from federator.model.report_kinds import REPORT_KINDS, ReportKind

_KINDS = ", ".join(REPORT_KINDS)


def report(
    cli: Cli,
    name: Annotated[
        str,
        typer.Argument(
            metavar="REPORT",
            autocompletion=completion.complete_reports,
            help=f"Kind of the report ({_KINDS}), or the name of a configured one.",
        ),
    ],
    to: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="New directory to copy the files to.")] = None,
    formats: Annotated[
        str | None,
        typer.Option("--format", metavar="LIST", help="Comma-separated formats: html, json, csv, parquet. Default: all."),
    ] = None,
) -> int:
    """Create a report from the current index, and keep it."""
    from federator.settings.retention import REPORT_FORMATS
    from federator.stages.report import ReportSpec

    chosen = tuple(part.strip() for part in formats.split(",")) if formats else ()
    unknown = [part for part in chosen if part not in REPORT_FORMATS]
    if unknown:
        raise ConfigError(f"--format: {unknown[0]!r} is not a format", hint=f"use {', '.join(REPORT_FORMATS)}")
    spec = ReportSpec.from_settings(cli.settings, name, chosen)  # type: ignore[arg-type]  # checked above
    if to is not None and to.exists():
        raise StateError(f"{to} already exists", hint="choose a new directory: reports are never overwritten")
    with cli.index():
        pass  # a run would create a missing one, and the report would be empty
    with open_run(cli, spark=True) as federator:
        result = federator.make_report(spec)
    for stored in result.reports:
        if to is not None:
            shutil.copytree(stored.directory, to)
        if cli.json:
            cli.out.document(asdict(stored))
        else:
            for file in stored.files:
                cli.out.line(str((to or Path(stored.directory)) / file.name))
    result_output.print_errors(cli, result)
    return result_output.exit_code(result)


def reports(
    cli: Cli,
    kind: Annotated[ReportKind | None, typer.Option("--kind", help=f"Only reports of this kind: {_KINDS}.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only reports with this name.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of reports, newest first.")] = 20,
) -> None:
    """List the stored reports."""
    from federator.store import reports as store

    with cli.index() as index, index.read() as connection:
        found = store.list_reports(connection, kind=kind, name=name, limit=limit + 1)
    stored_reports, more = cut_list(found, limit)
    if cli.json:
        document = {"reports": [asdict(report) for report in stored_reports], "more": more}
        cli.out.document(document, rows="reports", columns=store.StoredReport)
    elif not stored_reports:
        cli.print_note("there is no report; create one with federator report inventory")
    else:
        columns = [Column("report"), Column("name"), Column("kind"), Column("by"), Column("made"), Column("in", wide=True)]
        cli.out.table(
            columns,
            [
                (report.id, report.name, report.kind, report.actor, format_column_time(report.made_at), report.directory)
                for report in stored_reports
            ],
        )
        if more:
            cli.print_more(limit)


def register(app: typer.Typer) -> None:
    command(app, "report")(report)
    command(app, "reports", paged=True)(reports)
