"""Killed runs, and targets that stop responding: the next run resolves the open intents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from federator.connector import Catalog, ServiceUnavailable
from federator.model import TableRecord
from federator.store import journal
from federator.testing.memory import MemoryCatalog
from tests.fixtures.spark import World, Worlds, changes, content, outcomes, refusals, wrote
from tests.stories.mirrored import AT_ONCE, ONE_BY_ONE, removed, target


class Killed(BaseException):
    """The process dies here."""


def die_in_call(real: Callable[..., Any], key: str, *, after: bool) -> Callable[..., Any]:
    """Return a call of the catalog during which the process dies, for one path key: before or after the call has an effect."""

    def call(catalog: Catalog, record: TableRecord, *more: Any, **options: Any) -> Any:
        if record.key != key:
            return real(catalog, record, *more, **options)
        if after:
            real(catalog, record, *more, **options)
        raise Killed

    return call


def run_until_killed(world: World, run: Callable[[], Any], call: str, key: str, *, after: bool) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MemoryCatalog, call, die_in_call(getattr(MemoryCatalog, call), key, after=after))
        with pytest.raises(Killed):
            run()
    assert world.open_intents() == [key]


def test_a_run_that_dies_is_resumed_without_a_second_call(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources=ONE_BY_ONE)
    a, b = world.store("a"), world.store("b")
    for name in ("t1", "t2", "t3"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "1"})

    run_until_killed(world, world.sync, "declare_table", "s$t1", after=False)
    assert (wrote(b), set(world.ledger("m"))) == ([], set())
    run_until_killed(world, world.sync, "declare_table", "s$t2", after=True)
    assert wrote(b) == ["declare_table s$t1", "declare_table s$t2"]
    assert ("declare_table", "s$t1", "failed") in world.journal()
    # Nothing but the second intent is left over, and no plan has a change that would lead to it.
    a.remove(("s", "t3"))
    resumed = world.sync()
    assert (resumed.state, changes(resumed), refusals(resumed)) == ("ok", {}, {})
    assert set(world.ledger("m")) == {"s$t1", "s$t2"}
    assert wrote(b) == ["declare_table s$t1", "declare_table s$t2"]
    world.verified()

    a.add_table(("s", "t1"), "s3://a/t1", properties={"v": "2"})
    a.remove(("s", "t2"))
    plan = world.federator.plan().plans[0]
    apply = lambda: world.federator.apply([(plan, plan.digest)])  # noqa: E731 - the same call, four times
    run_until_killed(world, apply, "deregister_table", "s$t2", after=True)
    run_until_killed(world, apply, "update_table", "s$t1", after=True)
    assert (set(content(b)), set(world.ledger("m"))) == ({"s$t1"}, {"s$t1"})
    result = world.sync()
    assert (result.state, changes(result)) == ("ok", {})
    assert wrote(b)[2:] == ["deregister_table s$t2", "update_table s$t1"]
    assert target(world, "s$t1").properties["v"] == "2"
    assert world.open_intents() == []
    world.verified()


def test_a_call_whose_record_could_not_be_written_is_found_again(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources=ONE_BY_ONE)
    b = world.store("b")
    world.store("a").add_table(("t",), "s3://a/t")
    world.store("a").add_table(("s", "t"), "s3://a/s/t")
    with monkeypatch.context() as patched:

        def die(*_: Any, **__: Any) -> None:
            raise Killed

        patched.setattr(journal, "record_outcome", die)
        with pytest.raises(Killed):
            world.sync()
    assert len(world.open_intents()) == 1
    result = world.sync()
    assert result.state == "ok"
    assert sorted(wrote(b)) == sorted({*wrote(b)})
    assert changes(world.sync()) == {}
    world.verified()


def test_a_target_that_stops_answering_leaves_an_intent_that_the_next_run_settles(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources=ONE_BY_ONE)
    a, b = world.store("a"), world.store("b")
    for number in range(8):
        a.add_table(("s", f"t{number}"), f"s3://a/{number}")
    b.add_namespace(("s",))
    dead: list[str] = []
    declare, describe = MemoryCatalog.declare_table, MemoryCatalog.describe_table

    def declare_then_stop(catalog: MemoryCatalog, record: TableRecord) -> TableRecord:
        declared = declare(catalog, record)
        if record.key != "s$t1":
            return declared
        dead.append("b")
        raise ServiceUnavailable("the answer was lost")

    def describe_unless_dead(catalog: MemoryCatalog, path: tuple[str, ...]) -> TableRecord:
        if catalog.source in dead:
            raise ServiceUnavailable("down")
        return describe(catalog, path)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryCatalog, "declare_table", declare_then_stop)
        patched.setattr(MemoryCatalog, "describe_table", describe_unless_dead)
        result = world.sync()
        assert result.state == "failed"
        found = outcomes(result)
        assert (found["s$t0"], found["s$t1"], found["s$t2"]) == ("done", "unknown 17", "failed 17")
        assert found["s$t7"] == "skipped unavailable"
        assert world.open_intents() == ["s$t1"]
        assert set(world.ledger("m")) == {"s$t0"}
        # Still down: the intent stays open, and nothing more is done there.
        plan = result.plans[0]
        again = outcomes(world.federator.apply([(plan, plan.digest)]))
        assert again["s$t1"] in ("unknown 17", "skipped open_intent")
        assert world.open_intents() == ["s$t1"]
    result = world.sync()
    assert (result.state, len(world.ledger("m")), world.open_intents()) == ("ok", 8, [])
    assert [wrote(b).count(f"declare_table s$t{number}") for number in range(8)] == [1] * 8
    assert changes(world.sync()) == {}
    world.verified()


def test_a_catalog_that_keeps_no_mark_never_makes_us_owners_in_silence(worlds: Worlds) -> None:
    world = worlds(
        mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources={"a": {}, "b": {"impl": "federator.testing:PLAIN"}}
    )
    b = world.store("b")
    world.store("a").add_table(("s", "t"), "s3://a/t")
    world.store("a").add_table(("s", "lost"), "s3://a/lost")
    b.add_namespace(("s",))
    b.faults("lose:s$lost")
    result = world.sync()
    assert (result.state, outcomes(result)) == ("failed", {"s$lost": "needs_adoption needs_adoption", "s$t": "done"})
    b.faults("")
    assert set(world.ledger("m")) == {"s$t"}
    result = world.sync()
    assert (changes(result), refusals(result)) == ({}, {"s$lost": "name_taken"})
    world.store("a").remove(("s",))
    b.remove(("s", "t"))
    b.add_table(("s", "t"), "s3://a/t")
    world.store("a").add_table(("other", "x"), "s3://a/x")
    result = world.sync()
    assert refusals(result)["s$t"] == "not_ours"
    assert removed(world) == []
    world.verified()
