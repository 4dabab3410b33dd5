"""``demo``: the story on real servers, told on this terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.browse import draw
from federator.cli.context import Cli, command
from federator.cli.datasets import show_drift
from federator.cli.explaining import show_explanation
from federator.cli.planview import show_plan
from federator.cli.progress import Progress
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from federator.index import Index
    from federator.index.drift import SeenDrift
    from federator.planning.plan import Plan
    from federator.sync import Step
    from federator.sync.explaining import Explanation


class Terminal:
    """The demo's screen (``federator.demo.screen.Screen``): the story on stdout, progress on stderr."""

    def __init__(self, cli: Cli, progress: Progress) -> None:
        self._cli = cli
        self._progress = progress

    def chapter(self, title: str) -> None:
        self._cli.out.line()
        self._cli.out.line(title, style="bold")

    def say(self, text: str) -> None:
        self._cli.out.line(f"  {text}")

    def check(self, ok: bool, text: str) -> None:
        self._cli.out.line(f"  {'ok' if ok else 'FAILED':<6}  {text}", style=None if ok else "red")

    def progress(self, step: Step) -> None:
        self._progress(step)

    def tree(self, index: Index) -> None:
        draw(self._cli.out, index, (), None)

    def drift(self, found: Sequence[SeenDrift]) -> None:
        show_drift(self._cli.out, found)

    def plans(self, plans: Sequence[Plan]) -> None:
        for plan in plans:
            show_plan(self._cli, plan)

    def explanation(self, found: Explanation) -> None:
        show_explanation(self._cli, found)


def demo(
    cli: Cli,
    once: Annotated[bool, typer.Option("--once", help="End after the story, instead of serving the page.")] = False,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Keep everything in this directory.")] = None,
    stop: Annotated[
        Path | None, typer.Option("--stop", metavar="DIR", help="End the servers of a demo that was kept in this directory.")
    ] = None,
) -> int:
    """Tell the whole story on this machine, with real catalogs.

    Metastores, Lance tables, mirrors, failures; no configuration needed.
    """
    try:
        from federator.demo import story
    except ModuleNotFoundError as error:
        raise ConfigError(f"the demo needs the module {error.name!r}", hint="pip install 'lance-federator[all]'") from None
    if stop is not None:
        ended = story.stop(stop)
        cli.out.line(f"stopped {', '.join(ended)}" if ended else "nothing was running")
        return 0
    with Progress(quiet=cli.quiet) as progress:
        return story.run(Terminal(cli, progress), once=once, keep=keep)


def register(app: typer.Typer) -> None:
    command(app, "demo", data=False)(demo)
