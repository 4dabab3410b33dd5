"""``mcp``: serve language models on stdin and stdout."""

from __future__ import annotations

import signal
import sys

import typer

from federator.cli.context import Cli, command
from federator.connector.errors import ConfigError


def mcp(cli: Cli) -> None:
    """Serve the Model Context Protocol on stdin and stdout, for a client that starts this command. Logs are on stderr."""
    from federator import logs

    try:
        from federator.api.mcp.server import run_stdio
    except ModuleNotFoundError as error:
        raise ConfigError(f"mcp needs the module {error.name!r}", hint="pip install 'lance-federator[mcp]'") from None
    settings = cli.settings
    as_json = cli.log_format == "json" if cli.log_format is not None else None
    logs.configure(json=as_json, default_format=settings.logs.format, default_level=settings.logs.level)
    # The SDK reads stdin in a thread that nothing interrupts, so a handler in Python would wait for the next message.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stdin.isatty():
        cli.print_note(
            "waiting for a client's messages on stdin; docs/how-to/mcp.md: how a client starts this command. Ctrl-C ends it"
        )
    with cli.index() as index:
        run_stdio(index, settings)


def register(app: typer.Typer) -> None:
    command(app, "mcp", data=False)(mcp)
