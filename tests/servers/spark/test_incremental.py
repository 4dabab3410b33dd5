"""Incremental crawls: what they read and carry, and that nothing is lost, or proven absent, because it was not read.

The tests share one catalog, because a first crawl costs more than all that follow. Each test leaves index and catalog equal.
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
    world = worlds(sources={"lake": {"impl": FEEDING}})
    for namespace in (("sales",), ("ops",), ("hr",), ("deep", "er")):
        for name in ("one", "two"):
            world.store("lake").add_table((*namespace, name))
    first = world.federator.crawl(["lake"]).sources["lake"]
    assert (first.added, first.carried, first.full_because) == (13, 0, None)
    return world


@pytest.fixture
def world(shared: World) -> World:
    """A world whose last crawl read everything, without changes since then."""
    assert_index_has_catalog(shared)
    assert not crawl(shared).failed_namespaces
    return shared


def crawl(world: World, **options: Any) -> Any:
    result = world.federator.crawl(["lake"], **options)
    assert not result.errors
    return result.sources["lake"]


def namespace_evidence(world: World) -> dict[str, str]:
    """Return the state of each namespace's listing, with the revision that carried evidence is from: ``complete``, ``carried 1``."""
    with world.read() as connection:
        stored = coverage.read_coverage(connection, "lake", records.published_revision(connection, "lake"))
    return {
        key: " ".join(map(str, filter(None, (item.presence.state.value, item.presence.revision))))
        for key, item in stored.items()
    }


def last_read(world: World) -> set[str]:
    """Return the path keys of the namespaces that the last crawl read."""
    return {key for key, evidence in namespace_evidence(world).items() if not evidence.startswith("carried")}


def cursor(world: World) -> str | None:
    with world.read() as connection:
        stored: str | None = connection.execute(select(t.source.c.cursor).where(t.source.c.name == "lake")).scalar()
    return stored


def assert_index_has_catalog(world: World) -> None:
    """Compare namespaces, tables and locations."""
    with world.store("lake").locked_state() as state:
        locations = {key: row["location"] for key, row in state["tables"].items()}
        assert world.namespaces("lake") == set(state["namespaces"])
    assert {key: table.location for key, table in world.tables("lake").items()} == locations


def remove_without_events(store: MemoryStore, *removed: Path) -> None:
    """Remove tables, and all events that no crawl has read yet."""
    for path in removed:
        store.remove(path)
    with store.locked_state(write=True) as state:
        state["feed"]["events"].clear()


def test_where_nothing_happened_nothing_is_read_or_written(world: World) -> None:
    before = crawl(world)
    assert last_read(world) == set()
    with world.read() as connection:
        rows = len(connection.execute(select(t.coverage)).all())
    again = crawl(world)
    assert (again.carried, again.tables, again.revision) == (6, before.tables, before.revision)
    with world.read() as connection:
        assert len(connection.execute(select(t.coverage)).all()) == rows


def test_tables_of_events_are_read_by_name_and_the_listing_of_their_namespace_is_carried(world: World) -> None:
    store, before = world.store("lake"), namespace_evidence(world)
    store.add_table(("sales", "one"), "s3://moved/one.lance")
    store.add_table(("sales", "three"))
    store.add_table(("ops", "passing"))
    store.remove(("ops", "passing"))
    result = crawl(world)
    assert (result.added, result.changed, result.removed, result.carried) == (1, 1, 0, 6)
    # Evidence that is carried twice still names the revision in which it was read.
    assert (last_read(world), namespace_evidence(world)) == (set(), before)
    assert_index_has_catalog(world)


def test_a_table_of_an_event_is_gone_if_no_listing_of_names_has_it(world: World) -> None:
    store, before = world.store("lake"), namespace_evidence(world)
    store.add_table(("sales", "one"), "s3://back/one.lance")
    store.remove(("sales", "two"))
    result = crawl(world)
    assert (result.added, result.changed, result.removed, result.carried) == (0, 1, 1, 6)
    assert (last_read(world), namespace_evidence(world)) == (set(), before)
    assert_index_has_catalog(world)


def test_a_table_that_is_listed_and_not_returned_by_name_is_not_gone(world: World) -> None:
    store = world.store("lake")
    store.add_table(("ops", "two"), "s3://moved/two.lance")
    store.faults("unnamed:ops$two")
    result = crawl(world)
    assert (result.added, result.changed, result.removed, last_read(world)) == (0, 1, 0, {"ops"})
    store.faults("")
    assert_index_has_catalog(world)


def test_a_namespace_is_read_where_a_table_of_an_event_cannot_be_read_by_name(world: World) -> None:
    store = world.store("lake")
    store.add_table(("ops", "one"), "s3://moved/one.lance")
    store.add_table(("ops", "broken"))
    store.faults("undescribed:ops$broken")
    result = crawl(world)
    assert (result.added, result.changed, last_read(world)) == (1, 1, {"ops"})
    assert world.tables("lake")["ops$broken"].kind is Kind.UNDESCRIBED
    store.faults("")
    crawl(world)
    assert last_read(world) == {"ops"}
    assert_index_has_catalog(world)


def test_namespaces_come_and_go_with_all_that_is_in_them(world: World) -> None:
    store = world.store("lake")
    store.add_table(("new", "er", "t"))
    store.remove(("deep",))
    store.remove(("hr",))
    store.add_namespace(("ops",), location="s3://elsewhere")
    result = crawl(world)
    assert (result.added, result.changed, result.removed) == (3, 1, 7)
    # The namespace's own record is in the listing above it.
    assert last_read(world) == {"", "ops", "new", "new$er"}
    assert_index_has_catalog(world)


def test_an_incompletely_read_namespace_is_read_again_until_it_is_complete(world: World) -> None:
    store = world.store("lake")
    for namespace in ("failing", "denied", "short", "undescribed"):
        store.add_table((namespace, "t"))
        store.add_table((namespace, "u"))
    store.faults("fail:failing; deny:denied; short:short; undescribed:undescribed$t")
    assert crawl(world).state == "partial"
    store.add_table(("failing", "v"))
    result = crawl(world)
    assert (result.state, result.failed_namespaces) == ("partial", 3)
    assert last_read(world) == {"failing", "denied", "short", "undescribed"}
    store.faults("")
    assert crawl(world).state == "ok"
    assert last_read(world) == {"failing", "denied", "short", "undescribed"}
    assert_index_has_catalog(world)
    crawl(world)
    assert last_read(world) == set()


def test_after_a_root_that_could_not_be_read_everything_is_read(world: World) -> None:
    store, before = world.store("lake"), cursor(world)
    store.faults("fail:/")
    store.add_namespace(("newer",))
    assert crawl(world).state == "failed"
    assert cursor(world) == before, "only a cursor from before can tell whether the feed went back"
    store.faults("")
    assert crawl(world).full_because == "the last crawl could not read the source"
    assert cursor(world) != before
    assert_index_has_catalog(world)


def test_a_namespace_that_hangs_fails_alone(world: World) -> None:
    store = world.store("lake")
    world.sources["lake"]["deadline"] = "2s"
    store.add_table(("sales", "four"))
    store.faults("hang:sales=600")
    assert (crawl(world).state, last_read(world)) == ("partial", {"sales"})
    store.faults("")
    del world.sources["lake"]["deadline"]
    assert crawl(world).added == 1
    assert_index_has_catalog(world)


def test_everything_is_read_where_the_feed_cannot_tell(world: World) -> None:
    store = world.store("lake")
    store.add_table(("sales", "five"))
    store.expire_events()
    expired = crawl(world)
    assert (expired.full_because, expired.carried, expired.added) == ("the log has expired", 0, 1)
    assert crawl(world).carried > 0
    with world.federator.index.write() as connection:
        connection.execute(update(t.source).values(cursor="999"))
    assert crawl(world).full_because == "the cursor is ahead of the log"
    store.faults("feed:/=15")
    before = cursor(world)
    denied = crawl(world)
    assert "its change feed could not be read: " in (denied.full_because or "")
    assert (denied.state, denied.carried, cursor(world)) == ("ok", 0, before)
    store.faults("feed:/=0")
    without = crawl(world)
    assert (without.carried, without.full_because) == (0, None), "a server without a change feed is no problem to report"
    store.faults("")
    assert crawl(world).carried == 0


def test_everything_is_read_when_it_is_asked_for_or_due_or_another_configuration_reads(world: World) -> None:
    assert crawl(world, full=True).full_because == "it was requested"
    assert crawl(world).carried > 0
    world.sources["lake"]["full_every"] = "1h"
    assert crawl(world).carried > 0
    with world.federator.index.write() as connection:
        connection.execute(update(t.source).values(full_at=t.source.c.full_at - 3601))
    assert crawl(world).full_because == "a full crawl is due every 3600 s"
    world.sources["lake"]["root"] = "s3://other"
    assert crawl(world).full_because == "the source's configuration has changed"
    assert crawl(world).carried > 0
    world.sources["lake"]["incremental"] = False
    assert (crawl(world).carried, cursor(world)) == (0, None)
    world.sources["lake"].pop("incremental")
    assert "stored no cursor" in (crawl(world).full_because or "")


def test_the_next_full_crawl_finds_changes_without_an_event(world: World) -> None:
    store = world.store("lake")
    store.add_table(("sales", "six"))
    remove_without_events(store, ("ops", "one"))
    missed = crawl(world)
    assert (missed.added, missed.removed) == (0, 0)
    result = crawl(world, full=True)
    assert (result.added, result.removed) == (1, 1)
    assert_index_has_catalog(world)


class Died(BaseException):
    """Stands for the end of the process: no code catches it."""


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
    assert crawl(world).added == 1
    assert cursor(world) != before[0]
    assert_index_has_catalog(world)


@pytest.fixture(scope="module")
def mirrored(worlds: Worlds) -> World:
    """``a`` is mirrored to ``b``; both have feeds."""
    world = worlds(
        mirrors={"m": {"from": "a", "to": "b", "max_delete_percent": 100}},
        sources={"a": {"impl": FEEDING}, "b": {"impl": FEEDING}},
    )
    for namespace in ("sales", "ops", "hr"):
        for name in ("one", "two"):
            world.store("a").add_table((namespace, name))
    assert world.sync().state == "ok"
    assert not changes(world.sync())
    return world


def declared_paths(store: MemoryStore, kind: str = "tables") -> set[str]:
    with store.locked_state() as state:
        return set(state[kind])


def test_a_mirror_misses_twice_what_events_named_once(mirrored: World) -> None:
    origin, target = mirrored.store("a"), mirrored.store("b")
    remove_without_events(origin, ("ops", "one"))
    origin.remove(("sales", "one"))
    origin.remove(("hr",))
    first = mirrored.sync()
    absent = {"sales$one", "hr$one", "hr$two"}
    assert first.sources["a"].carried == 1, "the events do not name ops"
    assert refusals(first) == dict.fromkeys(absent, "misses")
    # No event names them again: they are read again because they have to be missed twice.
    again = mirrored.sync()
    assert (refusals(again), mirrored.misses("a")) == (dict.fromkeys(absent, "misses"), dict.fromkeys(absent, 2))
    mirrored.age(601)
    last = mirrored.sync()
    assert outcomes(last) == dict.fromkeys(absent, "done")
    assert declared_paths(target) == {"sales$two", "ops$one", "ops$two"}, "a table that was not read is not missed"
    # The target's own feed has the mirror's writes. The namespace that the mirror created is dropped.
    assert outcomes(mirrored.sync()) == {"hr": "done"}
    mirrored.sync()
    quiet = mirrored.sync()
    assert not changes(quiet)
    assert (quiet.sources["a"].carried, quiet.sources["b"].carried) == (3, 3), "no namespace stays due for reading"
    explanation = explain_object(mirrored.settings, mirrored.federator.index, ("a", "sales", "nothing"))
    assert (explanation.evidence.state, explanation.evidence.proves) == ("carried", True)
    assert "since then, only what the change feed names was read" in explanation.summary


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
