"""``token``: who may ask the API, in which role, and what that one may see."""

from __future__ import annotations

import getpass
import re
import time
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from federator.cli.context import Cli, command
from federator.cli.output import Column
from federator.connector.errors import ConfigError

NEVER = "never"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")

NAME = Annotated[str, typer.Argument(metavar="NAME", help="Who it is for; it stands in runs and in the audit.")]
ROLE = Annotated[
    Literal["viewer", "operator", "writer", "admin"],
    typer.Option("--role", help="What it may do, each more than the one before."),
]
SCOPE = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="PATH", help="What it may see: source, source$namespace, ..., * for all. Repeatable."),
]
EXPIRES = Annotated[str, typer.Option("--expires", metavar="DURATION", help=f"How long it is good for, or {NEVER}.")]

group = typer.Typer(help="Tokens of the API: create, list, revoke.", no_args_is_help=True, rich_markup_mode=None)


def create(cli: Cli, name: NAME, role: ROLE = "viewer", scope: SCOPE = None, expires: EXPIRES = "90d") -> None:
    """Make a token and print it, this once; without --scope it sees nothing."""
    from federator import audit
    from federator.cli.browse import parsed
    from federator.index import tokens
    from federator.model import path_key
    from federator.model.scopes import ALL, Scopes
    from federator.settings import seconds

    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name of a token", hint="up to 100 letters, digits and . _ @ -")
    try:
        scopes = Scopes.parse(text if text == ALL else path_key(parsed(text)) for text in scope or [])
        lifetime = None if expires == NEVER else seconds(expires)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if lifetime == 0:
        raise ConfigError("--expires: a duration above 0 like 12h or 90d, or never")
    unknown = sorted({prefix[0] for prefix in scopes.prefixes if prefix} - set(cli.settings.sources))
    with cli.index() as index:
        secret, made = tokens.create(index, name, role=role, scopes=scopes, lifetime=lifetime, actor=getpass.getuser())
        audit.seal(index)
    if cli.json:
        cli.out.document({"token": secret, **made.to_json(time.time())})
    else:
        cli.out.line(secret)
    if unknown:
        cli.note(f"no source is called {', '.join(unknown)} yet: the scope covers nothing until one is")
    if not scopes.prefixes:
        cli.note("it sees nothing: --scope 'source$namespace' lets it see a part of the tree, --scope '*' all of it")
    cli.note(f"{name} is {role} until {_day(made.expires_at)}; the token is shown this once")


def list_(cli: Cli) -> None:
    """List the tokens that were ever made; never the tokens themselves."""
    from federator.index import tokens

    with cli.index() as index:
        found = tokens.every(index)
    now = time.time()
    if cli.json:
        cli.out.document({"tokens": [token.to_json(now) for token in found]})
    elif not found:
        cli.note("there is no token: federator token create makes one")
    else:
        columns = [
            Column("name"), Column("role"), Column("state"), Column("scopes", wide=True), Column("until"), Column("made by"),
        ]  # fmt: skip
        cli.out.table(
            columns,
            [
                (t.name, t.role, t.state(now), " ".join(t.scopes.texts) or "(nothing)", _day(t.expires_at), t.created_by)
                for t in found
            ],
        )


def revoke(cli: Cli, name: NAME) -> None:
    """End a token for good; every process of the service obeys within a second."""
    from federator import audit
    from federator.index import tokens

    with cli.index() as index:
        ended = tokens.revoke(index, name, actor=getpass.getuser())
        audit.seal(index)
    if cli.json:
        cli.out.document(ended.to_json(time.time()))
    else:
        cli.out.line(f"{name} is revoked")


def _day(moment: float | None) -> str:
    return NEVER if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def register(app: typer.Typer) -> None:
    command(group, "create")(create)
    command(group, "list")(list_)
    command(group, "revoke")(revoke)
    app.add_typer(group, name="token")
