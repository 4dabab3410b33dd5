"""``conformance``: the contract suite against a live catalog."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.context import Cli, command
from federator.cli.documents import Output
from federator.cli.errors import FAILED, INTERRUPTED, OK, print_message
from federator.cli.printer import escape_text
from federator.cli.terminal import Column
from federator.cli.terminal_logs import configure_terminal_logs
from federator.cli.tree import parse_path
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from federator.testing.conformance.report import Check, Report
    from federator.testing.conformance.target import Target


class ReportFormat(StrEnum):
    """Formats of the verdicts on stdout."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def conformance(
    cli: Cli,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="IMPL KEY=VALUE",
            help="Connector, and its properties as in [sources.NAME]. A secret is a reference, '${VARIABLE}' or file:PATH.",
        ),
    ] = None,
    uri: Annotated[
        str | None, typer.Option("--uri", metavar="URL", help="Test a Lance REST server, instead of a connector.")
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option("--parent", metavar="PATH", help="Namespace in which the run creates its own. Default: the only one."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth", metavar="N", min=1, help="Namespace levels above each table of the server at --uri. Default: any number."
        ),
    ] = None,
    location: Annotated[
        str | None,
        typer.Option(
            "--location", metavar="URI", help="Prefix of the declared locations. Default: as the catalog chooses them."
        ),
    ] = None,
    crawl: Annotated[bool, typer.Option("--crawl", help="Also read the complete catalog, several times.")] = False,
    races: Annotated[
        bool,
        typer.Option(
            "--races", help="Also declare one name concurrently. Some servers then keep a table that nobody can remove."
        ),
    ] = False,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Name of the server in the report.")] = "",
    report_file: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Also write the report to this file, as Markdown.")
    ] = None,
    report_format: Annotated[
        ReportFormat | None, typer.Option("--output", help="Output format of data. Default: table.")
    ] = None,
) -> int:
    """Run the contract suite against a live catalog, and print a verdict for each operation.

    The run creates one namespace with a random name, declares tables in it, and removes all of that afterwards. It changes nothing
    else, and says before what it does. Needs the extra conformance.
    """
    if report_format:
        cli.output = Output.JSON if report_format is ReportFormat.JSON else Output.TABLE
    target = _parse_target(words or [], uri, parent, location, depth, crawl=crawl, races=races)
    run = _import_run()
    cli.print_note(f"conformance of {title or uri or target.connector.impl}: this run")
    for line in target.describe():
        cli.print_note(f"  {escape_text(line)}")
    configure_terminal_logs("error")
    result = run.run_conformance(target, lambda check: _print_progress(cli, check), title or uri or "")
    if report_file:
        report_file.write_text(result.to_markdown(), encoding="utf-8")
    if cli.json:
        cli.out.document(result.to_json())
    elif report_format is ReportFormat.MARKDOWN:
        cli.out.text(result.to_markdown())
    else:
        _print_table(cli, result)
    for text in result.remaining:
        print_message(f"not removed: {text}", "remove it by hand")
    if result.interrupted:
        return INTERRUPTED
    return FAILED if result.has_failed or result.remaining else OK


def _parse_target(
    words: list[str],
    uri: str | None,
    parent: str | None,
    location: str | None,
    depth: int | None,
    *,
    crawl: bool,
    races: bool,
) -> Target:
    from federator.registry import get_connector
    from federator.testing.conformance.target import Target

    impl = words[0] if words and "=" not in words[0] else None
    if (impl is None) == (uri is None):
        raise ConfigError(
            "a connector or --uri is needed, and not both", hint="federator conformance hive3 uri=thrift://host:9083"
        )
    if depth is not None and uri is None:
        raise ConfigError("--depth needs --uri", hint="a connector knows the levels of its catalog")
    properties = {"uri": uri} if uri else {}
    for word in words[1 if impl else 0 :]:
        key, separator, value = word.partition("=")
        if not separator:
            raise ConfigError(f"{word!r} is not KEY=VALUE", hint="write uri=thrift://host:9083")
        properties[key] = value
    return Target(
        get_connector(impl or "rest"), properties, parent=None if parent is None else parse_path(parent), location=location,
        crawls_everything=crawl, races_for_names=races, server_only=uri is not None, depth=depth,
    )  # fmt: skip


def _import_run() -> ModuleType:
    """Return the module that runs the suite. Raise ConfigError if pytest is missing."""
    try:
        from federator.testing.conformance import run
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the contract suite needs the module {error.name!r}", hint="pip install 'lance-federator[conformance]'"
        ) from error
    return run


def _print_progress(cli: Cli, check: Check) -> None:
    cli.print_note(f"  {check.verdict.value:<13}  {escape_text(check.operation)}: {escape_text(check.title)}")


def _print_table(cli: Cli, report: Report) -> None:
    columns = [Column("operation"), Column("verdict"), Column("passed", right=True), Column("why", wide=True)]
    rows = []
    for row in report.operations:
        first, *others = row.details or [""]
        rows.append((row.operation, row.verdict.value, row.passed_ratio, first))
        rows += [("", "", "", detail) for detail in others]
    cli.out.table(columns, rows)
    cli.out.line()
    cli.out.line(f"{report.summary}{'; interrupted, checks are missing' if report.interrupted else ''}")


def register(app: typer.Typer) -> None:
    command(app, "conformance", data=False)(conformance)
