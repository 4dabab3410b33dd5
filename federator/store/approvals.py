"""Stored approvals of changes, keyed by the change's evidence, so that each plan with an equal change finds them.

``planning.release`` has the rules.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection

from sqlalchemy import Connection, delete, insert, select

from federator.planning import release
from federator.planning.plan import Plan
from federator.planning.release import APPROVAL_SECONDS, Approval, Approvals, Release, valid_approvals
from federator.store import tables as t
from federator.store.sql import chunked


def get_valid(connection: Connection, mirror: str) -> Approvals:
    """Return the valid approvals of a mirror: the guards that objected at the approval, by the change's evidence."""
    a = t.approval.c
    rows = connection.execute(select(a.evidence, a.approved_at, a.guards).where(a.mirror == mirror))
    return valid_approvals({key: Approval(at, frozenset(json.loads(guards))) for key, at, guards in rows}, time.time())


def get_release(connection: Connection, state: str, plan: Plan) -> Release:
    """Return the changes of a plan in a stored state that may start now, and those that wait. Both are empty for a finished plan."""
    if state in ("applied", "outdated"):
        return Release((), ())
    return release.release_changes(plan, get_valid(connection, plan.mirror))


def approve(connection: Connection, plan: Plan, *, digest: str, actor: str) -> None:
    """Approve the guarded set of a plan (``planning.release.approve``). ``digest`` is the one with which the plan is stored.

    If the whole set is approved already, the approvals keep their actor and time. Raise StateError if only another command can lift
    a hold.
    """
    a = t.approval.c
    mirror = plan.mirror
    valid = get_valid(connection, mirror)
    guards_by_evidence = release.approve(plan, valid)
    if release.release_state(plan, valid) == "approved":
        return
    connection.execute(delete(t.approval).where(a.mirror == mirror, a.approved_at <= time.time() - APPROVAL_SECONDS))
    withdraw(connection, mirror, guards_by_evidence)
    rows = [
        {
            "mirror": mirror, "evidence": evidence, "plan": digest, "actor": actor, "approved_at": time.time(),
            "guards": json.dumps(sorted(guards)),
        }
        for evidence, guards in guards_by_evidence.items()
    ]  # fmt: skip
    if rows:
        connection.execute(insert(t.approval), rows)


def withdraw(connection: Connection, mirror: str, evidence: Collection[str]) -> None:
    """Delete the approvals of changes with this evidence."""
    a = t.approval.c
    for chunk in chunked(sorted(evidence)):
        connection.execute(delete(t.approval).where(a.mirror == mirror, a.evidence.in_(chunk)))
