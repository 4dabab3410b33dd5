"""``ledger``: what we put where, taken in again where the index does not know it any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import results
from federator.cli.context import Cli, command
from federator.cli.output import Column, counted
from federator.cli.pipeline import MIRRORS, need_mirrors
from federator.cli.running import working

if TYPE_CHECKING:
    from federator.sync import Result
    from federator.sync.rebuilding import Rebuilt

YES = Annotated[bool, typer.Option("--yes", "-y", help="Take them in. Without it they are only listed.")]
ALL = Annotated[bool, typer.Option("--all", help="Show every object, however many.")]
# Objects of a mirror before the rest is only counted.
_SHOWN = 50

group = typer.Typer(help="What mirrors have declared.", no_args_is_help=True, rich_markup_mode=None)


def rebuild(cli: Cli, mirrors: MIRRORS = None, yes: YES = False, everything: ALL = False) -> int:
    """Find what targets hold with our mark and the ledger does not know; with --yes, take it in.

    For an index that was lost or restored from a backup, after federator crawl. No catalog is changed.
    """
    need_mirrors(cli.settings, mirrors)
    with working(cli, spark=False) as federator:
        result = federator.rebuild(mirrors or (), enter=yes)
    if cli.json:
        cli.out.document(_data(result))
    else:
        for found in result.rebuilt:
            _show(cli, found, everything=everything)
    results.show_errors(cli, result)
    if not yes and any(found.entries for found in result.rebuilt):
        cli.note("nothing was changed; --yes takes these into the ledger, for federator plan to compare")
    return results.exit_code(result)


def _show(cli: Cli, found: Rebuilt, *, everything: bool) -> None:
    done = "taken into the ledger" if found.entered else "not in the ledger"
    cli.out.line(f"mirror {found.mirror}: {counted(len(found.entries), 'object')} {done}")
    limit = len(found.entries) if everything else _SHOWN
    columns = [Column("kind"), Column("target", wide=True), Column("origin", wide=True), Column("why", wide=True)]
    rows = [_entry(each.row, each.why) for each in found.entries[:limit]]
    if rows:
        cli.out.table(columns, [(row["kind"], row["target"], row["origin"], row["why"]) for row in rows])
    if len(found.entries) > limit:
        cli.out.line(f"and {len(found.entries) - limit:,} more; --all shows them")
    for left in found.left:
        cli.out.line(f"  left: {found.target}${left.target_path}: {left.why}")
    for gap in found.gaps:
        cli.out.line(f"  not known: {found.target}: {gap}")


def _data(result: Result) -> dict[str, Any]:
    common = results.as_data(result)
    mirrors = [
        {
            "mirror": found.mirror, "entered": found.entered, "entries": [_entry(each.row, each.why) for each in found.entries],
            "left": [{"target": f"{found.target}${left.target_path}", "why": left.why} for left in found.left],
            "gaps": found.gaps,
        }
        for found in result.rebuilt
    ]  # fmt: skip
    return {**{key: common[key] for key in ("run", "kind", "state", "errors")}, "mirrors": mirrors}


def _entry(row: Any, why: str) -> dict[str, Any]:
    return {
        "kind": "table" if row["is_table"] else "namespace", "target": f"{row['target_source']}${row['target_path']}",
        "origin": f"{row['origin_source']}${row['origin_path']}".rstrip("$"), "location": row["location"], "op_id": row["op_id"],
        "why": why,
    }  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "rebuild")(rebuild)
    app.add_typer(group, name="ledger")
