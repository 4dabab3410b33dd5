"""``mirror``: the rules, what each of them has put where, and pruning."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from federator.cli import complete
from federator.cli.context import Cli, command
from federator.cli.output import Column, ago
from federator.cli.pipeline import ALL, YES, plan_and_apply
from federator.connector.errors import StateError

NAME = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.mirrors, help="The mirror.")]
# Entries of a mirror before the rest is only counted.
_SHOWN = 50

group = typer.Typer(help="Mirrors: rules from source to target.", no_args_is_help=True, rich_markup_mode=None)


def list_(cli: Cli) -> None:
    """List mirrors, with how many tables each has declared."""
    from federator.index import ledger

    rows: list[dict[str, Any]] = []
    counts = _counts(cli, ledger.count_tables)
    for name, mirror in cli.settings.mirrors.items():
        rows.append({
            "name": name, "from": mirror.origin, "to": mirror.target, "schedule": mirror.schedule, "tables": counts.get(name, 0),
        })  # fmt: skip
    if cli.json:
        cli.out.document({"mirrors": rows})
    elif not rows:
        cli.note("no mirror is configured; add a table [mirrors.NAME] with from and to")
    else:
        columns = [Column("mirror"), Column("from"), Column("to"), Column("schedule"), Column("tables", right=True)]
        cli.out.table(columns, [(r["name"], r["from"], r["to"], r["schedule"] or "by hand", r["tables"]) for r in rows])


def show(cli: Cli, name: NAME, everything: ALL = False) -> None:
    """Show a mirror's rule and every table that it has declared."""
    from federator.index import ledger

    rule = cli.settings.rule(name)
    try:
        with cli.index() as index, index.read() as connection:
            entries = [_entry(row) for row in ledger.of_mirror(connection, name)]
    except StateError:
        entries = []
    if cli.json:
        cli.out.document({"rule": asdict(rule), "digest": rule.digest, "ledger": entries})
        return
    cli.out.pairs((key.replace("_", " "), _value(value)) for key, value in asdict(rule).items())
    cli.out.line()
    if not entries:
        cli.out.line("nothing declared yet")
        return
    limit = len(entries) if everything else _SHOWN
    columns = [Column("target", wide=True), Column("origin", wide=True), Column("location", wide=True), Column("since")]
    cli.out.table(columns, [(e["target"], e["origin"], e["location"], ago(e["updated_at"])) for e in entries[:limit]])
    if len(entries) > limit:
        cli.out.line(f"and {len(entries) - limit:,} more; --all shows them")


def prune(cli: Cli, name: NAME, yes: YES = False, everything: ALL = False) -> int:
    """Deregister what a mirror declared and no longer selects, and drop the namespaces it made; the data stays."""
    settings = cli.settings
    settings.rule(name)
    once = settings.mirrors[name].model_copy(update={"prune_unselected": True})
    pruning = settings.model_copy(update={"mirrors": {**settings.mirrors, name: once}})
    return plan_and_apply(cli, pruning, (name,), yes=yes, everything=everything, pruning=True)


def _counts(cli: Cli, count: Any) -> dict[str, int]:
    try:
        with cli.index() as index, index.read() as connection:
            return {name: count(connection, name) for name in cli.settings.mirrors}
    except StateError:
        # Before the first run there is no index, and a list of what is configured needs none.
        return {}


def _entry(row: Any) -> dict[str, Any]:
    return {
        "target": f"{row['target_source']}${row['target_path']}", "origin": f"{row['origin_source']}${row['origin_path']}",
        "kind": "table" if row["is_table"] else "namespace", "location": row["location"], "run_id": row["run_id"],
        "updated_at": row["updated_at"],
    }  # fmt: skip


def _value(value: object) -> object:
    if isinstance(value, tuple):
        return ", ".join(str(_value(item)) for item in value) or "(nothing)"
    if isinstance(value, dict):
        return "; ".join(f"{key} {_value(item)}" for key, item in value.items() if item) or "(nothing)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(as at the origin)" if value is None else value


def register(app: typer.Typer) -> None:
    command(group, "list")(list_)
    command(group, "show")(show)
    command(group, "prune")(prune)
    app.add_typer(group, name="mirror")
