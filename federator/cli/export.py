"""``export``: the content of the index as Parquet and Lance tables. It uses neither Spark nor a catalog."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from federator.cli.context import Cli, command
from federator.cli.terminal import Column


def export(
    cli: Cli,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Target directory. An existing export in it is replaced.")],
) -> None:
    """Write datasets, declarations, drift, coverage and sources as Parquet files and as Lance tables."""
    from federator.stages.export import export_index

    with cli.index() as index:
        tables = export_index(index, directory)
    if cli.json:
        cli.out.document({"directory": str(directory), "tables": [asdict(table) for table in tables]}, rows="tables")
        return
    columns = [Column("table"), Column("rows", right=True), Column("parquet"), Column("lance")]
    cli.out.table(columns, [(table.name, table.rows, table.parquet, table.lance) for table in tables])


def register(app: typer.Typer) -> None:
    command(app, "export")(export)
