"""The root of the command line: global options, the command groups, and the one boundary where exceptions become exit codes."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import federator
from federator.cli import (
    audit,
    browse,
    check,
    database,
    datasets,
    declaring,
    demo,
    diffing,
    explaining,
    exporting,
    history,
    init,
    instance,
    jobs,
    ledger,
    mirrors,
    notifications,
    pipeline,
    plans,
    reporting,
    searching,
    service,
    sources,
    tokens,
)
from federator.cli.context import CONFIG, LOG_FORMAT, OUTPUT, QUIET, Chosen
from federator.cli.errors import FAILED, INTERRUPTED, report_unexpected, report_usage
from federator.cli.output import flush, prepare_streams


class Root(TyperGroup):
    """The command group that ends the process with our exit codes instead of the parser's."""

    def main(self, *args: Any, **extra: Any) -> Any:
        prepare_streams()
        code = self._code(*args, **{**extra, "standalone_mode": False, "prog_name": "federator"})
        flush()
        sys.exit(code)

    def _code(self, *args: Any, **extra: Any) -> int:
        try:
            return super().main(*args, **extra) or 0
        except typer.TyperException as error:
            return report_usage(error)
        except typer.Abort:
            sys.stderr.write("aborted\n")
            return INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the boundary: nobody above could say it better than one line
            return report_unexpected(error) or FAILED


app = typer.Typer(
    cls=Root, rich_markup_mode=None, no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"federator {federator.__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    config: CONFIG = None,
    output: OUTPUT = None,
    quiet: QUIET = False,
    log_format: LOG_FORMAT = None,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Knows every Lance table of a company, keeps its catalogs in agreement, and can prove what it did."""
    ctx.obj = Chosen(config, output, quiet, log_format)


_GROUPS = (
    init, check, pipeline, plans, mirrors, ledger, browse, searching, datasets, declaring, exporting, explaining, history, diffing,
    reporting, audit, instance, sources, jobs, tokens, notifications, service, demo, database,
)  # fmt: skip
for group in _GROUPS:
    group.register(app)
