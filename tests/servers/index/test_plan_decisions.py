"""Decisions about a plan at the same time, on both databases: the first one counts, unless the second was made against it."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from federator.apply import plan_decisions
from federator.apply.plan_decisions import decide_plan
from federator.connector import StateError
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.planning.release import guarded_digest
from federator.store import Connection, Index, approvals, plans
from federator.store.plans import StoredPlan

_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


def _save(index: Index, revision: int = 1) -> str:
    after = TableRecord("copy", ("sales", "a"), "s3://b/a")
    change = Change(Action.DECLARE_TABLE, "copy", "sales$a", "lake", "sales$a", "new", after=after)
    plan = Plan("m", "d", revision, 1, (change,), holds=(Hold("max_change_percent", "1 of 1"),))
    body = json.dumps(plan.to_json())
    with index.write() as connection:
        plans.save_plan(
            connection, digest=plan.digest, mirror="m", run_id="r", state="held", body=body, guarded=guarded_digest(plan)
        )
    return plan.digest


def test_a_rejection_leaves_no_approval_of_a_decision_beside_it(either_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rejection has withdrawn the approvals, and the approval is stored before the rejection is."""
    digest, decide_changes = _save(either_index), plan_decisions._decide_changes
    beside: list[Future[StoredPlan]] = []

    def is_over(approval: Future[StoredPlan]) -> bool:
        if approval.done() or either_index.is_sqlite:
            return True
        with either_index.read() as connection:
            return bool(connection.execute(_WAITING).scalar())

    def decide(connection: Connection, digest: str, plan: Plan, decision: Any, actor: str) -> None:
        decide_changes(connection, digest, plan, decision, actor)
        if decision == "rejected":
            beside.append(threads.submit(decide_plan, either_index, digest, "approved", actor="ann"))
            end = time.monotonic() + 60
            while not is_over(beside[0]) and time.monotonic() < end:
                time.sleep(0.01)

    monkeypatch.setattr(plan_decisions, "_decide_changes", decide)
    with ThreadPoolExecutor() as threads:
        decide_plan(either_index, digest, "rejected", actor="ben")
        with pytest.raises(StateError, match="was rejected by ben"):
            beside[0].result(30)
    with either_index.read() as connection:
        stored, valid = plans.get_plan(connection, digest), approvals.get_valid(connection, "m")
    assert (stored.state, stored.decided_by, len(valid)) == ("rejected", "ben", 0)


def test_a_decision_about_one_plan_counts_for_another_with_the_same_guarded_set(either_index: Index) -> None:
    """The older plan is outdated, so the rejection of the newer one is not stored with it."""
    older, newer = _save(either_index), _save(either_index, revision=2)
    with either_index.write() as connection:
        plans.outdate_held_plans(connection, newer, "m", "d")
    decide_plan(either_index, newer, "rejected", actor="ben", comment="not\nnow")
    with pytest.raises(StateError, match=f"the plan {newer[:12]} was rejected by ben at .* UTC: not\\\\nnow") as refused:
        decide_plan(either_index, older, "approved", actor="ann")
    assert f"federator plans approve {older[:12]} --overrule" in str(refused.value.hint)
    with either_index.read() as connection:
        assert (plans.get_plan(connection, newer).state, approvals.get_valid(connection, "m")) == ("rejected", {})
    decide_plan(either_index, older, "approved", actor="ann", overruled=None)
    with either_index.read() as connection:
        assert plans.get_plan(connection, newer).state == "approved"
