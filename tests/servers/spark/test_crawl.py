"""Crawls through Spark: published revisions; a record is removed and a miss is counted only by proven absence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from federator.model import Kind, TableRecord, parse_path_key
from federator.pipeline import diff, staging_area
from federator.planning.publication import ObservedObject
from federator.stages.result import RunResult
from federator.store import ledger, revisions
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.store.observations import publish_observations
from tests.fixtures.index_content import owned
from tests.fixtures.spark import ODD, World, Worlds

BROKEN = ("failing", "denied", "hanging", "short", "miscounted", "repeated", "unlisted", "crashing")
FAULTS = "fail:failing; deny:denied; hang:hanging=600; short:short; undescribed:undescribed$kept"
WORDS = "miscounted repeated unlisted crashing doubled"


def crawl(world: World, *sources: str) -> RunResult:
    return world.federator.crawl(sources or ("lake",))


def watched(world: World, *paths: str) -> None:
    """As if a mirror had copied these tables: only what was copied is missed."""
    with world.federator.index.write() as connection:
        for path in paths:
            ledger.upsert_entry(connection, owned("lake", path, "x", op_id=path))


@dataclass
class Quiet:
    """A source crawled three times: as new, unchanged, and with one table changed."""

    world: World
    results: list[RunResult]
    record_rows: list[int]
    coverage_rows: list[int]
    revisions: list[int]


@pytest.fixture(scope="module")
def quiet(worlds: Worlds) -> Quiet:
    world = worlds(sources={"lake": {}, "down": {"faults": "fail:*"}})
    for number in range(5):
        world.store("lake").add_table(("sales", f"t{number}"), properties={"team": "x"}, doc="orders")
    world.store("lake").add_namespace(("deep", "er"))
    world.store("lake").add_table(("deep", "er", "%odd$name"))
    seen = Quiet(world, [], [], [], [])
    for turn in range(3):
        if turn == 2:
            world.store("lake").add_table(("sales", "t0"), properties={"team": "y"}, doc="orders")
        seen.results.append(crawl(world, *(("lake", "down") if turn == 0 else ())))
        seen.record_rows.append(world.rows(t.record))
        seen.coverage_rows.append(world.rows(t.coverage))
        seen.revisions.append(world.revision("lake"))
    return seen


class TestASourceThatAnswers:
    def test_everything_in_it_is_published(self, quiet: Quiet) -> None:
        published = quiet.results[0].sources["lake"]
        assert (published.state, published.tables, published.namespaces, published.added) == ("ok", 6, 3, 9)
        assert set(quiet.world.tables("lake")) == {*(f"sales$t{n}" for n in range(5)), "deep$er$%25odd%24name"}
        assert quiet.world.namespaces("lake") == {"sales", "deep", "deep$er"}
        assert set(quiet.world.evidence("lake").values()) == {"complete"}

    def test_a_second_crawl_of_the_same_writes_no_row(self, quiet: Quiet) -> None:
        published = quiet.results[1].sources["lake"]
        assert (published.added, published.changed, published.removed) == (0, 0, 0)
        assert quiet.record_rows[1] == quiet.record_rows[0]
        assert quiet.coverage_rows[1] == quiet.coverage_rows[0]
        assert quiet.revisions[1] == quiet.revisions[0]

    def test_one_changed_table_is_one_new_row_and_a_revision(self, quiet: Quiet) -> None:
        published = quiet.results[2].sources["lake"]
        assert (published.added, published.changed, published.removed) == (0, 1, 0)
        assert quiet.record_rows[2] == quiet.record_rows[1] + 1
        assert quiet.revisions[2] == quiet.revisions[1] + 1
        assert quiet.world.tables("lake")["sales$t0"].properties == {"team": "y"}

    def test_one_that_fails_makes_the_run_partial_and_the_other_is_published(self, quiet: Quiet) -> None:
        first = quiet.results[0]
        assert first.state == "partial"
        assert first.sources["down"].state == "failed"
        assert first.sources["lake"].state == "ok"
        assert quiet.results[1].state == "ok"

    def test_the_run_and_its_audit_say_so(self, quiet: Quiet) -> None:
        quiet.world.verified()


@dataclass
class Evil:
    """A source of which half the tables vanish, while most of its namespaces cannot be read rightly; crawled twice like that."""

    world: World
    before: dict[str, TableRecord]
    results: list[RunResult]
    after: list[dict[str, TableRecord]]
    misses: list[dict[str, int]]
    evidence: dict[str, str]
    record_rows: list[int]


@pytest.fixture(scope="module", params=["one task", "a join"])
def evil(worlds: Worlds, request: pytest.FixtureRequest) -> Iterator[Evil]:
    """The same story with the rules in one Python task, and as queries of Spark."""
    with pytest.MonkeyPatch.context() as limit:
        if request.param == "a join":
            limit.setattr(staging_area, "MAX_ROWS", -1)
        yield tell_evil(worlds)


def tell_evil(worlds: Worlds) -> Evil:
    world = worlds(sources={"lake": {"impl": ODD, "deadline": "3s"}})
    store = world.store("lake")
    for namespace in (*BROKEN, "healthy", "vanishing", "undescribed", "doubled", "direct"):
        for name in ("kept", "dropped"):
            store.add_table((namespace, name), properties={"was": "here"})
    first = crawl(world)
    before = world.tables("lake")
    watched(world, *before)
    for key in before:
        if key.endswith("$dropped"):
            store.remove(parse_path_key(key))
    store.remove(("vanishing",))
    store.add_table(("healthy", "new"))
    store.add_table(("doubled", "a_new"))
    store.add_table(("direct", "kept"), properties={"crawled": "old news"})
    # Somebody looked at these two directly, after the crawls that follow have begun to read.
    looked_at = time.time() + 3600
    seen = [before["direct$dropped"], replace(before["direct$kept"], properties={"seen": "directly"})]
    with acquire_lease(world.federator.index, "source:lake") as lease:
        looks = [ObservedObject(record.path, replace(record, doc="seen"), looked_at, is_table=True) for record in seen]
        publish_observations(world.federator.index, lease, "lake", "r", looks)
    (world.directory / "lake.json.odd").write_text(WORDS)
    store.faults(FAULTS)
    story = Evil(world, before, [first], [], [], {}, [])
    for _ in range(2):
        with pytest.MonkeyPatch.context() as clock:
            # The crawl is published after that look: one later than now would count as of a clock that went back.
            clock.setattr(diff, "current_time", lambda: looked_at + 1)
            story.results.append(crawl(world))
        story.after.append(world.tables("lake"))
        story.misses.append(world.misses("lake"))
        story.record_rows.append(world.rows(t.record))
    story.evidence = world.evidence("lake")
    return story


class TestASourceThatIsWrong:
    @pytest.mark.parametrize("namespace", BROKEN)
    def test_an_invalid_crawl_keeps_the_records_and_counts_no_miss(self, evil: Evil, namespace: str) -> None:
        for after, misses in zip(evil.after, evil.misses, strict=True):
            for name in ("kept", "dropped"):
                key = f"{namespace}${name}"
                assert after[key] == evil.before[key]
                assert key not in misses
        assert evil.evidence[namespace] == "failed"

    def test_a_table_absent_from_complete_listings_is_removed_and_missed_each_time(self, evil: Evil) -> None:
        for turn, (after, misses) in enumerate(zip(evil.after, evil.misses, strict=True)):
            assert "healthy$dropped" not in after
            assert misses["healthy$dropped"] == turn + 1
            assert after["healthy$kept"] == evil.before["healthy$kept"]
            assert "healthy$kept" not in misses
            assert "healthy$new" in after

    def test_a_namespace_absent_from_a_complete_listing_is_removed_with_its_tables(self, evil: Evil) -> None:
        for turn, (after, misses) in enumerate(zip(evil.after, evil.misses, strict=True)):
            for key in ("vanishing$kept", "vanishing$dropped"):
                assert key not in after
                assert misses[key] == turn + 1
        assert "vanishing" not in evil.world.namespaces("lake")
        assert "vanishing" not in evil.evidence

    def test_a_table_that_is_listed_and_cannot_be_described_is_there_as_it_was(self, evil: Evil) -> None:
        for after, misses in zip(evil.after, evil.misses, strict=True):
            assert after["undescribed$kept"] == evil.before["undescribed$kept"]
            assert after["undescribed$kept"].kind is Kind.TABLE
            assert "undescribed$kept" not in misses
        assert evil.evidence["undescribed"] == "complete"

    def test_a_table_on_two_pages_is_one_table(self, evil: Evil) -> None:
        for after in evil.after:
            assert {key for key in after if key.startswith("doubled$")} == {"doubled$a_new", "doubled$kept"}

    def test_evidence_older_than_an_observation_neither_closes_nor_replaces(self, evil: Evil) -> None:
        for after, misses in zip(evil.after, evil.misses, strict=True):
            assert after["direct$dropped"].doc == "seen"
            assert after["direct$kept"].properties == {"seen": "directly"}
            assert not {key for key in misses if key.startswith("direct$")}

    def test_the_run_is_partial_and_says_how_much_failed(self, evil: Evil) -> None:
        first, *wrong = evil.results
        assert first.state == "ok"
        for result in wrong:
            assert result.state == "partial"
            assert result.sources["lake"].failed_namespaces == len(BROKEN)

    def test_the_same_failure_again_writes_no_record(self, evil: Evil) -> None:
        assert evil.record_rows[0] == evil.record_rows[1]


@pytest.fixture
def small(worlds: Worlds) -> World:
    world = worlds(sources={"lake": {"impl": ODD}})
    for number in range(3):
        world.store("lake").add_table(("sales", f"t{number}"))
    crawl(world)
    watched(world, *world.tables("lake"))
    return world


@pytest.mark.parametrize("fault", ["cutting the crawl", "every listing", "the root"])
def test_a_source_that_fails_as_a_whole_keeps_everything_and_misses_nothing(small: World, fault: str) -> None:
    before = small.tables("lake")
    small.store("lake").remove(("sales",))
    if fault == "cutting the crawl":
        (small.directory / "lake.json.odd").write_text("shards")
    else:
        small.store("lake").faults({"every listing": "fail:*", "the root": "fail:/"}[fault])
    result = crawl(small)
    assert (result.state, result.sources["lake"].state) == ("failed", "failed")
    assert small.tables("lake") == before
    assert small.namespaces("lake") == {"sales"}
    assert small.misses("lake") == {}


def test_a_crash_before_publishing_leaves_readers_on_the_old_state_and_is_swept(
    small: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    before, revision = small.tables("lake"), small.revision("lake")
    small.store("lake").remove(("sales", "t0"))
    small.store("lake").add_table(("sales", "t1"), doc="changed")
    small.store("lake").add_table(("sales", "t9"))
    with monkeypatch.context() as patched:
        patched.setattr(revisions, "publish_draft", dies)
        with pytest.raises(Killed):
            crawl(small)
    assert (small.tables("lake"), small.revision("lake"), small.misses("lake")) == (before, revision, {})
    result = crawl(small)
    published = result.sources["lake"]
    assert (published.added, published.changed, published.removed) == (1, 1, 1)
    assert set(small.tables("lake")) == {"sales$t1", "sales$t2", "sales$t9"}
    assert small.tables("lake")["sales$t1"].doc == "changed"
    assert small.misses("lake") == {"sales$t0": 1}
    small.verified()
