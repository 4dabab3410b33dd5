"""``declare``: declare existing tables, for example orphans, in catalogs. It plans and journals, and does not use Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import completion, plan_file, result_output
from federator.cli.context import Cli, command
from federator.cli.errors import FAILED, OK, PARTIAL, PENDING
from federator.cli.interactive_run import open_run
from federator.cli.run_commands import YES, print_plans, print_result
from federator.connector.errors import ConfigError
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from federator.stages.result import RunResult


def declare(
    cli: Cli,
    locations: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Location of a table: s3://lake/sales/orders.lance.")
    ],
    into: Annotated[
        list[str],
        typer.Option(
            "--into",
            metavar="SOURCE",
            autocompletion=completion.complete_sources,
            help="Source to declare the table in. Repeatable, or comma-separated: a,b,c.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Path in the source: sales$orders. {table} is the table's directory, {1}, {2} the ones above.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to save the plans in, for federator apply FILE.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="With -o, exit with 2 if changes are pending.")
    ] = False,
    yes: YES = False,
) -> int:
    """Declare existing tables in catalogs, for example those that federator drift --kind orphan lists.

    The declarations belong to the user: no mirror changes or removes them.
    """
    from federator.model import is_location
    from federator.stages.declare import DeclareSpec

    if out is None and not yes and not sys.stdin.isatty():
        raise ConfigError(
            "a confirmation is needed, but stdin is not a terminal", hint="confirm with --yes, or save the plans with -o FILE"
        )
    absolute = [location if is_location(location) else Path(location).absolute().as_posix() for location in locations]
    targets = list(dict.fromkeys(target for names in into for target in names.split(",")))
    with open_run(cli, spark=False) as federator:
        planned = federator.declare(DeclareSpec(absolute, targets, name))
    if out is not None:
        plan_file.save_plans(out, planned.plans)
        print_plans(cli, planned, everything=True)
        cli.print_note(f"saved in {out}; apply it with federator apply {out}")
        code = _exit_code(planned)
        return PENDING if detailed_exitcode and code == OK and planned.change_count else code
    changing = [plan for plan in planned.plans if plan.changes]
    if not cli.json or not changing:
        print_plans(cli, planned, everything=True)
    if not changing:
        return _exit_code(planned)
    if not yes and not typer.confirm(f"apply {format_count(planned.change_count, 'change')}?", err=True):
        cli.print_note("nothing was changed")
        return OK
    with open_run(cli, spark=False) as federator:
        result = federator.apply([(plan, plan.digest) for plan in changing])
    code = print_result(cli, result)
    if cli.json:
        result_output.print_errors(cli, planned)
    return code or _exit_code(planned)


def _exit_code(planned: RunResult) -> int:
    """Return the exit code: a refused declaration is a failure, unless the location is already declared."""
    refused = [r for plan in planned.plans for r in plan.refusals if r.reason.value != "location_declared"]
    if not refused:
        return result_output.exit_code(planned)
    return PARTIAL if planned.change_count else FAILED


def register(app: typer.Typer) -> None:
    command(app, "declare")(declare)
