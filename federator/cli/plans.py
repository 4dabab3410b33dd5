"""``plans``: those that were made, and a person's decision about held ones."""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import complete
from federator.cli.context import Cli, command
from federator.cli.output import Column, ago, at
from federator.cli.pipeline import ALL
from federator.cli.planview import short, show_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.sync.deciding import Decision

DIGEST = Annotated[str, typer.Argument(metavar="DIGEST", help="The plan's digest, or its beginning.")]

group = typer.Typer(help="Plans that were made; approve or reject held ones.", no_args_is_help=True, rich_markup_mode=None)


def list_(
    cli: Cli,
    mirror: Annotated[
        str | None, typer.Argument(metavar="[MIRROR]", autocompletion=complete.mirrors, help="Only this mirror's.")
    ] = None,
    held: Annotated[bool, typer.Option("--held", help="Only those that wait for a decision.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, newest first.")] = 20,
) -> None:
    """List plans, newest first."""
    from federator.index import plans

    with cli.index() as index, index.read() as connection:
        rows = plans.recent(connection, mirror=mirror, state="held" if held else None, limit=limit)
    data = [_data(row) for row in rows]
    if cli.json:
        cli.out.document({"plans": data})
    elif not rows:
        cli.note("no plan waits for a decision" if held else "no plan was made yet; federator plan makes one")
    else:
        columns = [
            Column("plan"),
            Column("mirror"),
            Column("state"),
            Column("changes", right=True),
            Column("made"),
            Column("held by", wide=True),
        ]
        cli.out.table(
            columns,
            [
                (short(d["digest"]), d["mirror"], d["state"], d["changes"], ago(d["created_at"]), "; ".join(d["held"]))
                for d in data
            ],
        )


def show(cli: Cli, digest: DIGEST, everything: ALL = False) -> None:
    """Show one plan in full, and what became of it."""
    from federator.index import approvals, plans
    from federator.planning.plan import Plan

    with cli.index() as index, index.read() as connection:
        row = plans.get(connection, digest)
        approved, released = approvals.current(connection, row["mirror"]), approvals.released(connection, row)
    if cli.json:
        waiting = [each.to_json() for each in released.waiting]
        cli.out.document({**_data(row), "guarded": row["guarded"], "waiting": waiting, "plan": json.loads(row["body"])})
        return
    show_plan(cli, Plan.from_json(json.loads(row["body"])), everything=everything, state=row["state"], approvals=approved)
    decided = f"; {row['state']} by {row['decided_by']} {at(row['decided_at'])}" if row["decided_at"] else ""
    cli.out.line(f"made by run {row['run_id']} {at(row['created_at'])}{decided}")


def approve(cli: Cli, digest: DIGEST) -> None:
    """Let what a plan holds be done, in this plan or a later one, as long as its evidence holds."""
    row = _decide(cli, digest, "approved")
    _told(cli, row, "approved", f"federator sync {row['mirror']} applies it")


def reject(cli: Cli, digest: DIGEST) -> None:
    """Keep a plan from being applied."""
    row = _decide(cli, digest, "rejected")
    _told(cli, row, "rejected", "it stays rejected until what is held is something else")


def _decide(cli: Cli, digest: str, decision: Decision) -> Mapping[Any, Any]:
    from federator.sync.deciding import decide

    with cli.index() as index:
        return decide(index, digest, decision, actor=getpass.getuser())


def _told(cli: Cli, row: Mapping[Any, Any], state: str, hint: str) -> None:
    if cli.json:
        cli.out.document({"plan": row["digest"], "mirror": row["mirror"], "state": state})
    else:
        cli.out.line(f"{state} plan {short(row['digest'])} of mirror {row['mirror']}")
        cli.note(f"hint: {hint}")


def _data(row: Mapping[Any, Any]) -> dict[str, Any]:
    body = json.loads(row["body"])
    kept = {name: row[name] for name in ("digest", "mirror", "state", "run_id", "created_at", "decided_at", "decided_by")}
    return {**kept, "changes": len(body["changes"]), "refusals": len(body["refusals"]), "held": body["held"]}


def register(app: typer.Typer) -> None:
    command(group, "list")(list_)
    command(group, "show")(show)
    command(group, "approve")(approve)
    command(group, "reject")(reject)
    app.add_typer(group, name="plans")
