"""``init``: a first configuration file."""

from __future__ import annotations

import json
import secrets
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from federator.cli.complete import DEFAULT_FILE
from federator.cli.context import Cli, command
from federator.connector.errors import ConfigError

_HEAD = """\
# What is where, and what goes where. `federator validate` checks this file, `federator doctor` the connections.
# Secrets stay out of it: write ${{VARIABLE}} or file:PATH.

[instance]
# Marks what is ours in the catalogs that we write to: one id for this deployment, for ever.
id = {instance}

[index]
# A file beside this one. In production: postgresql+psycopg://federator:${{INDEX_PASSWORD}}@host/federator
url = "sqlite:///federator.db"
"""

# What a source cannot do without, as it is after the installation of its server.
_MORE = {"unity": 'unity.catalog = "unity"\n'}

# impl → what it is, and the key that the option's value goes to
_SOURCES = {
    "dir": ("A directory of Lance tables: a path (from this file on), or s3://bucket/prefix.", "dir.path"),
    "hive3": ("A Hive Metastore 3 or 4.", "hive3.uri"),
    "hive2": ("A Hive Metastore 2.", "hive2.uri"),
    "glue": ("AWS Glue, with the credentials of the environment.", "glue.region"),
    "unity": ('One catalog of a Unity server. Where it wants a token: unity.auth_token = "${UNITY_TOKEN}"', "unity.endpoint"),
    "polaris": ("Apache Polaris. Its login: polaris.client_id and polaris.client_secret, as ${VARIABLES}", "polaris.endpoint"),
    "rest": ('A Lance REST server. Where it wants a token: rest.auth_token = "${LANCE_TOKEN}"', "rest.uri"),
}
_NAMES = {
    "dir": "files",
    "hive3": "hive",
    "hive2": "hive2",
    "glue": "aws",
    "unity": "unity",
    "polaris": "polaris",
    "rest": "lance",
}

_TAIL = """\
# Storage options for opening a source's tables: {first}storage.region = "us-west-2"
# Read a source on its own while `federator serve` runs: schedule = "*/15 * * * *"

# A mirror declares the tables of one source in another. `federator plan` shows what it would do.
# [mirrors.first]
# from = "{name}"
# to = "another source"
# include = ["*"]
# schedule = "@every 15m"
"""


def init(
    cli: Cli,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help=f"Default: the file of --config, else {DEFAULT_FILE}.")
    ] = None,
    hive3: Annotated[
        list[str] | None, typer.Option("--hive3", metavar="URI", help="Add a Hive Metastore 3 or 4, thrift://host:9083.")
    ] = None,
    hive2: Annotated[list[str] | None, typer.Option("--hive2", metavar="URI", help="Add a Hive Metastore 2.")] = None,
    glue: Annotated[list[str] | None, typer.Option("--glue", metavar="REGION", help="Add AWS Glue in a region.")] = None,
    unity: Annotated[list[str] | None, typer.Option("--unity", metavar="URL", help="Add a Unity Catalog.")] = None,
    polaris: Annotated[list[str] | None, typer.Option("--polaris", metavar="URL", help="Add an Apache Polaris.")] = None,
    rest: Annotated[list[str] | None, typer.Option("--rest", metavar="URL", help="Add a Lance REST server.")] = None,
    directory: Annotated[
        list[str] | None, typer.Option("--dir", metavar="PATH", help="Add a directory of Lance tables.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a first configuration file."""
    target = file or cli.config
    if target.exists() and not force:
        raise ConfigError(f"{target} exists already", hint="--force overwrites it")
    wanted = {
        "dir": directory, "hive3": hive3, "hive2": hive2, "glue": glue, "unity": unity, "polaris": polaris, "rest": rest,
    }  # fmt: skip
    text = _text({impl: values for impl, values in wanted.items() if values} or {"dir": ["tables"]})
    _check(text, target)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error.strerror})") from None
    if cli.json:
        cli.out.document({"file": str(target), "sources": list(tomllib.loads(text)["sources"])})
        return
    cli.out.line(f"wrote {target}")
    option = "" if str(target) == DEFAULT_FILE else f" -c {target}"
    cli.note(f"next: federator{option} doctor, then federator{option} crawl and federator{option} tree")


def _text(wanted: dict[str, list[str]]) -> str:
    parts = [_HEAD.format(instance=json.dumps(f"dev-{secrets.token_hex(3)}"))]
    names: list[str] = []
    for impl, values in wanted.items():
        for number, value in enumerate(values, 1):
            names.append(_NAMES[impl] if number == 1 else f"{_NAMES[impl]}_{number}")
            what, key = _SOURCES[impl]
            told = json.dumps(value, ensure_ascii=False)
            parts.append(f'# {what}\n[sources.{names[-1]}]\nimpl = "{impl}"\n{key} = {told}\n{_MORE.get(impl, "")}')
    parts.append(_TAIL.format(name=names[0], first=f"{next(iter(wanted))}."))
    return "\n".join(parts)


def _check(text: str, file: Path) -> None:
    """Raises ConfigError for a value that the file could not hold: better now than in the next command."""
    from federator.settings import parse

    parse(tomllib.loads(text), file)


def register(app: typer.Typer) -> None:
    command(app, "init")(init)
