"""``init``: write a first configuration file."""

from __future__ import annotations

import json
import secrets
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from federator.cli.context import Cli, command
from federator.connector.errors import ConfigError
from federator.runtime.config_file import DEFAULT_FILE
from federator.runtime.private_files import write_private_text

_HEAD = """\
# Sources and mirrors of the federator. `federator validate` checks this file, `federator doctor` the connections.
# Do not write secrets into it: use ${{VARIABLE}} or file:PATH.

[instance]
# Marks the objects that this deployment owns in other catalogs. Never change it.
id = {instance}

[index]
# A file in the directory of this one. In production: postgresql+psycopg://federator:${{INDEX_PASSWORD}}@host/federator
url = "sqlite:///federator.db"
"""

# Required settings of a source, with the values of a fresh server.
_REQUIRED_SETTINGS = {"unity": 'unity.catalog = "unity"\n', "iceberg": 'iceberg.warehouses = "warehouse"\n'}

# impl → description, and the key for the value of the option
_SOURCES = {
    "dir": ("A directory of Lance tables: a path (relative to this file), or s3://bucket/prefix.", "dir.path"),
    "hive3": ("A Hive Metastore 3 or 4.", "hive3.uri"),
    "hive2": ("A Hive Metastore 2.", "hive2.uri"),
    "glue": ("AWS Glue, with the credentials of the environment.", "glue.region"),
    "unity": ('One catalog of a Unity server. If it needs a token: unity.auth_token = "${UNITY_TOKEN}"', "unity.endpoint"),
    "polaris": ("Apache Polaris. Its login: polaris.client_id and polaris.client_secret, as ${VARIABLES}", "polaris.endpoint"),
    "iceberg": (
        'An Iceberg REST catalog. A crawl needs its warehouses. Its login: iceberg.credential = "${ICEBERG_CREDENTIAL}"',
        "iceberg.endpoint",
    ),
    "rest": ('A Lance REST server. If it needs a token: rest.auth_token = "${LANCE_TOKEN}"', "rest.uri"),
}
_NAMES = {
    "dir": "files",
    "hive3": "hive",
    "hive2": "hive2",
    "glue": "aws",
    "unity": "unity",
    "polaris": "polaris",
    "iceberg": "iceberg",
    "rest": "lance",
}

_TAIL = """\
# Storage options for the tables of a source: {first}storage.region = "us-west-2"
# Crawl a source regularly while `federator serve` runs: schedule = "*/15 * * * *"

# A mirror declares the tables of one source in another. `federator plan` shows the changes.
# [mirrors.first]
# from = "{name}"
# to = "another source"
# include = ["*"]
# schedule = "@every 15m"
"""


def init(
    cli: Cli,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help=f"File to write. Default: the file of --config, else {DEFAULT_FILE}."),
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
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a first configuration file."""
    target = file or cli.config
    if target.exists() and not force:
        raise ConfigError(f"{target} already exists", hint="use --force to overwrite it")
    values_by_impl = {
        "dir": directory, "hive3": hive3, "hive2": hive2, "glue": glue, "unity": unity, "polaris": polaris,
        "iceberg": iceberg, "rest": rest,
    }  # fmt: skip
    text = _render_config({impl: values for impl, values in values_by_impl.items() if values} or {"dir": ["tables"]})
    _check_config(text, target)
    try:
        write_private_text(target, text)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error.strerror})") from None
    if cli.json:
        cli.out.document({"file": str(target), "sources": list(tomllib.loads(text)["sources"])})
        return
    cli.out.line(f"wrote {target}")
    option = "" if str(target) == DEFAULT_FILE else f" -c {target}"
    cli.print_note(f"next: federator{option} doctor, then federator{option} crawl and federator{option} tree")


def _render_config(values_by_impl: dict[str, list[str]]) -> str:
    parts = [_HEAD.format(instance=json.dumps(f"dev-{secrets.token_hex(3)}"))]
    names: list[str] = []
    for impl, values in values_by_impl.items():
        for number, value in enumerate(values, 1):
            names.append(_NAMES[impl] if number == 1 else f"{_NAMES[impl]}_{number}")
            description, key = _SOURCES[impl]
            text = json.dumps(value, ensure_ascii=False)
            parts.append(
                f'# {description}\n[sources.{names[-1]}]\nimpl = "{impl}"\n{key} = {text}\n{_REQUIRED_SETTINGS.get(impl, "")}'
            )
    parts.append(_TAIL.format(name=names[0], first=f"{next(iter(values_by_impl))}."))
    return "\n".join(parts)


def _check_config(text: str, file: Path) -> None:
    """Raise ConfigError for an invalid value, before the file is written."""
    from federator.settings import parse_settings

    parse_settings(tomllib.loads(text), file)


def register(app: typer.Typer) -> None:
    command(app, "init")(init)
