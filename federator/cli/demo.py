"""``demo``: a demonstration with real servers on this terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.context import Cli, command
from federator.cli.datasets import print_drift
from federator.cli.explain import print_explanation
from federator.cli.plan_output import print_plan
from federator.cli.progress import ProgressDisplay
from federator.cli.tree import print_tree
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from federator.planning.plan import Plan
    from federator.stages.result import ProgressEvent
    from federator.store import Index
    from federator.views.drift import DriftView
    from federator.views.explain import Explanation


class TerminalScreen:
    """Implements ``federator.demo.screen.Screen``: the demo on stdout, its progress on stderr."""

    def __init__(self, cli: Cli, progress: ProgressDisplay) -> None:
        self._cli = cli
        self._progress = progress

    def chapter(self, title: str) -> None:
        self._cli.out.line()
        self._cli.out.line(title, style="bold")

    def say(self, text: str) -> None:
        self._cli.out.line(f"  {text}")

    def check(self, ok: bool, text: str) -> None:
        self._cli.out.line(f"  {'ok' if ok else 'FAILED':<6}  {text}", style=None if ok else "red")

    def progress(self, event: ProgressEvent) -> None:
        self._progress(event)

    def tree(self, index: Index) -> None:
        print_tree(self._cli.out, index, (), None)

    def drift(self, findings: Sequence[DriftView]) -> None:
        print_drift(self._cli.out, findings)

    def plans(self, plans: Sequence[Plan]) -> None:
        for plan in plans:
            print_plan(self._cli, plan)

    def explanation(self, explanation: Explanation) -> None:
        print_explanation(self._cli, explanation)


def demo(
    cli: Cli,
    once: Annotated[bool, typer.Option("--once", help="Exit after the demo instead of serving the page.")] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Directory to keep all files and servers in.")
    ] = None,
    servers: Annotated[
        Path | None,
        typer.Option(
            "--servers",
            metavar="DIR",
            help="Directory for an empty Hive metastore and Glue, which are started without the demo: the servers of the tutorial.",
        ),
    ] = None,
    stop: Annotated[
        Path | None, typer.Option("--stop", metavar="DIR", help="Directory whose servers are to be stopped.")
    ] = None,
) -> int:
    """Run a demonstration on this machine, with real catalogs.

    It shows metastores, Lance tables, mirrors and failures, and needs no configuration.
    """
    try:
        from federator.demo import lab, story
    except ModuleNotFoundError as error:
        raise ConfigError(f"the demo needs the module {error.name!r}", hint="pip install 'lance-federator[all,demo]'") from None
    if stop is not None:
        stopped = story.stop(stop)
        cli.out.line(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")
        return 0
    if servers is not None:
        for line in lab.start(servers):
            cli.out.line(line)
        return 0
    with ProgressDisplay(quiet=cli.quiet) as progress:
        return story.run(TerminalScreen(cli, progress), once=once, keep=keep)


def register(app: typer.Typer) -> None:
    command(app, "demo", data=False)(demo)
