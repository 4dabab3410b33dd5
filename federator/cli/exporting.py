"""``export``: what the index knows, as Parquet and as Lance tables. No Spark, no catalog."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from federator.cli.context import Cli, command
from federator.cli.output import Column


def export(
    cli: Cli,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to: replaced whole if it is an export already.")],
) -> None:
    """Write datasets, declarations, drift, coverage and sources as Parquet files and as Lance tables."""
    from federator.sync.exporting import export as write

    with cli.index() as index:
        written = write(index, directory)
    if cli.json:
        cli.out.document({"directory": str(directory), "tables": [asdict(table) for table in written]})
        return
    columns = [Column("table"), Column("rows", right=True), Column("parquet"), Column("lance")]
    cli.out.table(columns, [(table.name, table.rows, table.parquet, table.lance) for table in written])


def register(app: typer.Typer) -> None:
    command(app, "export")(export)
