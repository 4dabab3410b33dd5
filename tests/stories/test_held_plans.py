"""Holds through whole runs: an approval is of changes, not of a plan, and a failing source does not end a hold."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from federator.apply import plan_decisions
from federator.connector import StateError
from federator.planning.plan import Plan
from federator.stages import crawl
from federator.stages.result import RunResult
from federator.store import notices, plans
from federator.store import tables as t
from federator.testing import MemoryStore
from federator.views.explain import explain_object
from federator.views.plan_outcomes import list_change_outcomes
from tests.fixtures.spark import World, Worlds, changes, content, refusals

DAY = 86_400.0
MIRROR: dict[str, Any] = {"from": "a", "to": "b", "misses_before_delete": 1, "min_miss_interval": 0}


def full(worlds: Worlds) -> tuple[World, MemoryStore, MemoryStore]:
    world = worlds(mirrors={"m": MIRROR})
    a, b = world.store("a"), world.store("b")
    for number in range(12):
        add(a, number)
    world.sync()
    return world, a, b


def add(store: MemoryStore, number: int) -> None:
    store.add_table(("s", f"t{number:02}"), f"s3://a/{number}")


def remove(store: MemoryStore, *numbers: int) -> None:
    for number in numbers:
        store.remove(("s", f"t{number:02}"))


def numbers(store: MemoryStore) -> set[int]:
    return {int(key.rpartition("t")[2]) for key in content(store)}


def approve(world: World, plan: Plan) -> None:
    plan_decisions.decide_plan(world.federator.index, plan.digest, "approved", actor="ann")


def state(world: World, result: RunResult) -> str:
    with world.read() as connection:
        return str(plans.get_plan(connection, result.plans[0].digest).state)


def test_an_approval_is_of_its_changes_whatever_else_a_busy_source_does(worlds: Worlds) -> None:
    world, a, b = full(worlds)
    # What no guard objects to neither waits nor voids an approval.
    remove(a, *range(6))
    add(a, 20)
    held = world.sync()
    assert (held.state, state(world, held), numbers(b)) == ("held", "held", {*range(12), 20})
    plan = held.plans[0]
    with world.read() as connection:
        outcomes = list_change_outcomes(connection, plan.digest, plan.to_json()["changes"])
    made = [(plan.changes[each.change].target_path, each.state, each.run_id) for each in outcomes]
    assert made == [("s$t20", "done", held.run_id)], "the removals wait"
    (part,) = explain_object(world.settings, world.federator.index, ("b", "s", "t20")).parts
    assert part.next.startswith("nothing: declare_table")
    assert part.next.endswith(f"carried out by plan {plan.digest[:12]}")
    approve(world, held.plans[0])
    add(a, 21)
    approved = world.sync()
    assert (approved.state, numbers(b)) == ("ok", {*range(6, 12), 20, 21})
    assert approved.plans[0].digest != held.plans[0].digest

    # Seen again, and gone again: that is another absence. What was approved with it still goes, and the new one is judged with it.
    world.age(2 * DAY)
    remove(a, 6, 7, 8, 9)
    first = world.sync()
    assert first.state == "held"
    approve(world, first.plans[0])
    add(a, 6)
    world.federator.crawl(["a"])
    remove(a, 6)
    again = world.sync()
    assert (again.state, numbers(b)) == ("held", {6, 10, 11, 20, 21})
    assert "max_delete_percent: 4 of 8 tables" in again.plans[0].held[0]
    # An approval that is older than a week is none.
    approve(world, again.plans[0])
    with world.federator.index.write() as connection:
        connection.execute(update(t.approval).values(approved_at=t.approval.c.approved_at - 7 * DAY))
    ended = world.sync()
    assert (ended.state, state(world, ended), numbers(b)) == ("held", "held", {6, 10, 11, 20, 21})
    world.verified()


def test_a_hold_does_not_go_away_with_the_source(worlds: Worlds) -> None:
    world, a, b = full(worlds)
    remove(a, *range(6))
    add(a, 20)
    planned = world.federator.plan()
    assert planned.state == "held"
    a.faults("; ".join(["fail:*", *(f"undescribed:s$t{number:02}" for number in range(6))]))
    lost = world.sync()
    # Nothing is done out of an index that a failed crawl has left old, and the deletions that nobody can look after still count.
    assert (changes(lost), lost.outcomes, numbers(b)) == ({}, [], set(range(12)))
    assert refusals(lost)["s$t20"] == refusals(lost)["s$t00"] == "not_covered"
    assert (lost.state, state(world, lost)) == ("partial", "held")
    assert [hold.guard for hold in lost.plans[0].holds] == [hold.guard for hold in planned.plans[0].holds]
    a.faults("")
    back = world.sync()
    assert (back.state, numbers(b)) == ("held", {*range(12), 20})
    with world.read() as connection:
        held = [
            pending_notice.notice
            for pending_notice in notices.list_pending_notices(connection)
            if pending_notice.notice.event.value == "plan_held"
        ]
        waiting = plans.list_recent_plans(connection, mirror="m", state="held")
    # One guarded set, which was made three times: one notice, and one plan to decide about.
    assert [notice.subject for notice in held] == [f"plan {planned.plans[0].digest[:12]}"]
    assert [row.digest for row in waiting] == [back.plans[0].digest]
    # Who has looked at the first plan has looked at this one's guarded set.
    approve(world, planned.plans[0])
    assert (world.sync().state, numbers(b)) == ("ok", {*range(6, 12), 20})
    world.verified()


def test_a_crawl_that_ends_without_a_revision_supports_no_change(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world, a, b = full(worlds)
    add(a, 20)
    world.federator.crawl(["a"])

    def broken(*_: Any) -> Any:
        raise StateError("the engine broke")

    with monkeypatch.context() as patched:
        patched.setattr(crawl, "_read_source", broken)
        result = world.sync()
    assert (result.state, changes(result), numbers(b)) == ("partial", {}, set(range(12)))
    assert refusals(result)["s$t20"] == "not_covered"
    # Neither does it in a later run that does not read the source again.
    assert refusals(world.federator.plan(refresh=False))["s$t20"] == "not_covered"
    assert (world.sync().state, numbers(b)) == ("ok", {*range(12), 20})


def test_a_stored_plan_looks_at_each_origin_again(worlds: Worlds) -> None:
    world, a, b = full(worlds)
    for number in (20, 21, 22):
        add(a, number)
    a.add_table(("s", "t00"), "s3://a/0", properties={"v": "2"})
    made = world.federator.plan().plans[0]
    remove(a, 20)
    a.add_table(("s", "t21"), "s3://a/elsewhere")
    a.add_table(("s", "t00"), "s3://a/0", properties={"v": "3"})
    result = world.federator.apply([(made, made.digest)])
    by_target_path = {outcome.change.target_path: (outcome.state.value, outcome.code) for outcome in result.outcomes}
    assert by_target_path == {
        "s$t00": ("skipped", "moved"), "s$t20": ("skipped", "moved"), "s$t21": ("skipped", "moved"), "s$t22": ("done", None),
    }  # fmt: skip
    assert numbers(b) == {*range(12), 22}
    add(a, 23)
    other = world.federator.plan().plans[0]
    a.faults("undescribed:s$t23")
    failed = world.federator.apply([(other, other.digest)])
    assert (failed.state, [outcome.change.target_path for outcome in failed.outcomes if outcome.state.value == "failed"]) == (
        "failed",
        ["s$t23"],
    )
    assert numbers(b) == {*range(12), 21, 22}


def test_a_plan_made_before_its_source_was_reconfigured_is_refused(worlds: Worlds) -> None:
    """Its evidence was read elsewhere, or as another principal. After a crawl, those misses count no more."""
    world = worlds(mirrors={"m": {**MIRROR, "misses_before_delete": 2}})
    a, b = world.store("a"), world.store("b")
    for number in range(4):
        add(a, number)
    world.sync()
    remove(a, 0)
    world.federator.crawl(["a"])
    made = world.federator.plan().plans[0]
    assert [change.action.value for change in made.changes] == ["deregister_table"]
    add(a, 0)
    # Another catalog stands in the configuration now, one that never had the table.
    world.sources["a"] = {"file": str(world.directory / "other.json")}
    with pytest.raises(StateError, match="the configuration of source 'a' changed"):
        world.federator.apply([(made, made.digest)])
    world.federator.crawl(["a"])
    applied = world.federator.apply([(made, made.digest)])
    assert [(outcome.state.value, outcome.code) for outcome in applied.outcomes] == [("skipped", "not_covered")]
    assert numbers(b) == set(range(4))
