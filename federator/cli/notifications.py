"""``notifications``: what was sent, what waits and what is dead; send one again, try a channel."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli.context import Cli, command
from federator.cli.errors import FAILED, OK
from federator.cli.output import Column, ago
from federator.connector.errors import StateError

if TYPE_CHECKING:
    from federator.index import RowMapping


class State(StrEnum):
    """What became of a notification."""

    QUEUED = "queued"
    SENT = "sent"
    DEAD = "dead"


group = typer.Typer(help="Notifications: list, send again, try a channel.", no_args_is_help=True, rich_markup_mode=None)


def list_(
    cli: Cli,
    state: Annotated[State | None, typer.Option("--state", help="Only those in this state.")] = None,
    channel: Annotated[str | None, typer.Option("--channel", metavar="NAME", help="Only those of this channel.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, metavar="N", help="How many at most, newest first.")] = 20,
) -> None:
    """List notifications, newest first."""
    from federator.index import notices, notifications

    with cli.index() as index, index.read() as connection:
        rows = notifications.recent(connection, state=state.value if state else None, channel=channel, limit=limit)
        waiting = notices.any_waiting(connection)
    if cli.json:
        cli.out.document({"notifications": [_data(row) for row in rows]})
        return
    columns = [
        Column("notification"), Column("channel"), Column("state"), Column("severity"), Column("events", right=True),
        Column("tries", right=True), Column("made"), Column("what", wide=True), Column("error", wide=True),
    ]  # fmt: skip
    cli.out.table(columns, [_shown(row) for row in rows])
    if waiting:
        cli.note("some notices are not looked at yet: the service, or the next run, sends them")


def retry(
    cli: Cli,
    numbers: Annotated[
        list[str] | None, typer.Argument(metavar="[NOTIFICATION]...", help="Ids, or beginnings of ids, of dead ones.")
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="Every dead one.")] = False,
) -> int:
    """Send dead notifications again, under their old ids."""
    from federator import notify
    from federator.index import notifications

    if bool(numbers) == dead:
        raise StateError("name notifications, or say --dead", hint="federator notifications list --state dead")
    with cli.index() as index:
        with index.write() as connection:
            chosen = numbers or [row["id"] for row in notifications.recent(connection, state="dead", limit=1000)]
            queued = [notifications.retry(connection, number)["id"] for number in chosen]
        notify.deliver(index, cli.settings, at_once=True)
        with index.read() as connection:
            rows = [notifications.get(connection, number) for number in queued]
    return _ended(cli, rows)


def test(cli: Cli, channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="Its name below [notify].")]) -> int:
    """Send a test through a channel, at once."""
    from federator import notify

    with cli.index() as index:
        row = notify.test(index, cli.settings, channel)
    return _ended(cli, [row])


def _ended(cli: Cli, rows: list[RowMapping]) -> int:
    if cli.json:
        cli.out.document({"notifications": [_data(row) for row in rows]})
    else:
        for row in rows:
            said = f", {row['error']}" if row["error"] else ""
            cli.out.line(f"{row['channel']}: {row['state']}{said} ({row['id']})")
    return OK if all(row["state"] == "sent" for row in rows) else FAILED


def _data(row: RowMapping) -> dict[str, Any]:
    kept = {key: row[key] for key in ("id", "channel", "state", "severity", "events", "attempts", "error")}
    times = {key: row[key] for key in ("created_at", "due_at", "ended_at")}
    return {**kept, **times, **json.loads(row["body"])}


def _shown(row: RowMapping) -> tuple[object, ...]:
    counts = json.loads(row["body"])["counts"]
    what = ", ".join(f"{number:,} {event.replace('_', ' ')}" for event, number in counts.items())
    return (
        row["id"], row["channel"], row["state"], row["severity"], row["events"], row["attempts"], ago(row["created_at"]), what,
        row["error"] or "",
    )  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "list")(list_)
    command(group, "retry")(retry)
    command(group, "test")(test)
    app.add_typer(group, name="notifications")
