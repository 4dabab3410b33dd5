"""``ledger``: rebuild the ledger from the ownership markers in the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import result_output
from federator.cli.context import Cli, command, create_group
from federator.cli.interactive_run import open_run
from federator.cli.run_commands import MIRRORS, require_mirrors
from federator.cli.terminal import Column
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from federator.stages.result import RebuildResult, RecoverableEntry, RunResult

YES = Annotated[bool, typer.Option("--yes", "-y", help="Add the objects to the ledger. Default: only list them.")]
ALL = Annotated[bool, typer.Option("--all", help="Show all objects, without a limit.")]
# Maximum number of listed objects per mirror without --all.
_MAX_SHOWN = 50

group = create_group("The ledger of owned objects.")


def rebuild(cli: Cli, mirrors: MIRRORS = None, yes: YES = False, everything: ALL = False) -> int:
    """Find owned objects that are missing in the ledger; add them with --yes.

    Use it after federator crawl, if the index was lost or restored from a backup. No catalog is changed.
    """
    require_mirrors(cli.settings, mirrors)
    with open_run(cli, spark=False) as federator:
        result = federator.rebuild_ledger(mirrors or (), enter=yes)
    if cli.json:
        cli.out.document(_rebuild_json(result))
    else:
        for rebuild_result in result.rebuilt:
            _print_rebuild(cli, rebuild_result, everything=everything)
    result_output.print_errors(cli, result)
    if not yes and any(rebuild_result.entries for rebuild_result in result.rebuilt):
        cli.print_note("nothing was changed; use --yes to add these to the ledger")
    return result_output.exit_code(result)


def _print_rebuild(cli: Cli, result: RebuildResult, *, everything: bool) -> None:
    ledger_state = "added to the ledger" if result.applied else "not in the ledger"
    cli.out.line(f"mirror {result.mirror}: {format_count(len(result.entries), 'object')} {ledger_state}")
    limit = len(result.entries) if everything else _MAX_SHOWN
    columns = [Column("kind"), Column("target", wide=True), Column("origin", wide=True), Column("why", wide=True)]
    rows = [_entry_json(missing) for missing in result.entries[:limit]]
    if rows:
        cli.out.table(columns, [(row["kind"], row["target"], row["origin"], row["why"]) for row in rows])
    if len(result.entries) > limit:
        cli.out.line(f"and {len(result.entries) - limit:,} more; --all shows them")
    for item in result.unrecoverable:
        cli.out.line(f"  not added: {result.target}${item.target_path}: {item.reason}")
    for gap in result.gaps:
        cli.out.line(f"  unknown: {result.target}: {gap}")


def _rebuild_json(result: RunResult) -> dict[str, Any]:
    common = result_output.result_to_json(result)
    mirrors = [
        {
            "mirror": rebuilt.mirror, "entered": rebuilt.applied,
            "entries": [_entry_json(missing) for missing in rebuilt.entries],
            "left": [{"target": f"{rebuilt.target}${item.target_path}", "why": item.reason} for item in rebuilt.unrecoverable],
            "gaps": rebuilt.gaps,
        }
        for rebuilt in result.rebuilt
    ]  # fmt: skip
    return {**{key: common[key] for key in ("run", "kind", "state", "errors")}, "mirrors": mirrors}


def _entry_json(missing: RecoverableEntry) -> dict[str, Any]:
    entry = missing.entry
    return {
        "kind": "table" if entry.is_table else "namespace", "target": f"{entry.target_source}${entry.target_path}",
        "origin": f"{entry.origin_source}${entry.origin_path}".rstrip("$"), "location": entry.location, "op_id": entry.op_id,
        "why": missing.reason,
    }  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "rebuild")(rebuild)
    app.add_typer(group, name="ledger")
