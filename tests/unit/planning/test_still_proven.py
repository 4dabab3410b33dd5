"""A plan that waited: what proved an origin gone may not prove it any more."""

from __future__ import annotations

from typing import Any

import pytest

from federator.planning.changes import Action, Change
from federator.planning.plan import still_proven
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
    assert still_proven(RULE, [change], misses) == (([change], []) if holds else ([], [change]))


def test_what_needs_no_proof_that_something_is_gone_stays() -> None:
    pruned = deregistration(origin="any")
    declared = Change(Action.DECLARE_TABLE, "b", "s$u", "a", "s$u", "new", precondition={"target": "absent", "origin": "d"})
    assert still_proven(RULE, [pruned, declared], {}) == ([pruned, declared], [])
