"""Publication rules: the effect of a crawl on one object, and what a crawl removes."""

from __future__ import annotations

import pytest

from federator.model import Coverage, Kind, failed_evidence
from federator.planning.publication import Effect, Version, compare_versions, known_time, removable
from tests.prove.rules_in_memory import difference

TABLE = Version(Kind.TABLE, "d1")


@pytest.mark.parametrize(
    ("indexed", "crawled", "effect"),
    [
        (None, TABLE, Effect.ADDED),
        (TABLE, TABLE, Effect.UNCHANGED),
        (TABLE, Version(Kind.TABLE, "d2"), Effect.CHANGED),
        (TABLE, None, Effect.MISSING),
        (TABLE, Version(Kind.UNDESCRIBED, "d2"), Effect.UNDESCRIBED),
        (Version(Kind.UNDESCRIBED, "d1"), Version(Kind.UNDESCRIBED, "d2"), Effect.CHANGED),
        (Version(Kind.UNDESCRIBED, "d1"), Version(Kind.TABLE, "d2"), Effect.CHANGED),
    ],
)
def test_the_effect_without_a_direct_observation(indexed: Version | None, crawled: Version | None, effect: Effect) -> None:
    assert compare_versions(indexed, crawled, 10.0) is effect


def test_evidence_that_began_before_a_direct_observation_neither_removes_nor_replaces() -> None:
    observed = Version(Kind.TABLE, "d1", 20.0)
    assert compare_versions(observed, None, 19.0) is Effect.OUTDATED
    assert compare_versions(observed, Version(Kind.TABLE, "d2"), 19.0) is Effect.OUTDATED
    assert compare_versions(observed, None, 20.0) is Effect.MISSING
    assert compare_versions(observed, Version(Kind.TABLE, "d2"), 20.0) is Effect.CHANGED


def test_an_observation_from_a_clock_that_went_back_is_of_unknown_time() -> None:
    assert [known_time(at, 30.0) for at in (None, 20.0, 30.0, 31.0)] == [None, 20.0, 30.0, None]
    assert compare_versions(Version(Kind.TABLE, "d1", known_time(86_430.0, 30.0)), None, 29.0) is Effect.MISSING


def test_a_shard_that_began_later_than_the_crawl_counts_from_its_own_begin() -> None:
    observed = Version(Kind.TABLE, "d1", 20.0)
    assert compare_versions(observed, Version(Kind.TABLE, "d2", 21.0), 10.0) is Effect.CHANGED
    assert compare_versions(observed, Version(Kind.TABLE, "d2", 19.0), 30.0) is Effect.OUTDATED


def test_only_proven_absent_objects_are_removed() -> None:
    coverage = {
        "": Coverage("lake", ()),
        "s": Coverage("lake", ("s",)),
        "down": Coverage("lake", ("down",), failed_evidence(17, "down")),
    }
    missing = [(1, "s$a"), (1, "down$b"), (0, "t"), (1, "t$c")]
    assert removable(missing, coverage, {"s", "down"}) == [(1, "s$a"), (0, "t"), (1, "t$c")]


def test_what_a_crawl_changes_of_the_index() -> None:
    coverage = {
        "": Coverage("lake", ()),
        "s": Coverage("lake", ("s",)),
        "down": Coverage("lake", ("down",), failed_evidence(17, "down")),
    }
    indexed = {(1, "s$same"): TABLE, (1, "s$changed"): TABLE, (1, "s$gone"): TABLE, (1, "down$unseen"): TABLE}
    crawled = {(1, "s$same"): TABLE, (1, "s$changed"): Version(Kind.TABLE, "d2"), (1, "s$new"): TABLE}
    found = difference(indexed, crawled, coverage, {"s", "down"}, 10.0)
    assert found == ([(1, "s$new"), (1, "s$changed")], [(1, "s$gone")], True)
    newer = {**indexed, (1, "s$gone"): Version(Kind.TABLE, "d1", 11.0)}
    assert difference(newer, crawled, coverage, {"s", "down"}, 10.0) == (found.written, [], False)
