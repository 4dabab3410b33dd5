"""``spark``: what a Spark cluster needs."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from federator.cli.context import Cli, command, create_group

group = create_group("What a Spark cluster needs.")


def pack(
    cli: Cli,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to write. Default: a name with Python and platform.")
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="PACKAGE", help="Also pack this installed package, e.g. a connector of your own."),
    ] = None,
) -> None:
    """Pack what executors import: the federator and the libraries of the configured sources, for [spark] archive.

    Executors need the same Python version and platform as this machine. The cluster brings PySpark itself.
    """
    from federator.cli.progress import ProgressDisplay
    from federator.pipeline.executor_archive import default_name, write_archive
    from federator.registry import extra_of
    from federator.stages.result import ProgressEvent

    extras = {"spark", "postgres", *filter(None, (extra_of(source.impl) for source in cli.settings.sources.values()))}
    file = out or Path(default_name())
    with ProgressDisplay(quiet=cli.quiet) as progress:
        started_at = time.monotonic()
        progress(ProgressEvent("pack", str(file)))
        archive = write_archive(file, extras, include or ())
        progress(ProgressEvent("pack", str(file), "ok", seconds=time.monotonic() - started_at))
    if cli.json:
        cli.out.document({**asdict(archive), "file": str(archive.file)})
        return
    size = f"{archive.size / 2**20:,.0f} MiB"
    cli.out.line(f"{archive.file}: {size}, {len(archive.packages)} packages for Python {archive.python} on {archive.platform}")
    cli.print_note(f'ship it with [spark] archive = "{archive.file.resolve()}", or upload it and name its URI')


def register(app: typer.Typer) -> None:
    command(group, "pack")(pack)
    app.add_typer(group, name="spark")
