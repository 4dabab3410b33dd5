"""``mirror``: list, show and prune mirrors."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command, create_group
from federator.cli.printer import format_age, format_duration
from federator.cli.run_commands import ALL, YES, plan_and_apply
from federator.cli.terminal import Column

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from federator.planning.ledger import OwnedObject

NAME = Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.complete_mirrors, help="Name of the mirror.")]
# Maximum number of listed ledger entries without --all.
_MAX_SHOWN = 50

group = create_group("Mirrors: rules from source to target.")


def list_(cli: Cli) -> None:
    """List mirrors with the numbers of their declared tables."""
    from federator.store import ledger

    rows: list[dict[str, Any]] = []
    counts = _count_by_mirror(cli, ledger.count_tables)
    for name, mirror in cli.settings.mirrors.items():
        rows.append({
            "name": name, "from": mirror.origin, "to": mirror.target, "schedule": mirror.schedule, "tables": counts.get(name, 0),
        })  # fmt: skip
    if cli.json:
        cli.out.document({"mirrors": rows}, rows="mirrors", columns=("name", "from", "to", "schedule", "tables"))
    elif not rows:
        cli.print_note("no mirror is configured; add a table [mirrors.NAME] with from and to")
    else:
        columns = [Column("mirror"), Column("from"), Column("to"), Column("schedule"), Column("tables", right=True)]
        cli.out.table(
            columns, [(row["name"], row["from"], row["to"], row["schedule"] or "by hand", row["tables"]) for row in rows]
        )


def show(cli: Cli, name: NAME, everything: ALL = False) -> None:
    """Show a mirror's rule and its ledger."""
    from federator.store import ledger

    rule = cli.settings.mirror_rule(name)
    values = {"name": name, **asdict(rule)}
    entries = _read_index(cli, lambda connection: [_entry_json(entry) for entry in ledger.list_entries(connection, name)]) or []
    if cli.json:
        cli.out.document({"rule": values, "digest": rule.digest, "ledger": entries})
        return
    cli.out.pairs((key.replace("_", " "), _rule_text(key, value)) for key, value in values.items())
    cli.out.line()
    if not entries:
        cli.out.line("nothing declared yet")
        return
    limit = len(entries) if everything else _MAX_SHOWN
    columns = [Column("target", wide=True), Column("origin", wide=True), Column("location", cut=True), Column("since")]
    cli.out.table(
        columns,
        [(entry["target"], entry["origin"], entry["location"], format_age(entry["updated_at"])) for entry in entries[:limit]],
    )
    if len(entries) > limit:
        cli.out.line(f"and {len(entries) - limit:,} more; --all shows them")


def prune(cli: Cli, name: NAME, yes: YES = False, everything: ALL = False) -> int:
    """Deregister tables that a mirror owns and no longer selects, and drop namespaces that it created. Data stays."""
    settings = cli.settings
    settings.mirror_rule(name)
    pruning_mirror = settings.mirrors[name].model_copy(update={"prune_unselected": True})
    pruning_settings = settings.model_copy(update={"mirrors": {**settings.mirrors, name: pruning_mirror}})
    return plan_and_apply(cli, pruning_settings, (name,), yes=yes, everything=everything, pruning=True)


def _count_by_mirror(cli: Cli, count: Any) -> dict[str, int]:
    return _read_index(cli, lambda connection: {name: count(connection, name) for name in cli.settings.mirrors}) or {}


def _read_index(cli: Cli, read: Callable[[Connection], Any]) -> Any:
    """Return what ``read`` finds. None before the first run, when there is no index: what is configured can be shown without it."""
    with cli.unchecked_index() as index:
        if index.file is not None and not index.file.exists():
            return None
    with cli.index() as index, index.read() as connection:
        return read(connection)


def _entry_json(entry: OwnedObject) -> dict[str, Any]:
    return {
        "target": f"{entry.target_source}${entry.target_path}", "origin": f"{entry.origin_source}${entry.origin_path}",
        "kind": "table" if entry.is_table else "namespace", "location": entry.location, "run_id": entry.run_id,
        "updated_at": entry.updated_at,
    }  # fmt: skip


def _rule_text(key: str, value: object) -> object:
    """Return the value of a rule's key as it is shown: durations and shares with their unit."""
    if isinstance(value, float):
        return f"{value:g} %" if key.endswith("_percent") else format_duration(value)
    return _json_value(value)


def _json_value(value: object) -> object:
    if isinstance(value, tuple):
        return ", ".join(str(_json_value(item)) for item in value) or "(nothing)"
    if isinstance(value, dict):
        return "; ".join(f"{key} {_json_value(item)}" for key, item in value.items() if item) or "(nothing)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or "(nothing)"
    return "(as at the origin)" if value is None else value


def register(app: typer.Typer) -> None:
    command(group, "list", paged=True)(list_)
    command(group, "show", paged=True)(show)
    command(group, "prune")(prune)
    app.add_typer(group, name="mirror")
