"""Root of the command line: global options, command groups, and the mapping of exceptions to exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

import federator
from federator.cli.command_modules import LazyCommands
from federator.cli.context import CONFIG, LOG_FORMAT, NO_PAGER, OUTPUT, QUIET, CommandGroup, GlobalOptions
from federator.cli.errors import INTERRUPTED, print_unexpected_error, print_usage_error
from federator.cli.printer import flush, prepare_streams
from federator.connector.call_deadline import has_abandoned_calls

# Commands of other programs, and what does the same here. Similar letters would suggest something else.
_COMMANDS_BY_OTHER_NAME = {
    "describe": "show", "get": "show", "list": "ls", "find": "search", "status": "runs", "check": "doctor", "start": "serve",
    "run": "sync", "register": "declare",
}  # fmt: skip


class Root(CommandGroup):
    """The root command group. It exits with the federator's exit codes instead of the parser's."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": LazyCommands()})

    def main(self, *args: Any, **extra: Any) -> Any:
        prepare_streams()
        code = self._run(*args, **{**extra, "standalone_mode": False, "prog_name": "federator"})
        flush()
        if has_abandoned_calls():
            # The libraries of these calls would wait for them at the end of the process.
            os._exit(code)
        sys.exit(code)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            if name := _COMMANDS_BY_OTHER_NAME.get(args[0]):
                error.message = f"No such command {args[0]!r}. Did you mean {name!r}?"
            raise

    def _run(self, *args: Any, **extra: Any) -> int:
        """Run the command and return the exit code."""
        try:
            return super().main(*args, **extra) or 0
        except typer.TyperException as error:
            return print_usage_error(error)
        except typer.Abort:
            sys.stderr.write("aborted\n")
            return INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the outermost boundary: print one line instead of a traceback
            return print_unexpected_error(error)


app = typer.Typer(
    cls=Root, rich_markup_mode=None, no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip


def _version(show: bool) -> None:
    if show:
        typer.echo(f"federator {federator.__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    config: CONFIG = None,
    output: OUTPUT = None,
    quiet: QUIET = False,
    no_pager: NO_PAGER = False,
    log_format: LOG_FORMAT = None,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Index the Lance tables of a company, mirror declarations between its catalogs, and record each change in an audit log."""
    ctx.obj = GlobalOptions(config, output, quiet, log_format, no_pager)
