"""Common options of all commands, and ``Cli``, their access to configuration, index and output."""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from federator.cli.command_modules import COMMANDS
from federator.cli.documents import Output
from federator.cli.errors import Interrupted, describe_failure, print_error
from federator.cli.printer import Printer
from federator.connector.errors import FederatorError, StateError
from federator.runtime.config_file import CONFIG_VARIABLE, DEFAULT_FILE

if TYPE_CHECKING:
    from federator.settings import Settings
    from federator.store import Index

T = TypeVar("T")


class LogFormat(StrEnum):
    """Formats of log lines."""

    JSON = "json"
    CONSOLE = "console"


CONFIG = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help=f"Configuration file. Default: ${CONFIG_VARIABLE}, else {DEFAULT_FILE}."
    ),
]
OUTPUT = Annotated[
    Output | None, typer.Option("--output", help="Output format of data: table, json, jsonl or csv. Default: table.")
]
LOG_FORMAT = Annotated[
    LogFormat | None, typer.Option("--log-format", help="Log format on stderr. Log lines then replace the progress display.")
]
NO_PAGER = Annotated[bool, typer.Option("--no-pager", help="Print long output directly. PAGER names another pager than less.")]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on stderr, only errors.")]


def cut_list(entries: list[T], limit: int) -> tuple[list[T], bool]:
    """Return the first ``limit`` entries, and whether there are more. Read one entry more than ``limit``."""
    return entries[:limit], len(entries) > limit


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """Values of the common options before the command's name."""

    config: Path | None = None
    output: Output | None = None
    quiet: bool = False
    log_format: LogFormat | None = None
    no_pager: bool = False


@dataclass
class Cli:
    """One invocation of a command."""

    config: Path
    output: Output
    quiet: bool
    log_format: LogFormat | None = None
    paged: bool = False
    #: the option -c named ``config``
    is_config_option: bool = False

    @property
    def json(self) -> bool:
        """Whether data is printed for programs: as JSON, JSON lines or CSV. Errors are JSON then."""
        return self.output is not Output.TABLE

    @cached_property
    def settings(self) -> Settings:
        """The configuration. Raise ConfigError."""
        from federator.settings import load_settings

        return load_settings(self.config)

    def check_settings(self) -> Settings:
        """Return the configuration with an index URL that names a supported database. Raise ConfigError."""
        from federator.store.engine import parse_url

        parse_url(self.settings.resolve_index_url())
        return self.settings

    @cached_property
    def out(self) -> Printer:
        """The printer for data on stdout."""
        return Printer(self.output, paged=self.paged, quiet=self.quiet)

    def repeat_option(self, text: str) -> str:
        """Return a text whose commands have the ``-c`` of this one, so that they can be copied."""
        if not self.is_config_option:
            return text
        option = f"federator -c {shlex.quote(str(self.config))} "
        return re.sub(rf"\bfederator (?=(?:{'|'.join(COMMANDS)})\b)", lambda _: option, text)

    def print_note(self, text: str) -> None:
        """Print a note on stderr, except with ``--quiet``."""
        self.out.note(self.repeat_option(text))

    def print_more(self, limit: int) -> None:
        """Note that there are more entries than the ``limit`` allows."""
        self.print_note(f"there are more; --limit {limit * 4} shows more of them")

    @contextmanager
    def index(self) -> Iterator[Index]:
        """The existing index. Raise StateError if there is none, or if its schema is not current."""
        from federator.store import migrations

        with self.unchecked_index() as index:
            if index.file is not None and not index.file.exists():
                raise StateError(f"there is no index yet at {index.file}", hint="run federator crawl, which creates it")
            migrations.require_current_schema(index)
            yield index

    @contextmanager
    def unchecked_index(self) -> Iterator[Index]:
        """The index without a check of its schema. The first connection creates a missing SQLite file."""
        from federator.store import open_index

        index = open_index(self.settings.resolve_index_url(), base=self.settings.base)
        try:
            yield index
        finally:
            index.close()


class CommandGroup(TyperGroup):
    """A command whose help lists each of its commands with the whole first sentence, which the parser would cut to one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(limit=1000)) for name, command in commands if command])


def create_group(help: str) -> typer.Typer:
    """Return a group of commands; without one of them, it shows its help."""
    return typer.Typer(cls=CommandGroup, help=help, no_args_is_help=True, rich_markup_mode=None)


def command(
    group: typer.Typer, name: str, *, data: bool = True, paged: bool = False
) -> Callable[[Callable[..., int | None]], Callable[..., Any]]:
    """Register a function as a command. Its first parameter is ``Cli``. It returns the exit code (None: 0) or raises FederatorError.

    The common options are added, so they are accepted before and after the command's name. ``data=False`` omits ``--output``.
    ``paged`` shows output that is longer than the terminal in a pager.
    """

    def add(function: Callable[..., int | None]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(
            ctx: typer.Context,
            config: Path | None,
            quiet: bool,
            output: Output | None = None,
            no_pager: bool = False,
            **own: Any,
        ) -> int:
            global_options = ctx.find_root().obj or GlobalOptions()
            path = config or global_options.config or Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE)
            cli = Cli(
                path,
                output or global_options.output or Output.TABLE,
                quiet or global_options.quiet,
                global_options.log_format,
                paged and not no_pager and not global_options.no_pager,
                is_config_option=(config or global_options.config) is not None,
            )
            try:
                try:
                    return function(cli, **own) or 0
                finally:
                    cli.out.close()
            except FederatorError as error:
                return print_error(error, json_format=cli.json, format_hint=cli.repeat_option)
            except Interrupted as interruption:
                return interruption.code
            except Exception as error:
                failure = describe_failure(error)
                if failure is None:
                    raise
                return print_error(failure, json_format=cli.json, format_hint=cli.repeat_option)

        signature = inspect.signature(function, eval_str=True)
        own = [_parameter(p.name, p.annotation, p.default) for p in list(signature.parameters.values())[1:]]
        parameters = [_parameter("ctx", typer.Context, inspect.Parameter.empty), *own, _parameter("config", CONFIG, None)]
        parameters += [_parameter("output", OUTPUT, None)] if data else []
        parameters += [_parameter("no_pager", NO_PAGER, False)] if paged else []
        parameters += [_parameter("quiet", QUIET, False)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer and inspect read
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        group.command(name)(run)
        return function

    return add


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
