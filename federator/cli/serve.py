"""``serve``: start the service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from federator.cli.context import Cli, command
from federator.connector.errors import ConfigError


class ServiceRole(StrEnum):
    """Roles of a service process."""

    ALL = "all"
    API = "api"
    WORKER = "worker"


def serve(
    cli: Cli,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="Address to listen on. Default: the value in [serve].")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on. Default: the value in [serve].")
    ] = None,
    role: Annotated[
        ServiceRole, typer.Option("--role", help="api: only HTTP, without Spark; worker: only schedule and runs; all: both.")
    ] = ServiceRole.ALL,
) -> None:
    """Serve the API and the page, and run scheduled jobs."""
    settings = cli.settings
    try:
        from federator.api.server import run_service
    except ModuleNotFoundError as error:
        raise ConfigError(f"serve needs the module {error.name!r}", hint="pip install 'lance-federator[api]'") from None
    run_service(settings, host=host, port=port, role=role.value, log_format=cli.log_format)


def register(app: typer.Typer) -> None:
    command(app, "serve", data=False)(serve)
