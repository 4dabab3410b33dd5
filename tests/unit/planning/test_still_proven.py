"""Stored plans: evidence of an absent origin may be out of date when the plan is applied."""

from __future__ import annotations

from typing import Any

import pytest

from federator.planning.changes import Action, Change
from federator.planning.plan_filters import split_by_proof
from federator.planning.rule import MirrorRule

RULE = MirrorRule(name="m", origin="a", target="b")


def deregistration(**precondition: Any) -> Change:
    return Change(Action.DEREGISTER_TABLE, "b", "s$t", "a", "s$t", "gone", precondition={"target": "d", **precondition})


@pytest.mark.parametrize(
    ("misses", "holds"),
    [({"s$t": [0.0, 600.0]}, True), ({"s$t": [0.0, 599.0]}, False), ({"s$u": [0.0, 600.0]}, False), ({}, False)],
)
def test_misses_that_were_reset_take_the_proof_along(misses: dict[str, list[float]], holds: bool) -> None:
    change = deregistration(origin="absent")
    assert split_by_proof(RULE, [change], misses) == (([change], []) if holds else ([], [change]))


def test_changes_that_need_no_proof_of_absence_stay() -> None:
    pruned = deregistration(origin="any")
    declared = Change(Action.DECLARE_TABLE, "b", "s$u", "a", "s$u", "new", precondition={"target": "absent", "origin": "d"})
    assert split_by_proof(RULE, [pruned, declared], {}) == ([pruned, declared], [])
