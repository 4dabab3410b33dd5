"""``declare``: physical tables, orphans for one, into catalogs, by a plan and through the journal. No Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import complete, planfile, results
from federator.cli.context import Cli, command
from federator.cli.errors import FAILED, OK, PARTIAL, PENDING
from federator.cli.output import counted
from federator.cli.pipeline import YES, done, show
from federator.cli.running import working
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from federator.sync import Result


def declare(
    cli: Cli,
    places: Annotated[list[str], typer.Argument(metavar="PATH...", help="Where the table lies: s3://lake/sales/orders.lance.")],
    into: Annotated[
        list[str],
        typer.Option(
            "--into", metavar="SOURCE", autocompletion=complete.sources, help="Declare it there; repeat it, or a,b,c."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help="Its path there: sales$orders, or with {table} and {1}, {2} for the directories above."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Save the plans for federator apply FILE.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="With -o, exit with 2 where changes are pending.")
    ] = False,
    yes: YES = False,
) -> int:
    """Declare physical tables in catalogs: those that federator drift --kind orphan lists, or any other.

    What is declared belongs to whoever asked: no mirror changes it or takes it away.
    """
    from federator.model import is_location
    from federator.sync.declaring import Wanted

    if out is None and not yes and not sys.stdin.isatty():
        raise ConfigError(
            "this asks before it changes anything, and there is nobody to ask", hint="--yes answers; -o FILE saves it"
        )
    whole = [place if is_location(place) else Path(place).absolute().as_posix() for place in places]
    targets = list(dict.fromkeys(target for given in into for target in given.split(",")))
    with working(cli, spark=False) as federator:
        planned = federator.declare(Wanted(whole, targets, name))
    if out is not None:
        planfile.save(out, planned.plans)
        show(cli, planned, everything=True)
        cli.note(f"saved in {out}; federator apply {out} carries it out")
        code = _code(planned)
        return PENDING if detailed_exitcode and code == OK and planned.changes else code
    changing = [made for made in planned.plans if made.changes]
    if not cli.json or not changing:
        show(cli, planned, everything=True)
    if not changing:
        return _code(planned)
    if not yes and not typer.confirm(f"apply {counted(planned.changes, 'change')}?", err=True):
        cli.note("nothing was changed")
        return OK
    with working(cli, spark=False) as federator:
        result = federator.apply([(made, made.digest) for made in changing])
    code = done(cli, result)
    if cli.json:
        results.show_errors(cli, planned)
    return code or _code(planned)


def _code(planned: Result) -> int:
    """What a person asked for and cannot get is a failure; what is declared there already is fine."""
    refused = [r for made in planned.plans for r in made.refusals if r.reason.value != "location_declared"]
    if not refused:
        return results.exit_code(planned)
    return PARTIAL if planned.changes else FAILED


def register(app: typer.Typer) -> None:
    command(app, "declare")(declare)
