"""``sources``: which catalog answers for a source, and accepting another one."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete
from federator.cli.context import Cli, command
from federator.cli.output import Column, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.sync.confirming import Confirmation

NAME = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.sources, help="The source.")]
YES = Annotated[bool, typer.Option("--yes", "-y", help="Accept the new identity. Default: only show it.")]
# Ledger rows before the rest is only counted.
_SHOWN = 10

group = typer.Typer(help="Sources: which catalog answers at each address.", no_args_is_help=True, rich_markup_mode=None)


def confirm(cli: Cli, name: NAME, yes: YES = False) -> None:
    """Accept another catalog behind a source's address; without --yes only show it.

    Shows both identities and the ledger rows concerned. Accepting resets the source's misses and rebinds ledger rows whose mark,
    operation and location are intact. It approves no plan.
    """
    from federator import audit
    from federator.sync import confirming

    cli.settings.source(name)
    with cli.index() as index:
        found = confirming.pending(index, name)
        if yes:
            found = confirming.confirm(index, cli.settings, name, actor=getpass.getuser())
            audit.seal(index)
    if cli.json:
        cli.out.document(_data(found))
    else:
        _show(cli, found)
    if found.seen and not yes:
        cli.note(f"nothing was changed; federator sources confirm {name} --yes accepts the new identity")


def _show(cli: Cli, found: Confirmation) -> None:
    from federator.planning.identity import joined

    if not found.seen:
        cli.out.line(f"{found.source}: no identity waits for a confirmation")
        return
    state = "the new identity is accepted" if found.confirmed else "another identity waits for a confirmation"
    cli.out.line(f"{found.source}: {state}")
    known = {scope: " or ".join(sorted(values)) for scope, values in found.accepted.items()}
    cli.out.pairs([*_pairs("known", known), *_pairs("new", joined(found.seen, " and "))])
    rebound = f", {len(found.rebound):,} with a new native id" if found.confirmed else ""
    cli.out.line(f"{counted(len(found.entries), 'ledger row')} concerned{rebound}")
    rows = [_entry(row) for row in found.entries[:_SHOWN]]
    if rows:
        columns = [Column("mirror"), Column("origin", wide=True), Column("target", wide=True)]
        cli.out.table(columns, [(row["mirror"], row["origin"], row["target"]) for row in rows])
    if len(found.entries) > _SHOWN:
        cli.out.line(f"and {len(found.entries) - _SHOWN:,} more")


def _pairs(name: str, values: Mapping[str, str]) -> list[tuple[str, str]]:
    """One line for each part of an identity, since one part fits a terminal of 80 columns."""
    from federator.model import describe_parts

    parts = [describe_parts({scope: values[scope]}) for scope in sorted(values)] or [describe_parts({})]
    return [(name if number == 0 else "", part) for number, part in enumerate(parts)]


def _data(found: Confirmation) -> dict[str, Any]:
    return {
        "source": found.source, "confirmed": found.confirmed,
        "accepted": {scope: sorted(values) for scope, values in found.accepted.items()},
        "seen": [{"scope": scope, "value": value} for scope, value in found.seen],
        "ledger_rows": len(found.entries), "first_rows": [_entry(row) for row in found.entries[:_SHOWN]], "rebound": found.rebound,
    }  # fmt: skip


def _entry(row: Any) -> dict[str, str]:
    return {
        "mirror": row["mirror"], "origin": f"{row['origin_source']}${row['origin_path']}".rstrip("$"),
        "target": f"{row['target_source']}${row['target_path']}",
    }  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "confirm")(confirm)
    app.add_typer(group, name="sources")
