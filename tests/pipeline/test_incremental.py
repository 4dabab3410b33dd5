"""Crawls that follow a feed of changes: what they read and carry, and that nothing is lost, or proven gone, by not reading it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from federator.index import coverage, records, revisions
from federator.index import tables as t
from federator.index.leases import Lease
from federator.model import TableRecord
from federator.sync import Result
from federator.testing import MemoryStore
from tests.fixtures.spark import World, Worlds, changes, outcomes, refusals

FEEDING = "federator.testing:FEEDING"


@pytest.fixture
def world(worlds: Worlds) -> World:
    made = worlds(sources={"lake": {"impl": FEEDING}})
    for namespace in ("sales", "ops", "hr"):
        for name in ("one", "two"):
            made.store("lake").add_table((namespace, name))
    made.store("lake").add_table(("deep", "er", "t"))
    return made


def crawl(world: World, **how: Any) -> Result:
    result = world.federator.crawl(["lake"], **how)
    assert not result.errors
    return result


def lake(world: World, **how: Any) -> Any:
    return crawl(world, **how).sources["lake"]


def reads(world: World) -> dict[str, str]:
    """What each namespace's evidence is: ``complete``, or ``carried 1``."""
    with world.read() as connection:
        found = coverage.read(connection, "lake", records.published(connection, "lake"))
    return {
        key: " ".join(map(str, filter(None, (each.presence.state.value, each.presence.revision))))
        for key, each in found.items()
    }


def cursor(world: World) -> str | None:
    with world.read() as connection:
        found: str | None = connection.execute(select(t.source.c.cursor).where(t.source.c.name == "lake")).scalar()
    return found


def as_it_is(world: World) -> None:
    """The index has what the catalog has, as a full crawl would find it."""
    with world.store("lake").state() as state:
        tables, namespaces = set(state["tables"]), set(state["namespaces"])
        locations = {key: row["location"] for key, row in state["tables"].items()}
    assert set(world.tables("lake")) == tables
    assert {key: table.location for key, table in world.tables("lake").items()} == locations
    assert world.namespaces("lake") == namespaces


def settled(world: World) -> None:
    as_it_is(world)
    full = lake(world, full=True)
    assert (full.added, full.changed, full.removed) == (0, 0, 0)


def test_the_first_crawl_reads_everything_and_the_next_nothing(world: World) -> None:
    first, second = crawl(world), crawl(world)
    assert (first.sources["lake"].carried, first.sources["lake"].full_because) == (0, None)
    assert second.sources["lake"].carried == 6
    assert second.sources["lake"].tables == first.sources["lake"].tables == 7
    assert set(reads(world).values()) == {"carried 1"}
    third = lake(world)
    assert third.revision == second.sources["lake"].revision, "nothing is written where nothing differs"
    assert set(reads(world).values()) == {"carried 1"}
    settled(world)
    assert set(reads(world).values()) == {"complete"}


def test_only_what_was_named_is_read(world: World) -> None:
    lake(world)
    store = world.store("lake")
    store.add_table(("sales", "one"), "s3://moved/one.lance")
    store.add_table(("sales", "three"))
    store.remove(("sales", "two"))
    found = lake(world)
    assert (found.added, found.changed, found.removed) == (1, 1, 1)
    assert reads(world) == {"sales": "complete"} | dict.fromkeys(["", "ops", "hr", "deep", "deep$er"], "carried 1")
    settled(world)


def test_namespaces_come_and_go_with_all_that_is_in_them(world: World) -> None:
    lake(world)
    store = world.store("lake")
    store.add_table(("new", "er", "t"))
    store.remove(("deep",))
    store.remove(("hr",))
    store.add_namespace(("ops",), location="s3://elsewhere")
    found = lake(world)
    assert (found.added, found.changed, found.removed) == (3, 1, 6)
    # The namespace's own record is in the listing above it.
    assert reads(world) == dict.fromkeys(["", "ops", "new", "new$er"], "complete") | {"sales": "carried 1"}
    settled(world)


def test_carried_from_carried_names_the_revision_that_was_read(world: World) -> None:
    lake(world)
    world.store("lake").add_table(("sales", "three"))
    assert lake(world).revision == 2
    world.store("lake").add_table(("ops", "three"))
    assert lake(world).revision == 3
    assert (reads(world)["sales"], reads(world)["ops"], reads(world)["hr"]) == ("carried 2", "complete", "carried 1")


class TestNothingIsCarriedFromBadEvidence:
    @pytest.mark.parametrize("fault", ["fail:ops", "deny:ops", "short:ops", "undescribed:ops$one"])
    def test_what_could_not_be_read_is_read_again(self, world: World, fault: str) -> None:
        store = world.store("lake")
        store.faults(fault)
        lake(world)
        store.faults("")
        lake(world)
        assert (reads(world)["ops"], reads(world)["sales"]) == ("complete", "carried 1")
        settled(world)

    def test_as_long_as_it_fails(self, world: World) -> None:
        lake(world)
        store = world.store("lake")
        store.faults("deny:ops")
        store.add_table(("ops", "three"))
        for _ in range(2):
            found = lake(world)
            assert (found.state, found.failed_namespaces, reads(world)["ops"]) == ("partial", 1, "failed")
        store.faults("")
        assert lake(world).added == 1
        settled(world)

    def test_a_root_that_could_not_be_read_leaves_no_place_to_go_on_from(self, world: World) -> None:
        lake(world)
        world.store("lake").faults("fail:/")
        world.store("lake").add_namespace(("new",))
        assert lake(world).state == "failed"
        assert cursor(world) is None
        world.store("lake").faults("")
        assert "no place" in (lake(world).full_because or "")
        settled(world)

    def test_a_catalog_that_breaks_off_before_it_says_a_word(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        lake(world)
        world.store("lake").add_table(("sales", "three"))
        world.sources["lake"]["deadline"] = "2s"
        world.store("lake").faults("hang:sales=600")
        assert (lake(world).state, reads(world)["sales"], reads(world)["ops"]) == ("partial", "failed", "carried 1")
        world.store("lake").faults("")
        assert lake(world).added == 1
        settled(world)


class TestEverythingIsReadWhereTheFeedCannotTell:
    def test_an_expired_log(self, world: World) -> None:
        lake(world)
        world.store("lake").add_table(("sales", "three"))
        world.store("lake").forget_events()
        found = lake(world)
        assert (found.full_because, found.carried, found.added) == ("the log has expired", 0, 1)
        assert lake(world).carried == 6

    def test_a_cursor_ahead_of_the_log(self, world: World) -> None:
        lake(world)
        with world.federator.index.write() as connection:
            connection.execute(update(t.source).values(cursor="999"))
        assert lake(world).full_because == "the cursor is ahead of the log"

    def test_a_feed_that_does_not_answer(self, world: World) -> None:
        lake(world)
        world.store("lake").add_table(("sales", "three"))
        world.store("lake").faults("feed:/=15")
        found = lake(world)
        assert "could not be read: " in (found.full_because or "")
        assert (found.state, found.added, found.carried) == ("ok", 1, 0)
        assert cursor(world) is None
        world.store("lake").faults("")
        assert lake(world).carried == 0
        assert lake(world).carried == 6

    def test_another_configuration(self, world: World) -> None:
        lake(world)
        world.sources["lake"]["root"] = "s3://other"
        assert lake(world).full_because == "the source's configuration has changed"

    def test_when_it_is_asked_for_or_due_or_switched_off(self, world: World) -> None:
        lake(world)
        assert lake(world, full=True).full_because == "it was asked for"
        assert lake(world).carried == 6
        world.sources["lake"]["full_every"] = "1h"
        assert lake(world).carried == 6
        with world.federator.index.write() as connection:
            connection.execute(update(t.source).values(full_at=t.source.c.full_at - 3601))
        assert lake(world).full_because == "everything is read every 3600 s"
        assert lake(world).carried == 6
        world.sources["lake"]["incremental"] = False
        assert (lake(world).carried, lake(world).full_because, cursor(world)) == (0, None, None)


def test_an_event_that_never_came_is_made_up_for_by_the_next_full_crawl(world: World) -> None:
    lake(world)
    world.store("lake").add_table(("sales", "three"))
    world.store("lake").remove(("ops", "one"))
    with world.store("lake").state(write=True) as state:
        state["feed"]["events"].clear()
    missed = lake(world)
    assert (missed.added, missed.removed) == (0, 0)
    found = lake(world, full=True)
    assert (found.added, found.removed) == (1, 1)


class Died(BaseException):
    """The process is gone: nothing catches this."""


def die(*_: Any, **__: Any) -> None:
    raise Died


@pytest.mark.parametrize(
    ("place", "name"), [(revisions, "begin"), (revisions, "add_records"), (revisions, "publish"), (Lease, "check")]
)
def test_the_cursor_never_runs_ahead_of_its_revision(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Any, name: str
) -> None:
    lake(world)
    before = cursor(world)
    world.store("lake").add_table(("sales", "three"))
    with monkeypatch.context() as patched:
        patched.setattr(place, name, die)
        with pytest.raises(Died):
            world.federator.crawl(["lake"])
    assert (cursor(world), world.revision("lake")) == (before, 1)
    assert lake(world).added == 1
    assert cursor(world) != before
    settled(world)


@pytest.fixture
def mirrored(worlds: Worlds) -> World:
    """``a`` is mirrored to ``b``; both have feeds."""
    made = worlds(
        mirrors={"m": {"from": "a", "to": "b", "max_delete_percent": 100}},
        sources={"a": {"impl": FEEDING}, "b": {"impl": FEEDING}},
    )
    for namespace in ("sales", "ops"):
        for name in ("one", "two", "three"):
            made.store("a").add_table((namespace, name))
    assert made.sync().state == "ok"
    assert not changes(made.sync())
    return made


def there(store: MemoryStore) -> set[str]:
    with store.state() as state:
        return set(state["tables"])


class TestMirrors:
    def test_a_table_that_is_gone_is_deregistered_after_two_misses(self, mirrored: World) -> None:
        mirrored.store("a").remove(("sales", "one"))
        first = mirrored.sync()
        assert first.sources["a"].carried > 0
        assert refusals(first) == {"sales$one": "misses"}
        # No event names it again; it is read again since it has to be missed twice.
        again = mirrored.sync()
        assert (refusals(again), mirrored.misses("a")) == ({"sales$one": "misses"}, {"sales$one": 2})
        mirrored.age(601)
        last = mirrored.sync()
        assert outcomes(last) == {"sales$one": "done"}
        assert "sales$one" not in there(mirrored.store("b"))
        mirrored.sync()
        quiet = mirrored.sync()
        assert not changes(quiet)
        assert quiet.sources["a"].carried == 3, "what was missed often enough is not read for ever"

    def test_a_namespace_that_is_gone_is_followed(self, mirrored: World) -> None:
        mirrored.store("a").remove(("sales",))
        assert set(refusals(mirrored.sync()).values()) == {"misses"}
        mirrored.age(601)
        last = mirrored.sync()
        assert {path for path, state in outcomes(last).items() if state == "done"} == {"sales$one", "sales$two", "sales$three"}
        assert there(mirrored.store("b")) == {"ops$one", "ops$two", "ops$three"}
        # The namespace was ours too.
        mirrored.sync()
        mirrored.sync()
        with mirrored.store("b").state() as state:
            assert set(state["namespaces"]) == {"ops"}

    def test_what_nobody_read_is_never_missed(self, mirrored: World) -> None:
        """A table of a carried namespace that the index lost track of, whatever the reason, stays at the target."""
        mirrored.store("a").remove(("sales", "one"))
        with mirrored.store("a").state(write=True) as state:
            state["feed"]["events"].clear()
        for _ in range(3):
            mirrored.age(601)
            assert not changes(mirrored.sync())
        assert mirrored.misses("a") == {}
        assert "sales$one" in there(mirrored.store("b"))

    def test_new_and_changed_tables_reach_a_target_that_was_carried(self, mirrored: World) -> None:
        mirrored.store("a").add_table(("ops", "four"))
        mirrored.store("a").add_table(("sales", "one"), "s3://moved/one.lance")
        mirrored.store("a").add_table(("new", "one"))
        done = mirrored.sync()
        assert done.sources["b"].carried == 3
        assert outcomes(done) == {"ops$four": "done", "sales$one": "done", "new$one": "done", "new": "done"}
        assert not changes(mirrored.sync())
        tables: dict[str, TableRecord] = mirrored.tables("b")
        assert tables["sales$one"].location == "s3://moved/one.lance"

    def test_what_somebody_did_at_the_target_is_noticed(self, mirrored: World) -> None:
        mirrored.store("b").remove(("sales", "one"))
        assert refusals(mirrored.sync()) == {"sales$one": "missing_at_target"}
        mirrored.mirrors["m"]["on_missing"] = "recreate"
        assert outcomes(mirrored.sync()) == {"sales$one": "done"}

    def test_explain_says_what_was_carried(self, mirrored: World) -> None:
        from federator.sync.explaining import explain

        found = explain(mirrored.settings, mirrored.federator.index, ("a", "sales", "nothing"))
        assert (found.evidence.state, found.evidence.proves) == ("carried", True)
        assert "the feed of changes has named nothing in it since" in found.summary
