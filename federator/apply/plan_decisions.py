"""Decisions about plans, recorded with actor and time.

An approval of a plan approves the changes of its guarded set (``planning.release``). A rejection withdraws these approvals. A plan
without holds has no guarded set, and is rejected as a whole.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from federator import audit
from federator.connector import StateError
from federator.model.audit_kinds import AuditKind
from federator.planning.plan import Plan
from federator.planning.release import list_guarded_changes, objecting_guards
from federator.runtime.text import escape_controls
from federator.store import Connection, Index, approvals, audit_log, plans
from federator.store.plans import StoredPlan

Decision = Literal["approved", "rejected"]
_AUDIT_KINDS: dict[Decision, AuditKind] = {"approved": AuditKind.PLAN_APPROVED, "rejected": AuditKind.PLAN_REJECTED}

# A plan that was built again is outdated, but the changes that both contain are the same.
_DECIDABLE_STATES = {
    "approved": ("held", "approved", "rejected", "outdated"),
    "rejected": ("held", "ready", "approved", "rejected", "outdated"),
}


def decide_plan(
    index: Index, digest: str, decision: Decision, *, actor: str, comment: str | None = None, overruled: str | None = ""
) -> StoredPlan:
    """Approve or reject a plan by its digest or a prefix of it. Return the plan afterwards. Raise StateError.

    ``comment`` is kept with the plan and in the audit event. ``overruled`` is the digest of the decision against which this one is
    made; "": of none; None: of any.
    """
    with index.read() as connection:
        known = plans.get_plan(connection, digest)
    # A digest fixes the content, and to parse a large one takes seconds: no writer of SQLite waits for it.
    plan = Plan.from_json(known.content)
    with index.write() as connection:
        stored = plans.lock_plan(connection, known.digest)
        if stored.state not in _DECIDABLE_STATES[decision]:
            raise StateError(
                f"the plan {stored.digest[:12]} is {stored.state} and cannot be {decision}",
                hint="list the plans that wait: federator plans list --held",
            )
        if overruled is not None:
            _require_no_other_decision(connection, stored, decision, overruled)
        _decide_changes(connection, stored.digest, plan, decision, actor)
        plans.record_decision(connection, stored.digest, decision, actor, comment=comment)
        detail = {
            "plan": stored.digest,
            "was": stored.state,
            "guarded": stored.guarded,
            "changes": len(list_guarded_changes(plan)),
            **({} if comment is None else {"comment": comment}),
        }
        audit_log.append_event(
            connection, _AUDIT_KINDS[decision], actor=actor, run_id=stored.run_id, subject=stored.mirror, detail=detail
        )
        decided = plans.get_plan(connection, stored.digest)
    audit.seal_pending(index)
    return decided


def _require_no_other_decision(connection: Connection, plan: StoredPlan, decision: Decision, overruled: str) -> None:
    opposite, command = ("rejected", "approve") if decision == "approved" else ("approved", "reject")
    decided = plans.find_decided(connection, plan, opposite)
    if decided is None or decided.decision_digest == overruled:
        return
    at = datetime.fromtimestamp(decided.decided_at or 0, UTC)
    comment = f": {escape_controls(decided.decision_comment)}" if decided.decision_comment else ""
    raise StateError(
        f"the plan {decided.digest[:12]} was {opposite} by {decided.decided_by} at {at:%Y-%m-%d %H:%M} UTC{comment}",
        hint=f"nothing was changed; to {command} it nevertheless: federator plans {command} {plan.digest[:12]} --overrule, "
        "or read it again and send its if_match",
    )


def _decide_changes(connection: Connection, digest: str, plan: Plan, decision: Decision, actor: str) -> None:
    if decision == "rejected":
        approvals.withdraw(connection, plan.mirror, list(objecting_guards(plan)))
        return
    approvals.approve(connection, plan, digest=digest, actor=actor)
