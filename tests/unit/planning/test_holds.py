"""Holds: which changes of a plan each guard binds, and that a stored plan keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.model import NamespaceRecord
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.plan import Plan
from tests.fixtures.planning import owned, table

NEW = Change(Action.DECLARE_TABLE, "b", "s$new", "a", "s$new", "new", after=table("b", "s$new"))
MADE = Change(Action.CREATE_NAMESPACE, "b", "s", "a", "s", "needed", namespace=NamespaceRecord("b", ("s",)))
GONE = Change(Action.DEREGISTER_TABLE, "b", "s$t", "a", "s$t", "gone", before=owned())
FORGOTTEN = replace(GONE, before=None)
RENAMED = replace(GONE, pair="s$t -> s$u")
RECREATED = replace(GONE, action=Action.RECREATE_TABLE, after=owned())
DROPPED = Change(Action.DROP_NAMESPACE, "b", "x", "a", "x", "empty", namespace=NamespaceRecord("b", ("x",)))
NO_LONGER_THERE = replace(DROPPED, namespace=None)
EVERY = (NEW, MADE, GONE, FORGOTTEN, RENAMED, RECREATED, DROPPED, NO_LONGER_THERE)


@pytest.mark.parametrize(
    ("binds", "bound"),
    [
        (Binds.ALL, EVERY),
        (Binds.DESTRUCTIVE, (GONE, RECREATED, DROPPED)),
        (Binds.REMOVALS, (GONE, RENAMED, RECREATED, DROPPED)),
        (Binds.DROPPED_NAMESPACES, (DROPPED,)),
    ],
)
def test_each_kind_binds_its_changes(binds: Binds, bound: tuple[Change, ...]) -> None:
    hold = Hold("guard", "why", binds)
    assert tuple(change for change in EVERY if hold.binds(change)) == bound


def test_a_table_that_is_pointed_elsewhere_is_bound_with_what_goes() -> None:
    moved = replace(
        NEW, action=Action.UPDATE_TABLE, before=table("b", "s$new", "s3://x/old"), after=table("b", "s$new", "s3://x/new")
    )
    assert Hold("guard", "why", Binds.DESTRUCTIVE).binds(moved)
    assert not Hold("guard", "why", Binds.DESTRUCTIVE).binds(replace(moved, after=moved.before))


def test_a_stored_plan_keeps_its_holds_and_shows_them_as_text() -> None:
    holds = (
        Hold("max_changes", "too many"),
        Hold("confirm", "another catalog", Binds.ALL, LiftedBy.CONFIRMATION, "confirm it"),
    )
    plan = Plan("m", "d", 1, 1, (GONE,), holds=holds)
    assert plan.to_json()["held"] == ["max_changes: too many", "confirm: another catalog"]
    back = Plan.from_json(plan.to_json())
    assert (back.holds, back.digest, back.release_command) == (holds, plan.digest, "confirm it")
    assert plan.digest != replace(plan, holds=(holds[0], replace(holds[1], lifted_by=LiftedBy.APPROVAL))).digest


def test_a_plan_of_an_earlier_version_is_held_whole() -> None:
    data = {key: value for key, value in Plan("m", "d", 1, 1, (NEW,)).to_json().items() if key != "holds"}
    back = Plan.from_json({**data, "held": ["max_changes: 3: too many"]})
    assert back.holds == (Hold("max_changes", "3: too many"),)
    assert all(back.holds[0].binds(change) for change in EVERY)
