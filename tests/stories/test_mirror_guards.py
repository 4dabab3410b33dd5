"""Guards, holds and stored plans through whole runs: changes that need an approval, and outdated plans."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from federator.apply import plan_decisions
from federator.connector import StateError
from federator.model import parse_path_key
from federator.model.notices import Notice
from federator.planning.plan import Plan
from federator.stages.result import ProgressEvent, RunResult
from federator.store import journal, notices
from federator.store import tables as t
from tests.fixtures.spark import World, Worlds, changes, content, outcomes, wrote
from tests.stories.mirrored import AT_ONCE, HOUR, ONE_BY_ONE, removed, target


def test_a_mass_deletion_waits_for_a_person_and_an_empty_source_empties_nothing(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", "misses_before_delete": 1, "min_miss_interval": 0}})
    a, b = world.store("a"), world.store("b")
    for number in range(12):
        a.add_table(("s", f"t{number:02}"), f"s3://a/{number}")
    world.sync()
    for number in range(6):
        a.remove(("s", f"t{number:02}"))
    held = world.sync()
    assert held.state == "held"
    assert [text.partition(":")[0] for text in held.plans[0].held] == ["max_delete_percent", "namespace_delete_percent"]
    assert (removed(world), held.outcomes) == ([], [])
    decide(world, held.plans[0], "rejected")
    assert removed_by(world, world.sync()) == []
    decide(world, held.plans[0], "approved")
    # Told once that it waits, though it was made twice, and of each decision.
    plan = f"plan {held.plans[0].digest[:12]}"
    sent = [(notice.event.value, notice.subject, notice.mirror, notice.message) for notice in notices_of(world, "plan_")]
    assert sent[0][:3] == ("plan_held", plan, "m")
    assert "max_delete_percent: 6 of 12 tables" in sent[0][3]
    assert sent[1:] == [("plan_decided", plan, "m", f"{state} by ann") for state in ("rejected", "approved")]
    approved = world.sync()
    assert approved.plans[0].digest == held.plans[0].digest
    assert removed_by(world, approved) == [f"s$t{number:02}" for number in range(6)]
    # What was just removed still counts: two more would be harmless alone.
    for number in (6, 7):
        a.remove(("s", f"t{number:02}"))
    assert "max_delete_percent: 8 of 12 tables" in world.sync().plans[0].held[0]
    world.age(25 * HOUR)
    assert removed_by(world, world.sync()) == ["s$t06", "s$t07"]
    # Even where any share may go, an origin that has nothing at all empties nothing.
    world.mirrors["m"]["max_delete_percent"] = 100
    a.remove(("s",))
    world.age(25 * HOUR)
    emptied = world.sync()
    assert (emptied.state, emptied.plans[0].held[0].partition(":")[0]) == ("held", "never_empty")
    assert len(content(b)) == 4
    world.verified()


def notices_of(world: World, begin: str) -> list[Notice]:
    """Pending notices of the events with this prefix, in order."""
    with world.read() as connection:
        return [
            pending_notice.notice
            for pending_notice in notices.list_pending_notices(connection)
            if pending_notice.notice.event.value.startswith(begin)
        ]


def test_a_run_that_loses_its_lease_tells_so_and_that_its_mirror_failed(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b"}}, sources=ONE_BY_ONE)
    for name in ("t", "u"):
        world.store("a").add_table(("s", name), f"s3://a/{name}")
    world.store("b").add_namespace(("s",))

    def lose(step: ProgressEvent) -> None:
        if step.stage == "change":
            with world.federator.index.write() as connection:
                connection.execute(update(t.lease).where(t.lease.c.name == "mirror:m").values(token=99))

    world.during = lose
    result = world.sync()
    assert (result.state, list(result.errors), len(wrote(world.store("b")))) == ("partial", ["mirror m"], 1)
    lost, failed = notices_of(world, "lease_lost"), notices_of(world, "mirror_failed")
    assert [(notice.subject, notice.run_id) for notice in lost] == [("mirror m", result.run_id)]
    assert [(notice.subject, notice.mirror, notice.run_id) for notice in failed] == [("mirror m", "m", result.run_id)]
    assert failed[0].message == result.errors["mirror m"].split("\n")[0]


def decide(world: World, plan: Plan, state: plan_decisions.Decision) -> None:
    plan_decisions.decide_plan(world.federator.index, plan.digest, state, actor="ann", overruled=None)


def removed_by(world: World, result: RunResult) -> list[str]:
    return sorted(path for action, path, state in world.journal(result) if (action, state) == ("deregister_table", "done"))


# Plans made before.


def test_a_saved_plan_is_carried_out_only_where_the_world_is_as_it_was(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}})
    a, b = world.store("a"), world.store("b")
    for name in ("dropped", "dropped_and_changed", "changed", "changed_there", "kept"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "1"})
    world.sync()
    for name in ("dropped", "dropped_and_changed"):
        a.remove(("s", name))
    for name in ("changed", "changed_there"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "2"})
    for name in ("new", "taken"):
        a.add_table(("s", name), f"s3://a/{name}")
    plan = world.federator.plan().plans[0]
    assert len(plan.changes) == 6
    body = plan.to_json()
    body["changes"][0]["target_path"] = "s$kept"
    with pytest.raises(StateError, match="altered"):
        world.federator.apply([(Plan.from_json(body), plan.digest)])
    b.add_table(("s", "taken"), "s3://b/theirs")
    for name in ("dropped_and_changed", "changed_there"):
        record = target(world, f"s${name}")
        properties = {**record.properties, "somebody": "was here"}
        b.add_table(record.path, record.location, properties=properties, native_id=record.native_id)
    before = content(b)
    result = world.federator.apply([(plan, plan.digest)])
    moved = {"s$taken", "s$dropped_and_changed", "s$changed_there"}
    assert outcomes(result) == {key: "skipped moved" if key in moved else "done" for key in changes(result)}
    assert {key: content(b)[key] for key in moved} == {key: before[key] for key in moved}
    again = world.federator.apply([(plan, plan.digest)])
    assert {key: state for key, state in outcomes(again).items() if key != "s$dropped"} == {
        key: "skipped moved" for key in changes(again) if key != "s$dropped"
    }
    assert removed(world) == ["s$dropped"]
    world.mirrors["m"]["exclude"] = ["z$*"]
    with pytest.raises(StateError, match=r"configuration of mirror .* has changed"):
        world.federator.apply([(plan, plan.digest)])
    world.verified()


def test_what_changes_between_the_look_and_the_call_is_not_touched(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}})
    a, b = world.store("a"), world.store("b")
    for name in ("dropped", "changed", "kept"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "1"})
    world.sync()
    a.remove(("s", "dropped"))
    a.add_table(("s", "changed"), "s3://a/changed", properties={"v": "2"})
    a.add_table(("s", "raced"), "s3://a/raced")
    plan = world.federator.plan().plans[0]

    def meanwhile(_: Any, intent: journal.StoredIntent, real: Any = journal.insert_intent) -> None:
        real(_, intent)
        b.add_table(parse_path_key(intent.target_path), "s3://b/theirs", properties={"theirs": "yes"})

    monkeypatch.setattr(journal, "insert_intent", meanwhile)
    result = world.federator.apply([(plan, plan.digest)])
    assert outcomes(result) == {f"s${name}": "skipped moved" for name in ("dropped", "changed", "raced")}
    for name in ("dropped", "changed", "raced"):
        assert content(b)[f"s${name}"]["properties"] == {"theirs": "yes"}
    assert world.open_intents() == []
    world.verified()
