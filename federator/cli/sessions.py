"""``session``: list and end the sessions of people who signed in with a browser."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict
from typing import Annotated

import typer

from federator.cli.context import Cli, command, create_group
from federator.cli.printer import format_column_time
from federator.cli.terminal import Column
from federator.runtime.text import format_count

NAME = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person, as in the list.")]
ONLY = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Only sessions of this person.")]
ID = Annotated[str | None, typer.Option("--id", metavar="ID", help="Only this session. Default: all sessions of the person.")]

group = create_group("Sessions of people who signed in with a browser: list, revoke.")


def list_(cli: Cli, name: ONLY = None) -> None:
    """List the open sessions."""
    from federator.store import sessions

    oidc = cli.settings.serve.oidc
    idle = oidc.sign_in.idle_timeout if oidc is not None and oidc.sign_in is not None else None
    with cli.index() as index:
        listed = sessions.list_sessions(index, now=time.time(), idle_timeout=idle, name=name)
    if cli.json:
        cli.out.document({"sessions": [asdict(session) for session in listed]}, rows="sessions", columns=sessions.OpenSession)
    elif not listed:
        cli.print_note("no session is open")
    else:
        columns = [Column("name"), Column("id"), Column("signed in"), Column("last request"), Column("until")]
        cli.out.table(
            columns, [(s.name, s.id, *map(format_column_time, (s.created_at, s.used_at, s.expires_at))) for s in listed]
        )


def revoke(cli: Cli, name: NAME, id: ID = None) -> None:
    """End sessions of a person. It takes effect in every process within a second. The person may sign in again."""
    from federator import audit
    from federator.store import sessions
    from federator.store.failures import UnknownId

    with cli.index() as index:
        number = sessions.revoke_sessions(index, name, actor=getpass.getuser(), id=id)
        audit.seal_pending(index)
    if not number:
        raise UnknownId(f"{name!r} has no such session", hint="federator session list shows the open ones")
    if cli.json:
        cli.out.document({"name": name, "revoked": number})
    else:
        cli.out.line(f"{format_count(number, 'session')} of {name} revoked")


def register(app: typer.Typer) -> None:
    command(group, "list", paged=True)(list_)
    command(group, "revoke")(revoke)
    app.add_typer(group, name="session")
