"""``init``: write a first configuration file."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.context import Cli, command
from federator.cli.printer import print_to_stderr
from federator.connector.errors import ConfigError
from federator.runtime.config_file import DEFAULT_FILE
from federator.runtime.private_files import create_private_text

if TYPE_CHECKING:
    from federator.cli.first_config import SourceTemplate


def init(
    cli: Cli,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help=f"New file. Default: the file of --config, else {DEFAULT_FILE}."),
    ] = None,
    hive3: Annotated[
        list[str] | None, typer.Option("--hive3", metavar="URI", help="Add a Hive Metastore 3 or 4, thrift://host:9083.")
    ] = None,
    hive2: Annotated[list[str] | None, typer.Option("--hive2", metavar="URI", help="Add a Hive Metastore 2.")] = None,
    glue: Annotated[list[str] | None, typer.Option("--glue", metavar="REGION", help="Add AWS Glue in a region.")] = None,
    unity: Annotated[list[str] | None, typer.Option("--unity", metavar="URL", help="Add a Unity Catalog.")] = None,
    polaris: Annotated[list[str] | None, typer.Option("--polaris", metavar="URL", help="Add an Apache Polaris.")] = None,
    iceberg: Annotated[list[str] | None, typer.Option("--iceberg", metavar="URL", help="Add an Iceberg REST catalog.")] = None,
    rest: Annotated[list[str] | None, typer.Option("--rest", metavar="URL", help="Add a Lance REST server.")] = None,
    directory: Annotated[
        list[str] | None, typer.Option("--dir", metavar="PATH", help="Add a directory of Lance tables.")
    ] = None,
) -> None:
    """Write a first configuration file. Without options, ask for the sources.

    Each source has its other usual settings as comments. Only the owner may read the file. An existing file stays as it is.
    """
    from federator.cli.first_config import TEMPLATES, render_config

    target = file or cli.config
    if target.exists() or target.is_symlink():
        raise _exists(target)
    _require_writable_directory(target.absolute().parent)
    values_by_impl = {
        "dir": directory, "hive3": hive3, "hive2": hive2, "glue": glue, "unity": unity, "polaris": polaris,
        "iceberg": iceberg, "rest": rest,
    }  # fmt: skip
    addresses = {impl: values for impl, values in values_by_impl.items() if values}
    for impl, values in addresses.items():
        for value in values:
            try:
                _check_address(impl, TEMPLATES[impl], value)
            except ConfigError as error:
                hint = error.hint or f"for example --{impl} {TEMPLATES[impl].example}"
                raise ConfigError(f"--{impl}: {error.message}", hint=hint) from None
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise ConfigError(f"{twice} is given twice", hint="name each source once")
    if not addresses and _can_ask(cli):
        addresses = _ask_for_sources()
    elif not addresses:
        cli.print_note(
            "no source was named, so the file has the directory 'tables': change it there, or name sources by options"
        )
        addresses = {"dir": ["tables"]}
    text = render_config(addresses)
    try:
        create_private_text(target, text)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error.strerror})") from None
    if cli.json:
        cli.out.document({"file": str(target), "sources": list(tomllib.loads(text)["sources"])})
        return
    cli.out.line(f"wrote {target}")
    option = "" if str(target) == DEFAULT_FILE else f" -c {target}"
    cli.print_note(f"next: federator{option} doctor")


def _exists(target: Path) -> ConfigError:
    return ConfigError(f"{target} already exists", hint="edit it, or name a new file: federator init FILE")


def _require_writable_directory(directory: Path) -> None:
    """Raise ConfigError before anything is asked, because the answers would be lost."""
    hint = "name a file elsewhere: federator init FILE"
    if not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory", hint=hint)
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        raise ConfigError(f"{directory}: this user cannot write there", hint=hint)


def _can_ask(cli: Cli) -> bool:
    return not (cli.json or cli.quiet) and sys.stdin.isatty() and sys.stderr.isatty()


def _ask_for_sources() -> dict[str, list[str]]:
    """Ask for connectors and addresses until there are no more. Raise typer.Abort if the person ends it."""
    from federator.cli.first_config import TEMPLATES

    for impl, template in TEMPLATES.items():
        typer.echo(f"  {impl:<8}  {template.description}", err=True)
    addresses: dict[str, list[str]] = {}
    while not addresses or typer.confirm("Another source?", err=True):
        impl = _ask_for_connector(list(TEMPLATES))
        addresses.setdefault(impl, []).append(_ask_for_address(impl, TEMPLATES[impl]))
    return addresses


def _ask_for_connector(known: list[str]) -> str:
    while (impl := typer.prompt("Kind of source", default=known[0], err=True).strip().lower()) not in known:
        typer.echo(f"one of: {', '.join(known)}", err=True)
    return str(impl)


def _ask_for_address(impl: str, template: SourceTemplate) -> str:
    while True:
        address: str = typer.prompt(template.address, default=template.example, err=True)
        try:
            _check_address(impl, template, address)
        except ConfigError as error:
            print_to_stderr("; ".join(filter(None, (error.message, error.hint))))
        else:
            return address


def _check_address(impl: str, template: SourceTemplate, address: str) -> None:
    """Raise ConfigError for an address that the connector does not accept. Its message names no key, because there is no file yet."""
    from federator.registry import get_connector

    if not address.strip():
        raise ConfigError("the value is empty")
    key = f"{impl}.{template.key}"
    try:
        get_connector(impl).parse_settings({key: address, **{name: json.loads(value) for name, value in template.required}})
    except ConfigError as error:
        raise ConfigError(error.message.removeprefix(f"{key}: "), hint=error.hint) from None


def register(app: typer.Typer) -> None:
    command(app, "init")(init)
