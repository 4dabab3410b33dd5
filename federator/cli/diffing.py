"""``diff``: what changed between two runs or times, where, and by whom. No Spark, no catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete
from federator.cli.browse import parsed
from federator.cli.context import Cli, command
from federator.cli.output import at, counted
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from federator.index import Index
    from federator.index.differences import Difference
    from federator.index.moments import Moment

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_WHEN = "A run's id, a time (2026-11-20, 2026-11-20T08:30:00Z), or how long ago (-2d)."


def diff(
    cli: Cli,
    begin: Annotated[str | None, typer.Option("--from", metavar="WHEN", help=f"{_WHEN} Default: the last run but one.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="The same. Default: now, or the last run.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", autocompletion=complete.sources, help="Only what is in this source.")
    ] = None,
    path: Annotated[str | None, typer.Option("--path", help="Only what is at or below this path: 'lake$sales'.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only what was added, removed or changed.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 1000,
) -> None:
    """Show what changed between two moments: what, where, in which fields, and by which mirror and run, or by others."""
    from federator.index import differences

    hows = [how.value for how in differences.How]
    if kind is not None and kind not in hows:
        raise ConfigError(f"--kind: {kind!r} is no kind of change", hint=f"kinds: {', '.join(hows)}")
    below = parsed(path) or ((source,) if source else ())
    if source is not None and below[0] != source:
        raise ConfigError(f"--path {path} is not in {source}")
    with cli.index() as index:
        first, last = _moments(index, begin, end)
        wanted = differences.Wanted(below, differences.How(kind) if kind else None)
        totals = differences.totals(index, first, last, wanted)
        page = differences.page(index, first, last, wanted, limit=limit)
    if cli.json:
        cli.out.document({
            "from": _moment(first), "to": _moment(last), "totals": totals,
            "differences": [asdict(found) for found in page.differences], "more": page.next is not None,
        })  # fmt: skip
        return
    cli.out.line(f"{_said(first)}  →  {_said(last)}", style="bold")
    for found in page.differences:
        _show(cli, found)
    if sum(totals.values()) == 0:
        cli.note("nothing changed")
        return
    cli.out.line(", ".join(f"{number:,} {how}" for how, number in totals.items() if number))
    if page.next is not None:
        cli.note(f"{counted(sum(totals.values()) - limit, 'difference')} more; --limit {limit * 10} shows more of them")


def _moments(index: Index, begin: str | None, end: str | None) -> tuple[Moment, Moment]:
    from federator.index.moments import last_runs, moment

    if begin is not None:
        return moment(index, begin), moment(index, end or "now")
    first, last = last_runs(index)
    return first, moment(index, end) if end is not None else last


def _moment(found: Moment) -> dict[str, Any]:
    return {"at": found.at, "run": found.run, "revisions": dict(sorted(found.revisions.items()))}


def _said(found: Moment) -> str:
    return f"run {found.run}" if found.run else at(found.at)


def _show(cli: Cli, found: Difference) -> None:
    sign, style = _SIGNS[found.how.value]
    kind = "" if found.kind == "table" else f"  ({found.kind.replace('_', ' ')})"
    location = f"  {found.location}" if found.location and found.how.value != "changed" else ""
    cli.out.line(f"{sign} {found.id}{kind}{location}", style=style)
    for change in found.fields:
        cli.out.line(f"    {change.field}: {_value(change.before)} → {_value(change.after)}")
    if found.revision is None:
        cli.out.line(f"    found {at(found.at)}")
        return
    doer = found.by
    who = f"mirror {doer.mirror}, run {doer.run_id} ({doer.action.replace('_', ' ')})" if doer else "others"
    cli.out.line(f"    by {who}; seen in run {found.run_id}, {at(found.at)}")


def _value(text: str | None) -> str:
    return "not set" if text is None else text


def register(app: typer.Typer) -> None:
    command(app, "diff")(diff)
