"""``db``: create, check and prune the tables of the index."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import result_output
from federator.cli.context import Cli, command, create_group
from federator.cli.interactive_run import open_run
from federator.cli.printer import format_time
from federator.cli.terminal import Column

if TYPE_CHECKING:
    from federator.store import Index

group = create_group("The tables of the index.")


def upgrade(cli: Cli) -> None:
    """Create the tables of the index, or upgrade them to this version. Running it again changes nothing."""
    from federator.store import migrations

    with cli.unchecked_index() as index:
        # Reading the migration would create the file of a new SQLite index.
        is_new_file = index.file is not None and not index.file.exists()
        before = None if is_new_file else migrations.current_migration(index)
        migrations.upgrade_schema(index)
        _print_migration(cli, index, before, migrations.current_migration(index))


def check(cli: Cli) -> None:
    """Check that the index is reachable and its tables have this version."""
    from federator.store import migrations

    with cli.index() as index:
        migration = migrations.current_migration(index)
        _print_migration(cli, index, migration, migration)


def prune(
    cli: Cli,
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", min=0, help="Days of history to keep. Default: the value in [history].")
    ] = None,
) -> int:
    """Remove history beyond the retention horizon. Audit events stay."""
    with open_run(cli, spark=False) as federator:
        result = federator.prune(keep_days=keep_days)
    if cli.json:
        cli.out.document({
            "run": result.run_id, "state": result.state, "sources": [asdict(pruned) for pruned in result.pruned],
            "errors": result.errors,
        })  # fmt: skip
    else:
        columns = [
            Column("source"), Column("records removed", right=True), Column("listings removed", right=True),
            Column("kept from revision", right=True), Column("published at"),
        ]  # fmt: skip
        rows = [
            (
                pruned.source, f"{pruned.records:,}", f"{pruned.coverage:,}", pruned.horizon or 1,
                "" if pruned.since is None else format_time(pruned.since),
            )
            for pruned in result.pruned
        ]  # fmt: skip
        cli.out.table(columns, rows)
    result_output.print_errors(cli, result)
    return result_output.exit_code(result)


def _print_migration(cli: Cli, index: Index, before: str | None, migration: str | None) -> None:
    if cli.json:
        cli.out.document({"index": index.address, "migration": migration, "before": before})
    else:
        state = "up to date" if before == migration else f"upgraded from {before}" if before else "tables created"
        cli.out.line(f"{index.address}: {state}, migration {migration}")


def register(app: typer.Typer) -> None:
    command(group, "upgrade")(upgrade)
    command(group, "check")(check)
    command(group, "prune")(prune)
    app.add_typer(group, name="db")
