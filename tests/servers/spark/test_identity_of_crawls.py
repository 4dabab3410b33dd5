"""Another catalog behind a source's address, with memory catalogs: holds, what lifts them, and confirmation."""

from __future__ import annotations

import pytest

from federator.apply.plan_decisions import decide_plan
from federator.connector import StateError
from federator.stages import confirm_source
from federator.stages.result import ProgressEvent, RunResult
from tests.fixtures.spark import World, Worlds, changes, content, outcomes

FEEDING = "federator.testing:FEEDING"
AT_ONCE = {"misses_before_delete": 1, "min_miss_interval": 0, "max_delete_percent": 100}


def mirrored(worlds: Worlds, *names: str) -> World:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}})
    for source in ("a", "b"):
        world.store(source).identify(f"{source} one")
    for name in names or ("t", "u", "v"):
        world.store("a").add_table(("s", name), f"s3://a/{name}")
    assert world.sync().state == "ok"
    return world


def restored(world: World, *gone: str) -> None:
    """The origin as a backup had it: fewer events in its log, and some tables that are not there."""
    a = world.store("a")
    for name in gone:
        a.remove(("s", name))
    with a.locked_state(write=True) as state:
        state["feed"] = {"expired": 0, "events": []}


def guards(result: RunResult) -> list[str]:
    return [hold.guard for plan in result.plans for hold in plan.holds]


def test_another_target_gets_nothing_until_it_is_confirmed(worlds: Worlds) -> None:
    world = mirrored(worlds)
    world.store("b").identify("b two")
    world.store("a").add_table(("s", "new"), "s3://a/new")
    before = content(world.store("b"))
    held = world.sync()
    assert held.sources["b"].state == "failed"
    assert "b one" in (held.sources["b"].message or "")
    assert (changes(held), content(world.store("b"))) == ({}, before)
    # The address leads to the catalog that is known again: nothing is held any more.
    world.store("b").identify("b one")
    assert outcomes(world.sync()) == {"s$new": "done"}


def test_a_plan_that_was_made_before_is_not_applied(worlds: Worlds) -> None:
    world = mirrored(worlds)
    world.store("a").add_table(("s", "new"), "s3://a/new")
    planned = world.federator.plan()
    assert changes(planned) == {"s$new": "declare_table"}
    world.store("a").identify("a two")
    world.federator.crawl(["a"])
    before = content(world.store("b"))
    result = world.federator.apply([(plan, plan.digest) for plan in planned.plans])
    assert "sources confirm a" in result.errors["mirror m"]
    assert content(world.store("b")) == before
    # The address leads to the known catalog again, and which one was crawled last is still a person's to say.
    world.store("a").identify("a one")
    result = world.federator.apply([(plan, plan.digest) for plan in planned.plans])
    assert "sources confirm a" in result.errors.get("mirror m", ""), outcomes(result)
    assert content(world.store("b")) == before


def test_an_unreadable_identity_proves_nothing(worlds: Worlds) -> None:
    world = mirrored(worlds)
    world.store("a").faults("identity:/")
    world.store("a").remove(("s", "t"))
    result = world.sync()
    assert (result.sources["a"].state, changes(result)) == ("failed", {})
    assert set(world.tables("a")) == {"s$t", "s$u", "s$v"}
    world.store("a").faults("")
    assert outcomes(world.sync()) == {"s$t": "done"}


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_catalog_that_changes_between_plan_and_call_is_not_written_to(worlds: Worlds, side: str) -> None:
    world = mirrored(worlds)
    world.store("a").add_table(("s", "new"), "s3://a/new")

    def during(step: ProgressEvent) -> None:
        if (step.stage, step.state) == ("plan", "ok"):
            world.store(side).identify("another")

    world.during = during
    before = content(world.store("b"))
    result = world.sync()
    assert "sources confirm" in result.errors["mirror m"]
    assert (outcomes(result), content(world.store("b"))) == ({}, before)


def test_a_migrated_target_keeps_intact_declarations(worlds: Worlds) -> None:
    world = mirrored(worlds)
    b = world.store("b")
    with b.locked_state(write=True) as state:
        state["identity"] = "b two"
        for key, row in state["tables"].items():
            row["native_id"] = f"new {key}"
        state["tables"]["s$v"]["properties"]["federator.op"] = "another"
    assert world.sync().sources["b"].state == "failed"
    found = confirm_source.confirm(world.federator.index, world.settings, "b", actor="test")
    assert sorted(path for path in found.rebound if "$" in path) == ["s$t", "s$u"]
    assert {path: row["native_id"] for path, row in world.ledger("m").items() if path != "s$v"} == {
        "s$t": "new s$t",
        "s$u": "new s$u",
    }
    again = world.sync()
    assert (again.sources["b"].state, changes(again)) == ("ok", {})
    with pytest.raises(StateError, match="no identity"):
        confirm_source.confirm(world.federator.index, world.settings, "b", actor="test")


def test_a_confirmation_deletes_the_misses_of_the_old_catalog(worlds: Worlds) -> None:
    world = mirrored(worlds)
    world.mirrors["m"]["misses_before_delete"] = 2
    world.store("a").remove(("s", "t"))
    world.sync()
    assert world.misses("a") == {"s$t": 1}
    world.store("a").identify("a two")
    world.sync()
    confirm_source.confirm(world.federator.index, world.settings, "a", actor="test")
    assert world.misses("a") == {}


def test_without_identity_half_of_a_source_waits_for_an_approval(worlds: Worlds) -> None:
    world = mirrored(worlds, "t", "u", "v")
    world.store("a").remove(("s", "t"))
    world.store("a").add_table(("s", "u"), "s3://elsewhere/u")
    world.store("a").add_table(("s", "staged"), "s3://elsewhere/staged")
    before = content(world.store("b"))
    held = world.sync()
    assert (held.state, guards(held)) == ("held", ["half_gone"])
    # An unchanged source does not let the hold go.
    assert guards(world.sync()) == ["half_gone"]
    assert content(world.store("b")) == before
    decide_plan(world.federator.index, world.sync().plans[0].digest, "approved", actor="test")
    assert world.sync().state == "ok"
    assert set(content(world.store("b"))) == {"s$u", "s$v", "s$staged"}
    # Half of a source, and not more, is no reason to wait.
    world.store("a").remove(("s", "v"))
    assert outcomes(world.sync()) == {"s$v": "done"}


def test_a_plan_without_changes_lets_no_loss_go(worlds: Worlds) -> None:
    world = mirrored(worlds)
    world.mirrors["m"]["misses_before_delete"] = 2
    world.store("a").remove(("s", "t"))
    world.store("a").remove(("s", "u"))
    before = content(world.store("b"))
    assert changes(world.sync()) == {}, "missed once"
    assert (guards(world.sync()), content(world.store("b"))) == (["half_gone"], before)


def followed(worlds: Worlds, **source: str) -> World:
    """A mirror from a catalog whose change feed has an event that the index has read."""
    world = worlds(sources={"a": {"impl": FEEDING, **source}, "b": {}}, mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}})
    for name in ("t", "u", "v"):
        world.store("a").add_table(("s", name), f"s3://a/{name}")
    world.sync()
    world.store("a").add_table(("s", "w"), "s3://a/w")
    assert world.sync().state == "ok"
    return world


@pytest.mark.parametrize("gone", [(), ("t",)])
def test_a_feed_that_went_back_holds_what_comes_next(worlds: Worlds, gone: tuple[str, ...]) -> None:
    """Also where the records are the same at first: what changes afterwards may be another catalog's."""
    world = followed(worlds)
    before = content(world.store("b"))
    restored(world, *gone)
    world.sync()
    world.store("a").remove(("s", "v"))
    held = world.sync()
    assert (held.state, guards(held), content(world.store("b"))) == ("held", ["feed_went_back"], before)
    decide_plan(world.federator.index, held.plans[0].digest, "approved", actor="test")
    assert set(outcomes(world.sync())) == {f"s${name}" for name in (*gone, "v")}
    world.store("a").remove(("s", "w"))
    assert outcomes(world.sync()) == {"s$w": "done"}


@pytest.mark.parametrize("fault", ["fail:/", "feed:/=15", ""], ids=["root", "feed", "full"])
def test_a_feed_that_went_back_is_detected_in_each_situation(worlds: Worlds, fault: str) -> None:
    """The crawl before could not read the root, or not the feed; or everything is read because that is due."""
    world = followed(worlds, **({} if fault else {"full_every": "0s"}))
    before = content(world.store("b"))
    world.store("a").faults(fault)
    world.store("a").add_namespace(("newer",))
    world.sync()
    restored(world, "v")
    world.store("a").faults("")
    assert (guards(world.sync()), content(world.store("b"))) == (["feed_went_back"], before)


def test_a_ledger_that_was_rebuilt_is_something_to_lose(worlds: Worlds) -> None:
    """A new index has no plans, and what its mirrors declared all the same."""
    first = mirrored(worlds)
    world = World(first.directory, first.mirrors, instance=first.instance)
    world.instance, known = "one", first.directory / "one.db"
    first.close()
    known.unlink()
    world.federator.crawl()
    world.federator.rebuild_ledger(["m"], enter=True)
    assert len(world.ledger("m")) == 3
    for name in ("t", "u"):
        world.store("a").add_table(("s", name), f"s3://elsewhere/{name}")
    assert guards(world.sync()) == ["half_gone"]
    world.close()
