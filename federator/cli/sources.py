"""``sources``: confirm a new identity of a source's catalog."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command, create_group
from federator.cli.terminal import Column
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.planning.ledger import OwnedObject
    from federator.stages.confirm_source import Confirmation

NAME = Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.complete_sources, help="Name of the source.")]
YES = Annotated[bool, typer.Option("--yes", "-y", help="Accept the new identity. Default: only show it.")]
# Maximum number of listed ledger rows.
_MAX_SHOWN = 10

group = create_group("Sources: confirm the catalog behind an address. federator ls lists the sources.")


def confirm(cli: Cli, name: NAME, yes: YES = False) -> None:
    """Accept another catalog behind a source's address; without --yes only show it.

    Shows both identities and the affected ledger rows. Accepting resets the source's misses and rebinds ledger rows whose ownership
    marker, operation id and location are intact. It approves no plan.
    """
    from federator import audit
    from federator.stages import confirm_source

    cli.settings.source(name)
    with cli.index() as index:
        confirmation = confirm_source.read_pending(index, name)
        if yes:
            confirmation = confirm_source.confirm(index, cli.settings, name, actor=getpass.getuser())
            audit.seal_pending(index)
    if cli.json:
        cli.out.document(_confirmation_to_json(confirmation))
    else:
        _print_confirmation(cli, confirmation)
    if confirmation.unconfirmed and not yes:
        cli.print_note(f"nothing was changed; accept the new identity with federator sources confirm {name} --yes")


def _print_confirmation(cli: Cli, confirmation: Confirmation) -> None:
    from federator.planning.identity import join_values

    if not confirmation.unconfirmed:
        cli.out.line(f"{confirmation.source}: no identity waits for a confirmation")
        return
    state = "the new identity is accepted" if confirmation.confirmed else "another identity waits for a confirmation"
    cli.out.line(f"{confirmation.source}: {state}")
    accepted = {scope: " or ".join(sorted(values)) for scope, values in confirmation.accepted.items()}
    cli.out.pairs([*_pairs("known", accepted), *_pairs("new", join_values(confirmation.unconfirmed, " and "))])
    rebound = f", {len(confirmation.rebound):,} with a new native id" if confirmation.confirmed else ""
    cli.out.line(f"{format_count(len(confirmation.entries), 'ledger row')} affected{rebound}")
    rows = [_entry_to_json(entry) for entry in confirmation.entries[:_MAX_SHOWN]]
    if rows:
        columns = [Column("mirror"), Column("origin", wide=True), Column("target", wide=True)]
        cli.out.table(columns, [(row["mirror"], row["origin"], row["target"]) for row in rows])
    if len(confirmation.entries) > _MAX_SHOWN:
        cli.out.line(f"and {len(confirmation.entries) - _MAX_SHOWN:,} more")


def _pairs(name: str, values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return one line per part of an identity, because one part fits a terminal of 80 columns."""
    from federator.model import describe_parts

    parts = [describe_parts({scope: values[scope]}) for scope in sorted(values)] or [describe_parts({})]
    return [(name if number == 0 else "", part) for number, part in enumerate(parts)]


def _confirmation_to_json(confirmation: Confirmation) -> dict[str, Any]:
    return {
        "source": confirmation.source, "confirmed": confirmation.confirmed,
        "accepted": {scope: sorted(values) for scope, values in confirmation.accepted.items()},
        "seen": [{"scope": scope, "value": value} for scope, value in confirmation.unconfirmed],
        "ledger_rows": len(confirmation.entries), "first_rows": [_entry_to_json(entry) for entry in confirmation.entries[:_MAX_SHOWN]],
        "rebound": confirmation.rebound,
    }  # fmt: skip


def _entry_to_json(entry: OwnedObject) -> dict[str, str]:
    return {
        "mirror": entry.mirror, "origin": f"{entry.origin_source}${entry.origin_path}".rstrip("$"),
        "target": f"{entry.target_source}${entry.target_path}",
    }  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "confirm")(confirm)
    app.add_typer(group, name="sources")
