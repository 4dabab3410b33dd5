"""``serve``: the service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from federator.cli.context import Cli, command
from federator.connector.errors import ConfigError


class Role(StrEnum):
    """What a service process does."""

    ALL = "all"
    API = "api"
    WORKER = "worker"


def serve(
    cli: Cli,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="Address to listen on. Default: that of [serve].")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on. Default: that of [serve].")
    ] = None,
    role: Annotated[
        Role, typer.Option("--role", help="all: both; api: answers only, without Spark; worker: schedule and runs only.")
    ] = Role.ALL,
) -> None:
    """Serve the API and the page, and keep the schedule."""
    settings = cli.settings
    try:
        from federator.api.server import serve as run
    except ModuleNotFoundError as error:
        raise ConfigError(f"serve needs the module {error.name!r}", hint="pip install 'lance-federator[api]'") from None
    run(settings, host=host, port=port, role=role.value, log_format=cli.log_format)


def register(app: typer.Typer) -> None:
    command(app, "serve", data=False)(serve)
