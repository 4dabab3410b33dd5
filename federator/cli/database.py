"""``db``: the index's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from federator.cli.context import Cli, command

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


def url_of(index: Index) -> str:
    """The index's URL without its password."""
    return index.engine.url.render_as_string(hide_password=True)


def _told(cli: Cli, index: Index, before: str | None, now: str | None) -> None:
    if cli.json:
        cli.out.document({"index": url_of(index), "migration": now, "before": before})
    else:
        done = "up to date" if before == now else f"upgraded from {before}" if before else "tables created"
        cli.out.line(f"{url_of(index)}: {done}, migration {now}")


def register(app: typer.Typer) -> None:
    command(group, "upgrade")(upgrade)
    command(group, "check")(check)
    app.add_typer(group, name="db")
