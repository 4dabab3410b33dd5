"""The state of a run, from its outcomes."""

from __future__ import annotations

import pytest

from federator.apply import Outcome, State
from federator.cli.results import exit_code
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan
from federator.sync.result import Result

CHANGE = Change(
    Action.DECLARE_TABLE, "b", "t", "a", "t", "new at the origin", after=TableRecord("b", ("t",), "s3://a/t"),
    precondition={"target": "absent", "origin": "any"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        (State.DONE, None, 0),
        # The object has changed since: the next plan decides about it.
        (State.SKIPPED, "moved", 0),
        # The run could not attempt these: a caller must not take it for complete.
        (State.SKIPPED, "lease", 3),
        (State.SKIPPED, "open_intent", 3),
        (State.FAILED, "18", 1),
    ],
)
def test_an_apply_exits_with_what_became_of_its_changes(state: State, code: str | None, expected: int) -> None:
    plan = Plan("m", "digest", 1, 1, (CHANGE,))
    result = Result("run", "apply", plans=[plan], outcomes=[Outcome(CHANGE, state, code)])
    result.settle(stopped=False)
    assert exit_code(result) == expected
