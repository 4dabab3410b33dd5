"""``diff``: differences between two snapshots with their attributions. It uses neither Spark nor a catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command
from federator.cli.printer import format_time
from federator.cli.tree import parse_path
from federator.connector.errors import ConfigError
from federator.model.differences import DifferenceKind
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from federator.store import Index
    from federator.store.snapshots import Snapshot
    from federator.views.diff import Difference

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_SNAPSHOT_HELP = "Run id, time (2026-11-20, 2026-11-20T08:30:00Z), or time before now (-2d)."


def diff(
    cli: Cli,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="WHEN", help=f"{_SNAPSHOT_HELP} Default: the run before the last one.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="WHEN", help="As --from. Default: now, or the last run without --from.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", autocompletion=completion.complete_sources, help="Only objects of this source.")
    ] = None,
    path: Annotated[str | None, typer.Option("--path", help="Only this object and objects below it: 'lake$sales'.")] = None,
    kind: Annotated[
        DifferenceKind | None, typer.Option("--kind", help="Only this kind of difference: added, removed or changed.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of differences.")] = 1000,
) -> None:
    """Show the differences between two snapshots: objects, fields, and the mirror and run that caused them."""
    from federator.views import diff as views
    from federator.views.freshness import get_freshness

    path_prefix = parse_path(path) or ((source,) if source else ())
    if source is not None and path_prefix[0] != source:
        raise ConfigError(f"--path {path} is not in the source {source}")
    with cli.index() as index:
        if path_prefix:
            # Raise NamespaceNotFound for an unknown source: it has no differences either.
            get_freshness(index, path_prefix[0])
        first, last = _resolve_snapshots(index, begin, end)
        filters = views.DifferenceFilter(path_prefix, kind)
        totals = views.count_differences(index, first, last, filters)
        page = views.list_differences(index, first, last, filters, limit=limit)
    if cli.json:
        cli.out.document({
            "from": _snapshot_json(first), "to": _snapshot_json(last), "totals": totals,
            "differences": [asdict(difference) for difference in page.differences], "more": page.next is not None,
        }, rows="differences", columns=views.Difference)  # fmt: skip
        return
    cli.out.line(f"{_format_snapshot(first)}  →  {_format_snapshot(last)}", style="bold")
    for difference in page.differences:
        _print_difference(cli, difference)
    if sum(totals.values()) == 0:
        cli.out.line("no difference matches" if kind or path_prefix else "nothing changed")
        return
    cli.out.line(", ".join(f"{number:,} {name}" for name, number in totals.items() if number))
    if page.next is not None:
        cli.print_note(
            f"{format_count(sum(totals.values()) - limit, 'difference')} more; --limit {limit * 10} shows more of them"
        )


def _resolve_snapshots(index: Index, begin: str | None, end: str | None) -> tuple[Snapshot, Snapshot]:
    from federator.store.snapshots import latest_run_snapshots, resolve_snapshot

    if begin is not None:
        return resolve_snapshot(index, begin), resolve_snapshot(index, end or "now")
    first, last = latest_run_snapshots(index)
    return first, resolve_snapshot(index, end) if end is not None else last


def _snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    return {"at": snapshot.at, "run": snapshot.run, "revisions": dict(sorted(snapshot.revisions.items()))}


def _format_snapshot(snapshot: Snapshot) -> str:
    return f"run {snapshot.run}" if snapshot.run else format_time(snapshot.at)


def _print_difference(cli: Cli, difference: Difference) -> None:
    sign, style = _SIGNS[difference.how.value]
    kind = "" if difference.kind == "table" else f"  ({difference.kind.replace('_', ' ')})"
    location = f"  {difference.location}" if difference.location and difference.how.value != "changed" else ""
    cli.out.line(f"{sign} {difference.id}{kind}{location}", style=style)
    for change in difference.fields:
        cli.out.line(f"    {change.field}: {_value(change.before)} → {_value(change.after)}")
    if difference.revision is None:
        cli.out.line(f"    found {format_time(difference.at)}")
        return
    attribution = difference.by
    cause = (
        f"mirror {attribution.mirror}, run {attribution.run_id} ({attribution.action.replace('_', ' ')})"
        if attribution
        else "others"
    )
    cli.out.line(f"    by {cause}; seen in run {difference.run_id}, {format_time(difference.at)}")


def _value(text: str | None) -> str:
    return "not set" if text is None else text


def register(app: typer.Typer) -> None:
    command(app, "diff", paged=True)(diff)
