"""``db``: the index's tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import results
from federator.cli.context import Cli, command
from federator.cli.output import Column, at
from federator.cli.running import working

if TYPE_CHECKING:
    from federator.index import Index

group = typer.Typer(help="The index's tables.", no_args_is_help=True, rich_markup_mode=None)


def upgrade(cli: Cli) -> None:
    """Create the index's tables, or bring them to this version; harmless twice."""
    from federator.index import migrate

    with cli.raw_index() as index:
        before = migrate.current(index) if index.file is None or index.file.exists() else None
        migrate.upgrade(index)
        _told(cli, index, before, migrate.current(index))


def check(cli: Cli) -> None:
    """Check that the index answers and its tables are of this version."""
    from federator.index import migrate

    with cli.index() as index:
        now = migrate.current(index)
        _told(cli, index, now, now)


def prune(
    cli: Cli,
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", min=0, help="Keep so many days of history. Default: as [history] says.")
    ] = None,
) -> int:
    """Remove the history that is not to be kept; audit events stay."""
    with working(cli, spark=False) as federator:
        result = federator.prune(keep_days=keep_days)
    if cli.json:
        cli.out.document({
            "run": result.run_id, "state": result.state, "sources": [asdict(found) for found in result.pruned], "errors": result.errors,
        })  # fmt: skip
    else:
        columns = [
            Column("source"), Column("records removed", right=True), Column("listings removed", right=True),
            Column("kept from revision", right=True), Column("of"),
        ]  # fmt: skip
        rows = [
            (p.source, f"{p.records:,}", f"{p.coverage:,}", p.horizon or 1, "" if p.since is None else at(p.since))
            for p in result.pruned
        ]
        cli.out.table(columns, rows)
    results.show_errors(cli, result)
    return results.exit_code(result)


def _told(cli: Cli, index: Index, before: str | None, now: str | None) -> None:
    if cli.json:
        cli.out.document({"index": index.address, "migration": now, "before": before})
    else:
        done = "up to date" if before == now else f"upgraded from {before}" if before else "tables created"
        cli.out.line(f"{index.address}: {done}, migration {now}")


def register(app: typer.Typer) -> None:
    command(group, "upgrade")(upgrade)
    command(group, "check")(check)
    command(group, "prune")(prune)
    app.add_typer(group, name="db")
