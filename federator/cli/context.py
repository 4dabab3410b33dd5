"""What every command has: the common options, and ``Cli``, through which it reaches configuration, index and output."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli.complete import DEFAULT_FILE, VARIABLE
from federator.cli.errors import Interrupted, describe_failure, report
from federator.cli.output import Printer
from federator.connector.errors import FederatorError, StateError

if TYPE_CHECKING:
    from federator.index import Index
    from federator.settings import Settings


class Output(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"


class LogFormat(StrEnum):
    """How logs are written."""

    JSON = "json"
    CONSOLE = "console"


CONFIG = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help=f"Configuration file. Default: ${VARIABLE}, else {DEFAULT_FILE}."),
]
OUTPUT = Annotated[Output | None, typer.Option("--output", help="How data is printed. Default: table.")]
LOG_FORMAT = Annotated[
    LogFormat | None, typer.Option("--log-format", help="Log each step of a run on stderr, instead of showing its progress.")
]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr; errors still are.")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Common options as they were given before the command's name."""

    config: Path | None = None
    output: Output | None = None
    quiet: bool = False
    log_format: LogFormat | None = None


@dataclass
class Cli:
    """One invocation."""

    config: Path
    json: bool
    quiet: bool
    log_format: LogFormat | None = None

    @cached_property
    def settings(self) -> Settings:
        """The configuration. Raises ConfigError."""
        from federator.settings import load

        return load(self.config)

    @cached_property
    def out(self) -> Printer:
        """Where data goes."""
        return Printer(json=self.json)

    def note(self, text: str) -> None:
        """A line for a person on stderr; not with ``--quiet``."""
        if not self.quiet:
            typer.echo(text, err=True)

    @contextmanager
    def index(self) -> Iterator[Index]:
        """The index as it is, for commands that only look. Raises StateError where there is none yet."""
        from federator.index import migrate

        with self.raw_index() as index:
            if index.file is not None and not index.file.exists():
                raise StateError(f"there is no index yet at {index.file}", hint="federator crawl makes it")
            migrate.check(index)
            yield index

    @contextmanager
    def raw_index(self) -> Iterator[Index]:
        """The index without a look at its tables; a SQLite file is made by the first connection."""
        from federator.connector.options import resolve
        from federator.index import open_index

        settings = self.settings
        index = open_index(resolve(settings.index.url, where=f"{settings.path}: [index] url"), base=settings.base)
        try:
            yield index
        finally:
            index.close()


def command(group: typer.Typer, name: str, *, data: bool = True) -> Callable[[Callable[..., int | None]], Callable[..., Any]]:
    """Makes a function a command. Its first parameter is ``Cli``; it returns the exit code (None: 0) and raises FederatorError.

    The common options are added, so that they may stand before the command's name or after; ``data=False`` leaves out ``--output``.
    """

    def add(function: Callable[..., int | None]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(ctx: typer.Context, config: Path | None, quiet: bool, output: Output | None = None, **own: Any) -> int:
            before = ctx.find_root().obj or Chosen()
            chosen = config or before.config or Path(os.environ.get(VARIABLE) or DEFAULT_FILE)
            cli = Cli(chosen, (output or before.output) is Output.JSON, quiet or before.quiet, before.log_format)
            try:
                return function(cli, **own) or 0
            except FederatorError as error:
                return report(error, json_format=cli.json)
            except Interrupted as end:
                return end.code
            except Exception as error:
                failure = describe_failure(error)
                if failure is None:
                    raise
                return report(failure, json_format=cli.json)

        signature = inspect.signature(function, eval_str=True)
        own = [_parameter(p.name, p.annotation, p.default) for p in list(signature.parameters.values())[1:]]
        parameters = [_parameter("ctx", typer.Context, inspect.Parameter.empty), *own, _parameter("config", CONFIG, None)]
        parameters += [_parameter("output", OUTPUT, None)] if data else []
        parameters += [_parameter("quiet", QUIET, False)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer and inspect read
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        group.command(name)(run)
        return function

    return add


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
