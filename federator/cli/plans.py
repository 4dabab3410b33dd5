"""``plans``: list and show plans, approve or reject held ones."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command, create_group, cut_list
from federator.cli.plan_output import print_plan, shorten_digest
from federator.cli.printer import format_age, format_time
from federator.cli.run_commands import ALL
from federator.cli.terminal import Column

if TYPE_CHECKING:
    from federator.apply.plan_decisions import Decision
    from federator.store.plans import StoredPlan

DIGEST = Annotated[
    str,
    typer.Argument(metavar="DIGEST", autocompletion=completion.complete_plans, help="Digest of the plan, or a prefix of it."),
]
COMMENT = Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="For those who read the plan or the audit log.")]

OVERRULE = Annotated[bool, typer.Option("--overrule", help="Also against the decision of another person.")]

_COLUMNS = ("digest", "mirror", "state", "run_id", "created_at", "decided_at", "decided_by", "decision_comment")
group = create_group("Plans: list, show, approve, reject.")


def list_(
    cli: Cli,
    mirror: Annotated[
        str | None,
        typer.Argument(metavar="MIRROR", autocompletion=completion.complete_mirrors, help="Only plans of this mirror."),
    ] = None,
    held: Annotated[bool, typer.Option("--held", help="Only plans that wait for a decision.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of plans, newest first.")] = 20,
) -> None:
    """List plans, newest first."""
    from federator.store import plans
    from federator.views.plan_outcomes import count_done

    with cli.index() as index, index.read() as connection:
        found = plans.list_recent_plans(connection, mirror=mirror, state="held" if held else None, limit=limit + 1)
        rows, more = cut_list(found, limit)
        done = count_done(connection, [row.digest for row in rows if row.state in plans.OPEN_STATES])
    if mirror is not None and not rows:
        # A mirror that is not configured any more may have plans.
        cli.settings.mirror_rule(mirror)
    data = [{**_plan_to_json(row), "done": sum(done.get(row.digest, {}).values())} for row in rows]
    if cli.json:
        cli.out.document(
            {"plans": data, "more": more}, rows="plans", columns=(*_COLUMNS, "changes", "refusals", "held", "done")
        )
    elif not rows:
        cli.print_note("no plan waits for a decision" if held else "there is no plan yet; create one with federator plan")
    else:
        columns = [
            Column("plan"),
            Column("mirror"),
            Column("state"),
            Column("changes", right=True),
            Column("done", right=True),
            Column("made"),
            Column("held by", wide=True),
        ]
        cli.out.table(
            columns,
            [
                (
                    shorten_digest(plan["digest"]),
                    plan["mirror"],
                    # A plan without changes is over: there is nothing to apply.
                    "no changes" if plan["state"] == "ready" and not plan["changes"] else plan["state"],
                    plan["changes"],
                    plan["done"] or "",
                    format_age(plan["created_at"]),
                    ", ".join(text.partition(":")[0] for text in plan["held"]) if plan["state"] == "held" else "",
                )
                for plan in data
            ],
        )
        if more:
            cli.print_more(limit)


def show(cli: Cli, digest: DIGEST, everything: ALL = False) -> None:
    """Show one plan with its state and decision."""
    from federator.connector.options import mask_secrets
    from federator.planning.plan import Plan
    from federator.store import approvals, plans
    from federator.views.plan_outcomes import list_change_outcomes

    with cli.index() as index, index.read() as connection:
        stored = plans.get_plan(connection, digest)
        content = stored.content
        plan = Plan.from_json(content)
        valid_approvals = approvals.get_valid(connection, stored.mirror)
        release = approvals.get_release(connection, stored.state, plan)
        outcomes = list_change_outcomes(connection, stored.digest, content["changes"])
    if cli.json:
        waiting = [change.to_json() for change in release.waiting]
        shown = {"guarded": stored.guarded, "waiting": waiting, "outcomes": [asdict(outcome) for outcome in outcomes]}
        cli.out.document({**_plan_to_json(stored), **shown, "plan": mask_secrets(content)})
        return
    print_plan(cli, plan, everything=everything, state=stored.state, approvals=valid_approvals, outcomes=outcomes)
    decided = f"; {stored.state} by {stored.decided_by} {format_time(stored.decided_at)}" if stored.decided_at else ""
    comment = f": {stored.decision_comment}" if stored.decision_comment else ""
    cli.out.line(f"created by run {stored.run_id} {format_time(stored.created_at)}{decided}{comment}")


def approve(cli: Cli, digest: DIGEST, comment: COMMENT = None, overrule: OVERRULE = False) -> None:
    """Approve the held changes of a plan, for this plan or a later one, as long as their evidence holds."""
    _decide(cli, digest, "approved", comment, overrule, "apply it with federator sync {mirror}")


def reject(cli: Cli, digest: DIGEST, comment: COMMENT = None, overrule: OVERRULE = False) -> None:
    """Reject a plan, so that it is not applied."""
    _decide(cli, digest, "rejected", comment, overrule, "it stays rejected until other changes are held")


def _decide(cli: Cli, digest: str, decision: Decision, comment: str | None, overrule: bool, hint: str) -> None:
    """Record a decision as the user of this process and print it. ``hint`` may have the field ``{mirror}``."""
    from federator.apply.plan_decisions import decide_plan

    with cli.index() as index:
        overruled = None if overrule else ""
        actor = getpass.getuser()
        plan = decide_plan(index, digest, decision, actor=actor, comment=comment, overruled=overruled)
    if cli.json:
        cli.out.document(
            {
                "plan": plan.digest,
                "mirror": plan.mirror,
                "state": decision,
                "decided_by": plan.decided_by,
                "decided_at": plan.decided_at,
            }
        )
    else:
        cli.out.line(f"{decision} plan {shorten_digest(plan.digest)} of mirror {plan.mirror}")
        if (plan.decided_by, plan.decision_comment) != (actor, comment):
            cli.print_note(
                f"{plan.decided_by} approved it already, {format_time(plan.decided_at)}; the plan keeps that approval and its comment, "
                "and the audit log has yours, too"
            )
        cli.print_note(f"hint: {hint.format(mirror=plan.mirror)}")


def _plan_to_json(plan: StoredPlan) -> dict[str, Any]:
    """Return a plan's columns, the number of its changes and refusals, and its holds."""
    columns = {name: getattr(plan, name) for name in _COLUMNS}
    content = plan.content
    return {**columns, "changes": len(content["changes"]), "refusals": len(content["refusals"]), "held": content["held"]}


def register(app: typer.Typer) -> None:
    command(group, "list", paged=True)(list_)
    command(group, "show", paged=True)(show)
    command(group, "approve")(approve)
    command(group, "reject")(reject)
    app.add_typer(group, name="plans")
