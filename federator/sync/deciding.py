"""A person's decision about a plan, recorded with who and when."""

from __future__ import annotations

from typing import Literal

from federator import audit
from federator.connector import StateError
from federator.index import Index, RowMapping, audit_log, plans

Decision = Literal["approved", "rejected"]

_OPEN = {"approved": ("held", "approved", "rejected"), "rejected": ("held", "ready", "approved", "rejected")}


def decide(index: Index, digest: str, decision: Decision, *, actor: str) -> RowMapping:
    """Approves or rejects a plan by its digest, or the beginning of it; returns it as it is now. Raises StateError."""
    with index.write() as connection:
        row = plans.get(connection, digest)
        if row["state"] not in _OPEN[decision]:
            raise StateError(
                f"the plan {row['digest'][:12]} is {row['state']} and cannot be {decision}",
                hint="federator plans list --held lists those that wait",
            )
        plans.decide(connection, row["digest"], decision, actor)
        detail = {"plan": row["digest"], "was": row["state"]}
        audit_log.append(
            connection, f"plan_{decision}", actor=actor, run_id=row["run_id"], subject=row["mirror"], detail=detail
        )
        decided = plans.get(connection, row["digest"])
    audit.seal(index)
    return decided
