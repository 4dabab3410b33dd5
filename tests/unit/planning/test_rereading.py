"""Incremental crawls: the namespaces that are read again after the events of a change feed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from federator.connector import CatalogChanges
from federator.model import (
    COMPLETE,
    Coverage,
    Evidence,
    carried_evidence,
    failed_evidence,
    parse_path_key,
    path_key,
    skipped_evidence,
)
from federator.planning.incremental import (
    FeedState,
    IndexedSource,
    full_crawl_reason,
    namespaces_to_read,
    origins_needing_misses,
    tables_to_read,
)
from federator.planning.incremental import carried_coverage as carried_on
from federator.planning.rule import MirrorRule

NAMESPACES = ("sales", "ops", "deep", "deep$er", "deep$er$still")


def known(pending: Iterable[str] = (), *, records: Iterable[str] = NAMESPACES, **evidence: Evidence) -> IndexedSource:
    states = {"": COMPLETE, **dict.fromkeys(NAMESPACES, COMPLETE), **{k.replace("__", "$"): v for k, v in evidence.items()}}
    coverage = {key: Coverage("a", parse_path_key(key), proven, proven) for key, proven in states.items()}
    return IndexedSource(coverage=coverage, namespaces=set(records), pending=[parse_path_key(key) for key in pending])


def read(namespaces: Iterable[str] = (), tables: Iterable[str] = (), of: IndexedSource | None = None) -> set[str]:
    changes = CatalogChanges("c", frozenset(map(parse_path_key, namespaces)), frozenset(map(parse_path_key, tables)))
    return {path_key(path) for path in namespaces_to_read(changes, of or known())}


def by_name(
    tables: Iterable[str], named: Iterable[str] = (), of: IndexedSource | None = None
) -> dict[str, tuple[tuple[str, ...], set[str]]]:
    """By namespace, the names that are read, and those of them that the index has."""
    changes = CatalogChanges("c", frozenset(), frozenset(map(parse_path_key, tables)))
    state = replace(of or known(), named=[parse_path_key(key) for key in named])
    shards = tables_to_read(changes, state, namespaces_to_read(changes, state))
    return {path_key(shard.namespace): (shard.names, set(shard.expected)) for shard in shards}


class TestEvents:
    def test_nothing_is_read_where_nothing_happened(self) -> None:
        assert read() == set()

    def test_a_table_is_read_by_name_where_its_namespace_is_known(self) -> None:
        assert read(tables=["sales$t", "sales$u", "ops$t", "t"]) == set()
        assert by_name(["sales$t", "sales$u", "ops$t", "t"], named=["sales$u"]) == {
            "": (("t",), set()), "sales": (("t", "u"), {"u"}), "ops": (("t",), set())
        }  # fmt: skip

    def test_a_table_of_a_namespace_that_is_read_anyway_is_not_read_by_name(self) -> None:
        assert by_name(["sales$t", "new$t"], of=known(sales=failed_evidence(17, "down"))) == {}
        assert read(tables=["sales$t", "new$t"], of=known(sales=failed_evidence(17, "down"))) == {"", "new", "sales"}

    def test_a_namespace_is_read_with_the_listing_that_it_stands_in_and_all_that_is_below(self) -> None:
        assert read(["sales"]) == {"sales", ""}
        assert read(["deep$er"]) == {"deep", "deep$er", "deep$er$still"}
        assert read(["deep"]) == {"", "deep", "deep$er", "deep$er$still"}

    def test_a_namespace_that_the_index_does_not_have_is_read_up_to_one_that_it_has(self) -> None:
        assert read(["new"]) == {"", "new"}
        assert read(["deep$new$er"]) == {"deep", "deep$new", "deep$new$er"}
        assert read(tables=["new$er$t"]) == {"", "new", "new$er"}


class TestGaps:
    @pytest.mark.parametrize("bad", [failed_evidence(17, "down"), failed_evidence(15, "denied"), skipped_evidence("appeared")])
    def test_an_incompletely_read_namespace_is_read_again(self, bad: Evidence) -> None:
        assert read(of=known(deep__er=bad)) == {"deep$er"}

    def test_also_where_only_a_table_could_not_be_described(self) -> None:
        state = known()
        coverage = {**state.coverage, "ops": Coverage("a", ("ops",), COMPLETE, failed_evidence(17, "one of 2"))}
        assert read(of=IndexedSource(coverage=coverage, namespaces=state.namespaces)) == {"ops"}

    def test_carried_coverage_stays_carried(self) -> None:
        assert read(of=known(ops=carried_evidence(3))) == set()

    def test_a_namespace_that_no_listing_covers_is_read_with_the_one_above(self) -> None:
        """A direct write created the namespace, or the crawl of it ended with "not found"."""
        assert read(of=known(records=(*NAMESPACES, "made"))) == {"", "made"}

    def test_a_namespace_that_was_read_and_is_in_no_listing_is_read_with_the_one_above(self) -> None:
        assert read(of=known(denied=failed_evidence(15, "denied"))) == {"", "denied"}
        state = known()
        coverage = {key: each for key, each in state.coverage.items() if key != "deep"}
        assert read(of=IndexedSource(coverage=coverage, namespaces=state.namespaces)) == {"", "deep", "deep$er"}

    def test_a_source_without_any_evidence_is_read_whole(self) -> None:
        assert read(of=IndexedSource(coverage={}, namespaces=["sales", "deep$er"])) == {"", "sales", "deep", "deep$er"}


class TestMisses:
    def test_the_namespace_of_an_origin_that_has_to_be_missed_again_is_read(self) -> None:
        assert read(of=known(["sales$gone"])) == {"sales"}
        assert read(of=known(["gone"])) == {""}

    def test_where_that_is_gone_too_the_nearest_one_that_is_there(self) -> None:
        assert read(of=known(["deep$gone$er$t"])) == {"deep"}
        assert read(of=known(["gone$t"])) == {""}

    @pytest.mark.parametrize(
        ("misses", "pending"), [([], True), ([0.0], True), ([0.0, 599.0], True), ([0.0, 600.0], False), ([0.0, 900.0], False)]
    )
    def test_until_the_strictest_mirror_has_enough(self, misses: list[float], pending: bool) -> None:
        rules = [
            MirrorRule(name="quick", origin="a", target="b", misses_before_delete=1, min_miss_interval=600),
            MirrorRule(name="slow", origin="a", target="c", misses_before_delete=2, min_miss_interval=60),
        ]
        found = origins_needing_misses(["sales$t"], {"sales$t": misses} if misses else {}, rules)
        assert found == (frozenset({("sales", "t")}) if pending else frozenset())

    def test_nobody_waits_for_an_origin_of_no_mirror(self) -> None:
        assert origins_needing_misses(["sales$t"], {}, []) == frozenset()


@pytest.mark.parametrize(
    ("followed", "expected"),
    [
        (FeedState(), ""),
        (FeedState(cursor="x", full_at=1000.0), "could not read the source"),
        (FeedState(full_at=1000.0, full_config="c"), "stored no cursor"),
        (FeedState(cursor="x", full_at=1000.0, full_config="old"), "configuration has changed"),
        (FeedState(cursor="x", full_at=900.0, full_config="c"), "every 100 s"),
        (FeedState(cursor="x", full_at=1001.0, full_config="c"), "every 100 s"),
        (FeedState(cursor="x", full_at=900.1, full_config="c"), None),
        (FeedState(cursor="x", full_at=1000.0, full_config="c"), None),
    ],
)
def test_when_the_feed_is_not_even_asked(followed: FeedState, expected: str | None) -> None:
    reason = full_crawl_reason(followed, config="c", interval=100.0, now=1000.0, requested=False)
    assert reason == expected if expected in (None, "") else expected in (reason or "")
    assert full_crawl_reason(followed, config="c", interval=100.0, now=1000.0, requested=True) == "it was requested"
    if reason is None:
        assert (
            full_crawl_reason(followed, config="c", interval=0.0, now=1000.0, requested=False)
            == "a full crawl is due every 0 s"
        )


def test_carried_coverage_names_the_revision_that_read_it() -> None:
    state = known(ops=carried_evidence(3))
    kept = carried_on(state.coverage, {("sales",)}, 7)
    assert {key: each.presence.revision for key, each in kept.items()} == {
        "": 7, "ops": 3, "deep": 7, "deep$er": 7, "deep$er$still": 7,
    }  # fmt: skip
    assert not any(each.complete for each in kept.values())
    assert all(each.complete_or_carried and each.as_read().complete for each in kept.values())
    assert carried_on(kept, (), 9) == kept
