"""``audit``: the record of what was done."""

from __future__ import annotations

import typer

from federator.cli.context import Cli, command
from federator.cli.errors import FAILED, OK, say_error
from federator.cli.output import counted

group = typer.Typer(help="The append-only record of what was done.", no_args_is_help=True, rich_markup_mode=None)


def verify(cli: Cli) -> int:
    """Check that no event of the audit log was altered or removed."""
    from federator.audit import first_broken
    from federator.index import audit_log

    with cli.index() as index:
        broken = first_broken(index)
        with index.read() as connection:
            sealed, digest = audit_log.head(connection)
        waiting = audit_log.unsealed_count(index)
    if cli.json:
        cli.out.document(
            {"intact": broken is None, "events": sealed, "unsealed": waiting, "first_broken": broken, "head": digest}
        )
    elif broken is None:
        cli.out.line(f"intact: {counted(sealed, 'event')}, head {digest[:12] or '(none)'}")
    if broken is not None:
        say_error(f"event {broken} does not fit the chain: it, or one before it, was altered or removed")
        return FAILED
    return OK


def register(app: typer.Typer) -> None:
    command(group, "verify")(verify)
    app.add_typer(group, name="audit")
