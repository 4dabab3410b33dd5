"""The state of a run, from its outcomes."""

from __future__ import annotations

import pytest

from federator.apply import Outcome, OutcomeState
from federator.cli.result_output import exit_code
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan
from federator.planning.reasons import ApplyCode, OutcomeCode, Reason
from federator.stages.result import RunResult

CHANGE = Change(
    Action.DECLARE_TABLE, "b", "t", "a", "t", "new at the origin", after=TableRecord("b", ("t",), "s3://a/t"),
    precondition={"target": "absent", "origin": "any"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "state", "code", "expected"),
    [
        ("apply", OutcomeState.DONE, None, 0),
        # The object has changed since: the next plan of a sync decides about it, but a person asked for this one.
        ("sync", OutcomeState.SKIPPED, Reason.MOVED, 0),
        ("apply", OutcomeState.SKIPPED, Reason.MOVED, 3),
        # The run could not attempt these: a caller must not take it for complete.
        ("sync", OutcomeState.SKIPPED, ApplyCode.LEASE, 3),
        ("apply", OutcomeState.SKIPPED, ApplyCode.OPEN_INTENT, 3),
        ("apply", OutcomeState.FAILED, 18, 1),
    ],
)
def test_the_exit_code_follows_from_the_outcomes(
    kind: str, state: OutcomeState, code: OutcomeCode | None, expected: int
) -> None:
    plan = Plan("m", "digest", 1, 1, (CHANGE,))
    result = RunResult("run", kind, plans=[plan], outcomes=[Outcome(CHANGE, state, code)])
    result.compute_state(stopped=False)
    assert exit_code(result) == expected
