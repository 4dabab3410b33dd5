"""A person's decision about a plan, recorded with who and when.

Approving a plan approves the changes of its guarded set (``planning.release``); rejecting it takes that back. A plan that nothing holds
has no guarded set: it is rejected as it is.
"""

from __future__ import annotations

import json
from typing import Literal

from federator import audit
from federator.connector import StateError
from federator.index import Connection, Index, RowMapping, approvals, audit_log, plans
from federator.planning.holds import LiftedBy
from federator.planning.plan import Plan
from federator.planning.release import guarded, guarded_digest, objecting_guards

Decision = Literal["approved", "rejected"]

# A plan that was made again is outdated; what both hold is still the same.
_OPEN = {
    "approved": ("held", "approved", "rejected", "outdated"),
    "rejected": ("held", "ready", "approved", "rejected", "outdated"),
}


def decide(index: Index, digest: str, decision: Decision, *, actor: str) -> RowMapping:
    """Approves or rejects a plan by its digest, or the beginning of it; returns it as it is now. Raises StateError."""
    with index.write() as connection:
        row = plans.get(connection, digest)
        if row["state"] not in _OPEN[decision]:
            raise StateError(
                f"the plan {row['digest'][:12]} is {row['state']} and cannot be {decision}",
                hint="federator plans list --held lists those that wait",
            )
        plan = Plan.from_json(json.loads(row["body"]))
        _decide_changes(connection, row, plan, decision, actor)
        plans.decide(connection, row["digest"], decision, actor)
        detail = {"plan": row["digest"], "was": row["state"], "guarded": guarded_digest(plan), "changes": len(guarded(plan))}
        audit_log.append(
            connection, f"plan_{decision}", actor=actor, run_id=row["run_id"], subject=row["mirror"], detail=detail
        )
        decided = plans.get(connection, row["digest"])
    audit.seal(index)
    return decided


def _decide_changes(connection: Connection, row: RowMapping, plan: Plan, decision: Decision, actor: str) -> None:
    if decision == "rejected":
        approvals.withdraw(connection, plan.mirror, list(objecting_guards(plan)))
        return
    for hold in plan.holds:
        if hold.lifted_by is LiftedBy.CONFIRMATION:
            raise StateError(f"the plan {row['digest'][:12]} cannot be approved: {hold}")
    approvals.approve(connection, plan.mirror, objecting_guards(plan), plan=row["digest"], actor=actor)
