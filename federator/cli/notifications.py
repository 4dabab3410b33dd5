"""``notifications``: list notifications, send dead ones again, test a channel."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.context import Cli, command, create_group, cut_list
from federator.cli.errors import FAILED, OK
from federator.cli.printer import format_age
from federator.cli.terminal import Column
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from federator.store.notifications import Notification


class State(StrEnum):
    """States of a notification."""

    QUEUED = "queued"
    SENT = "sent"
    DEAD = "dead"


group = create_group("Notifications: list, send again, test a channel.")


def list_(
    cli: Cli,
    state: Annotated[State | None, typer.Option("--state", help="Only notifications in this state.")] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="Only notifications of this channel.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of notifications, newest first.")] = 20,
) -> None:
    """List notifications, newest first."""
    from federator.store import notices, notifications

    with cli.index() as index, index.read() as connection:
        found = notifications.list_notifications(
            connection, state=state.value if state else None, channel=channel, limit=limit + 1
        )
        waiting = notices.has_pending_notices(connection)
    listed, more = cut_list(found, limit)
    if cli.json:
        document = {"notifications": [asdict(item) for item in listed], "more": more}
        cli.out.document(document, rows="notifications", columns=notifications.Notification)
        return
    channels = cli.settings.notify
    if not listed:
        cli.print_note("no notification matches" if channels else "no channel is configured; add a table [notify.NAME]")
    else:
        columns = [
            Column("notification"), Column("channel"), Column("state"), Column("severity"), Column("events", right=True),
            Column("tries", right=True), Column("made"), Column("what", wide=True), Column("error", wide=True),
        ]  # fmt: skip
        cli.out.table(columns, [_cells(item) for item in listed])
        if more:
            cli.print_more(limit)
    if waiting and channels:
        cli.print_note("some notices are not processed yet; the service or the next run sends them")


def retry(
    cli: Cli,
    prefixes: Annotated[
        list[str] | None, typer.Argument(metavar="NOTIFICATION", help="Ids, or prefixes of ids, of dead notifications.")
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="All dead notifications.")] = False,
) -> int:
    """Send dead notifications again, with their old ids."""
    from federator import notify
    from federator.store import notifications

    if bool(prefixes) == dead:
        raise ConfigError("specify either ids or --dead", hint="list ids with federator notifications list --state dead")
    with cli.index() as index:
        with index.write() as connection:
            if dead:
                prefixes = [item.id for item in notifications.list_notifications(connection, state="dead", limit=1000)]
            queued_ids = [notifications.requeue_dead(connection, prefix) for prefix in prefixes or ()]
        notify.deliver_due(index, cli.settings, at_once=True)
        with index.read() as connection:
            results = [notifications.get_notification(connection, queued_id) for queued_id in queued_ids]
    return _print_results(cli, results)


def test(cli: Cli, channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="Name of the channel in [notify].")]) -> int:
    """Send a test notification to a channel now."""
    from federator import notify

    with cli.index() as index:
        result = notify.send_test(index, cli.settings, channel)
    return _print_results(cli, [result])


def _print_results(cli: Cli, results: list[Notification]) -> int:
    if cli.json:
        cli.out.document({"notifications": [asdict(result) for result in results]}, rows="notifications")
    else:
        for result in results:
            error = f", {result.error}" if result.error else ""
            cli.out.line(f"{result.channel}: {result.state}{error} ({result.id})")
    return OK if all(result.state == "sent" for result in results) else FAILED


def _cells(item: Notification) -> tuple[object, ...]:
    summary = ", ".join(f"{number:,} {event.replace('_', ' ')}" for event, number in item.counts.items())
    return (
        item.id, item.channel, item.state, item.severity, item.events, item.attempts, format_age(item.created_at), summary,
        item.error or "",
    )  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "list", paged=True)(list_)
    command(group, "retry")(retry)
    command(group, "test")(test)
    app.add_typer(group, name="notifications")
