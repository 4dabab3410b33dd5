"""Crawls that follow a feed of changes: what they read and carry, and that nothing is lost, or proven gone, by not reading it.

The tests share one catalog, which each leaves as the index has it: a first crawl costs more than all that follow.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from federator.model import Kind, Path
from federator.store import coverage, records, revisions
from federator.store import tables as t
from federator.store.leases import Lease
from federator.testing import MemoryStore
from federator.views.explain import explain_object
from tests.fixtures.spark import World, Worlds, changes, outcomes, refusals

FEEDING = "federator.testing:FEEDING"


@pytest.fixture(scope="module")
def shared(worlds: Worlds) -> World:
    made = worlds(sources={"lake": {"impl": FEEDING}})
    for namespace in (("sales",), ("ops",), ("hr",), ("deep", "er")):
        for name in ("one", "two"):
            made.store("lake").add_table((*namespace, name))
    first = made.federator.crawl(["lake"]).sources["lake"]
    assert (first.added, first.carried, first.full_because) == (13, 0, None)
    return made


@pytest.fixture
def world(shared: World) -> World:
    """Nothing is known less than whole, and nothing has happened since the last crawl."""
    as_it_is(shared)
    assert not lake(shared).failed_namespaces
    return shared


def lake(world: World, **how: Any) -> Any:
    result = world.federator.crawl(["lake"], **how)
    assert not result.errors
    return result.sources["lake"]


def reads(world: World) -> dict[str, str]:
    """What each namespace's evidence is: ``complete``, or ``carried 1``."""
    with world.read() as connection:
        found = coverage.read_coverage(connection, "lake", records.published_revision(connection, "lake"))
    return {
        key: " ".join(map(str, filter(None, (each.presence.state.value, each.presence.revision))))
        for key, each in found.items()
    }


def read(world: World) -> set[str]:
    """What the last crawl read."""
    return {key for key, evidence in reads(world).items() if not evidence.startswith("carried")}


def cursor(world: World) -> str | None:
    with world.read() as connection:
        found: str | None = connection.execute(select(t.source.c.cursor).where(t.source.c.name == "lake")).scalar()
    return found


def as_it_is(world: World) -> None:
    """The index has what the catalog has."""
    with world.store("lake").locked_state() as state:
        locations = {key: row["location"] for key, row in state["tables"].items()}
        assert world.namespaces("lake") == set(state["namespaces"])
    assert {key: table.location for key, table in world.tables("lake").items()} == locations


def unseen(store: MemoryStore, *removed: Path) -> None:
    """Removes tables, and no event says so."""
    for path in removed:
        store.remove(path)
    with store.locked_state(write=True) as state:
        state["feed"]["events"].clear()


def test_where_nothing_happened_nothing_is_read_or_written(world: World) -> None:
    before = lake(world)
    assert read(world) == set()
    with world.read() as connection:
        rows = len(connection.execute(select(t.coverage)).all())
    again = lake(world)
    assert (again.carried, again.tables, again.revision) == (6, before.tables, before.revision)
    with world.read() as connection:
        assert len(connection.execute(select(t.coverage)).all()) == rows


def test_tables_of_events_are_read_by_name_and_the_listing_of_their_namespace_is_carried(world: World) -> None:
    store, before = world.store("lake"), reads(world)
    store.add_table(("sales", "one"), "s3://moved/one.lance")
    store.add_table(("sales", "three"))
    store.add_table(("ops", "passing"))
    store.remove(("ops", "passing"))
    found = lake(world)
    assert (found.added, found.changed, found.removed, found.carried) == (1, 1, 0, 6)
    # What was carried from a carried one still names the revision that it was read in.
    assert (read(world), reads(world)) == (set(), before)
    as_it_is(world)


def test_a_table_of_an_event_is_gone_if_no_listing_of_names_has_it(world: World) -> None:
    store, before = world.store("lake"), reads(world)
    store.add_table(("sales", "one"), "s3://back/one.lance")
    store.remove(("sales", "two"))
    found = lake(world)
    assert (found.added, found.changed, found.removed, found.carried) == (0, 1, 1, 6)
    assert (read(world), reads(world)) == (set(), before)
    as_it_is(world)


def test_a_table_that_is_listed_and_not_returned_by_name_is_not_gone(world: World) -> None:
    store = world.store("lake")
    store.add_table(("ops", "two"), "s3://moved/two.lance")
    store.faults("unnamed:ops$two")
    found = lake(world)
    assert (found.added, found.changed, found.removed, read(world)) == (0, 1, 0, {"ops"})
    store.faults("")
    as_it_is(world)


def test_a_namespace_is_read_where_a_table_of_an_event_cannot_be_read_by_name(world: World) -> None:
    store = world.store("lake")
    store.add_table(("ops", "one"), "s3://moved/one.lance")
    store.add_table(("ops", "broken"))
    store.faults("undescribed:ops$broken")
    found = lake(world)
    assert (found.added, found.changed, read(world)) == (1, 1, {"ops"})
    assert world.tables("lake")["ops$broken"].kind is Kind.UNDESCRIBED
    store.faults("")
    lake(world)
    assert read(world) == {"ops"}
    as_it_is(world)


def test_namespaces_come_and_go_with_all_that_is_in_them(world: World) -> None:
    store = world.store("lake")
    store.add_table(("new", "er", "t"))
    store.remove(("deep",))
    store.remove(("hr",))
    store.add_namespace(("ops",), location="s3://elsewhere")
    found = lake(world)
    assert (found.added, found.changed, found.removed) == (3, 1, 7)
    # The namespace's own record is in the listing above it.
    assert read(world) == {"", "ops", "new", "new$er"}
    as_it_is(world)


def test_an_incompletely_read_namespace_is_read_again_until_it_is_complete(world: World) -> None:
    store = world.store("lake")
    for namespace in ("failing", "denied", "short", "undescribed"):
        store.add_table((namespace, "t"))
        store.add_table((namespace, "u"))
    store.faults("fail:failing; deny:denied; short:short; undescribed:undescribed$t")
    assert lake(world).state == "partial"
    store.add_table(("failing", "v"))
    found = lake(world)
    assert (found.state, found.failed_namespaces) == ("partial", 3)
    assert read(world) == {"failing", "denied", "short", "undescribed"}
    store.faults("")
    assert lake(world).state == "ok"
    assert read(world) == {"failing", "denied", "short", "undescribed"}
    as_it_is(world)
    lake(world)
    assert read(world) == set()


def test_after_a_root_that_could_not_be_read_everything_is_read(world: World) -> None:
    store, before = world.store("lake"), cursor(world)
    store.faults("fail:/")
    store.add_namespace(("newer",))
    assert lake(world).state == "failed"
    assert cursor(world) == before, "only a cursor from before can tell whether the feed went back"
    store.faults("")
    assert lake(world).full_because == "the last crawl could not read the source"
    assert cursor(world) != before
    as_it_is(world)


def test_a_namespace_that_hangs_fails_alone(world: World) -> None:
    store = world.store("lake")
    world.sources["lake"]["deadline"] = "2s"
    store.add_table(("sales", "four"))
    store.faults("hang:sales=600")
    assert (lake(world).state, read(world)) == ("partial", {"sales"})
    store.faults("")
    del world.sources["lake"]["deadline"]
    assert lake(world).added == 1
    as_it_is(world)


def test_everything_is_read_where_the_feed_cannot_tell(world: World) -> None:
    store = world.store("lake")
    store.add_table(("sales", "five"))
    store.expire_events()
    expired = lake(world)
    assert (expired.full_because, expired.carried, expired.added) == ("the log has expired", 0, 1)
    assert lake(world).carried > 0
    with world.federator.index.write() as connection:
        connection.execute(update(t.source).values(cursor="999"))
    assert lake(world).full_because == "the cursor is ahead of the log"
    store.faults("feed:/=15")
    before = cursor(world)
    denied = lake(world)
    assert "its change feed could not be read: " in (denied.full_because or "")
    assert (denied.state, denied.carried, cursor(world)) == ("ok", 0, before)
    store.faults("feed:/=0")
    without = lake(world)
    assert (without.carried, without.full_because) == (0, None), "a server that keeps no feed is nothing to talk about"
    store.faults("")
    assert lake(world).carried == 0


def test_everything_is_read_when_it_is_asked_for_or_due_or_another_configuration_reads(world: World) -> None:
    assert lake(world, full=True).full_because == "it was requested"
    assert lake(world).carried > 0
    world.sources["lake"]["full_every"] = "1h"
    assert lake(world).carried > 0
    with world.federator.index.write() as connection:
        connection.execute(update(t.source).values(full_at=t.source.c.full_at - 3601))
    assert lake(world).full_because == "a full crawl is due every 3600 s"
    world.sources["lake"]["root"] = "s3://other"
    assert lake(world).full_because == "the source's configuration has changed"
    assert lake(world).carried > 0
    world.sources["lake"]["incremental"] = False
    assert (lake(world).carried, cursor(world)) == (0, None)
    world.sources["lake"].pop("incremental")
    assert "stored no cursor" in (lake(world).full_because or "")


def test_the_next_full_crawl_finds_changes_without_an_event(world: World) -> None:
    store = world.store("lake")
    store.add_table(("sales", "six"))
    unseen(store, ("ops", "one"))
    missed = lake(world)
    assert (missed.added, missed.removed) == (0, 0)
    found = lake(world, full=True)
    assert (found.added, found.removed) == (1, 1)
    as_it_is(world)


class Died(BaseException):
    """The process is gone: nothing catches this."""


def die(*_: Any, **__: Any) -> None:
    raise Died


def test_the_cursor_never_runs_ahead_of_its_revision(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cursor(world), world.revision("lake")
    world.store("lake").add_table(("sales", "seven"))
    steps = ((revisions, "begin_draft"), (revisions, "add_records"), (revisions, "publish_draft"), (Lease, "require_held"))
    for owner, name in steps:
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, die)
            with pytest.raises(Died):
                world.federator.crawl(["lake"])
        assert (cursor(world), world.revision("lake")) == before
    assert lake(world).added == 1
    assert cursor(world) != before[0]
    as_it_is(world)


@pytest.fixture(scope="module")
def mirrored(worlds: Worlds) -> World:
    """``a`` is mirrored to ``b``; both have feeds."""
    made = worlds(
        mirrors={"m": {"from": "a", "to": "b", "max_delete_percent": 100}},
        sources={"a": {"impl": FEEDING}, "b": {"impl": FEEDING}},
    )
    for namespace in ("sales", "ops", "hr"):
        for name in ("one", "two"):
            made.store("a").add_table((namespace, name))
    assert made.sync().state == "ok"
    assert not changes(made.sync())
    return made


def declared_paths(store: MemoryStore, kind: str = "tables") -> set[str]:
    with store.locked_state() as state:
        return set(state[kind])


def test_a_mirror_misses_twice_what_events_named_once(mirrored: World) -> None:
    origin, target = mirrored.store("a"), mirrored.store("b")
    unseen(origin, ("ops", "one"))
    origin.remove(("sales", "one"))
    origin.remove(("hr",))
    first = mirrored.sync()
    gone = {"sales$one", "hr$one", "hr$two"}
    assert first.sources["a"].carried == 1, "ops, in which nobody heard of anything"
    assert refusals(first) == dict.fromkeys(gone, "misses")
    # No event names them again: they are read again because they have to be missed twice.
    again = mirrored.sync()
    assert (refusals(again), mirrored.misses("a")) == (dict.fromkeys(gone, "misses"), dict.fromkeys(gone, 2))
    mirrored.age(601)
    last = mirrored.sync()
    assert outcomes(last) == dict.fromkeys(gone, "done")
    assert declared_paths(target) == {"sales$two", "ops$one", "ops$two"}, "what nobody read is not missed"
    # What the mirror did at the target is in the target's own feed, and the namespace that it made is dropped.
    assert outcomes(mirrored.sync()) == {"hr": "done"}
    mirrored.sync()
    quiet = mirrored.sync()
    assert not changes(quiet)
    assert (quiet.sources["a"].carried, quiet.sources["b"].carried) == (3, 3), "nothing is read for ever"
    found = explain_object(mirrored.settings, mirrored.federator.index, ("a", "sales", "nothing"))
    assert (found.evidence.state, found.evidence.proves) == ("carried", True)
    assert "since then, only what the change feed names was read" in found.summary


def test_new_and_changed_tables_reach_a_carried_target(mirrored: World) -> None:
    origin, target = mirrored.store("a"), mirrored.store("b")
    origin.add_table(("sales", "four"))
    origin.add_table(("sales", "two"), "s3://moved/two.lance")
    origin.add_table(("new", "one"))
    done = mirrored.sync()
    assert done.sources["b"].carried == 3
    assert outcomes(done) == dict.fromkeys(["sales$four", "sales$two", "new", "new$one"], "done")
    target.remove(("sales", "four"))
    assert refusals(mirrored.sync()) == {"sales$four": "missing_at_target"}
    assert mirrored.tables("b")["sales$two"].location == "s3://moved/two.lance"
