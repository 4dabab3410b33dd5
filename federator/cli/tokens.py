"""``token``: create, list and revoke API tokens."""

from __future__ import annotations

import getpass
import time
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from federator.cli.context import Cli, command, create_group
from federator.cli.terminal import Column
from federator.connector.errors import ConfigError

NEVER = "never"

NAME = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token. It is recorded in runs and audit events.")]
ROLE = Annotated[
    Literal["viewer", "operator", "writer", "admin"],
    typer.Option("--role", help="Role of the token. Each role includes the previous ones."),
]
SCOPE = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="PATH", help="Visible path: source, source$namespace, ..., or * for all. Repeatable."),
]
EXPIRES = Annotated[str, typer.Option("--expires", metavar="DURATION", help=f"Lifetime of the token, or {NEVER}.")]

#: keys of ``ApiToken.to_json``
_KEYS = ("name", "role", "scopes", "state", "created_at", "created_by", "expires_at", "revoked_at", "revoked_by")
group = create_group("Tokens of the API: create, list, revoke.")


def create(cli: Cli, name: NAME, role: ROLE = "viewer", scope: SCOPE = None, expires: EXPIRES = "90d") -> None:
    """Create a token and print it. It cannot be shown again. Without --scope, it sees nothing."""
    from federator import audit
    from federator.cli.tree import parse_path
    from federator.model import path_key
    from federator.model.scopes import ALL, Scopes
    from federator.settings import parse_duration
    from federator.store import tokens

    tokens.require_valid_name(name)
    try:
        scopes = Scopes.parse(text if text == ALL else path_key(parse_path(text)) for text in scope or [])
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        lifetime = None if expires == NEVER else parse_duration(expires)
    except ValueError as error:
        raise ConfigError(f"--expires: {expires!r} {error}, or never") from None
    if lifetime == 0:
        raise ConfigError("--expires: 0 is not allowed", hint="use a duration such as 12h or 90d, or never")
    unknown = sorted({prefix[0] for prefix in scopes.prefixes if prefix} - set(cli.settings.sources))
    with cli.index() as index:
        secret, token = tokens.create_token(index, name, role=role, scopes=scopes, lifetime=lifetime, actor=getpass.getuser())
        audit.seal_pending(index)
    if cli.json:
        cli.out.document({"token": secret, **token.to_json(time.time())})
    else:
        cli.out.line(secret)
    if unknown:
        cli.print_note(f"no source {', '.join(unknown)} is configured yet: until then the scope covers nothing")
    if not scopes.prefixes:
        cli.print_note(
            "the token sees nothing: use --scope 'source$namespace' for a part of the tree, --scope '*' for all of it"
        )
    cli.print_note(f"{name} is {role} until {_format_day(token.expires_at)}; the token cannot be shown again")


def list_(cli: Cli) -> None:
    """List all tokens that were created. The secrets are not shown."""
    from federator.store import tokens

    with cli.index() as index:
        listed = tokens.list_tokens(index)
    now = time.time()
    if cli.json:
        cli.out.document({"tokens": [token.to_json(now) for token in listed]}, rows="tokens", columns=_KEYS)
    elif not listed:
        cli.print_note("there is no token; create one with federator token create")
    else:
        columns = [
            Column("name"), Column("role"), Column("state"), Column("scopes", wide=True), Column("until"), Column("made by"),
        ]  # fmt: skip
        cli.out.table(
            columns,
            [
                (
                    token.name,
                    token.role,
                    token.state(now),
                    " ".join(token.scopes.texts) or "(nothing)",
                    _format_day(token.expires_at),
                    token.created_by,
                )
                for token in listed
            ],
        )


def revoke(cli: Cli, name: NAME) -> None:
    """Revoke a token. It takes effect in every process within a second."""
    from federator import audit
    from federator.store import tokens

    with cli.index() as index:
        revoked = tokens.revoke_token(index, name, actor=getpass.getuser())
        audit.seal_pending(index)
    if cli.json:
        cli.out.document(revoked.to_json(time.time()))
    else:
        cli.out.line(f"{name} is revoked")


def _format_day(seconds: float | None) -> str:
    return NEVER if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def register(app: typer.Typer) -> None:
    command(group, "create")(create)
    command(group, "list", paged=True)(list_)
    command(group, "revoke")(revoke)
    app.add_typer(group, name="token")
