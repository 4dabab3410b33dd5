"""Evidence: the objects that a crawl proves present or absent, and those it proves nothing about."""

from __future__ import annotations

import pytest

from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Evidence,
    carried_evidence,
    failed_evidence,
    parse_path_key,
    skipped_evidence,
)
from federator.planning.evidence import count_spaced_misses, has_enough_misses, is_covered, is_listed_empty, is_proven_absent

DOWN = failed_evidence(17, "down")
DENIED = failed_evidence(15, "denied")


def known(exists: bool = True, **namespaces: Evidence) -> dict[str, Coverage]:
    keys = {"" if key == "root" else key.replace("_", "$"): evidence for key, evidence in namespaces.items()}
    return {key: Coverage("a", parse_path_key(key), evidence, found=exists) for key, evidence in keys.items()}


INCOMPLETE = [DOWN, DENIED, skipped_evidence("appeared"), carried_evidence(3)]


class TestAbsence:
    def test_a_complete_listing_proves_unlisted_objects_absent(self) -> None:
        assert is_proven_absent(("s", "t"), known(root=COMPLETE, s=COMPLETE), {"s"})

    @pytest.mark.parametrize("evidence", INCOMPLETE, ids=lambda evidence: evidence.state.value)
    def test_nothing_else_proves_anything(self, evidence: Evidence) -> None:
        assert not is_proven_absent(("s", "t"), known(root=COMPLETE, s=evidence), {"s"})
        assert not is_proven_absent(("s",), known(root=evidence, s=COMPLETE), {"s"})
        assert not is_proven_absent(("s", "t"), known(root=evidence), ())

    def test_a_listed_namespace_without_evidence_proves_nothing(self) -> None:
        assert not is_proven_absent(("s", "t"), known(root=COMPLETE), {"s"})

    def test_a_namespace_that_its_parent_does_not_list_is_absent_with_its_content(self) -> None:
        crawl = known(root=COMPLETE, a=COMPLETE)
        for path in (("b",), ("b", "t"), ("b", "c", "t"), ("a", "gone", "t")):
            assert is_proven_absent(path, crawl, {"a"})

    def test_the_nearest_namespace_that_exists_decides(self) -> None:
        assert not is_proven_absent(("a", "b", "t"), known(root=COMPLETE, a=DOWN), {"a"})
        assert not is_proven_absent(("a", "b", "t"), {**known(root=COMPLETE, a=COMPLETE), **known(a_b=DENIED)}, {"a", "a$b"})

    def test_a_namespace_that_was_denied_without_being_listed_is_not_absent(self) -> None:
        assert not is_proven_absent(("s", "t"), known(root=COMPLETE, s=DENIED), ())

    def test_a_namespace_that_was_not_found_is_judged_by_its_parent(self) -> None:
        assert is_proven_absent(
            ("s", "t"), {**known(root=COMPLETE), **known(s=failed_evidence(1, "not found"), exists=False)}, ()
        )
        assert not is_proven_absent(
            ("s", "t"), {**known(root=DOWN), **known(s=failed_evidence(1, "not found"), exists=False)}, ()
        )

    def test_without_any_evidence_nothing_is_absent(self) -> None:
        assert not is_proven_absent(("s", "t"), {}, {"s"})
        assert not is_proven_absent(("t",), {}, ())


class TestCovered:
    def test_the_nearest_evidence_decides(self) -> None:
        assert is_covered(("s", "t"), known(root=DOWN, s=COMPLETE))
        assert not is_covered(("s", "t"), known(root=COMPLETE, s=DOWN))

    def test_a_namespace_that_nobody_knows_is_covered_by_its_parent(self) -> None:
        assert is_covered(("new", "t"), known(root=COMPLETE))
        assert not is_covered(("new", "t"), known(root=DENIED))

    def test_a_namespace_that_does_not_exist_is_covered_by_its_parent(self) -> None:
        gone = known(s=failed_evidence(1, "not found"), exists=False)
        assert is_covered(("s", "t"), {**known(root=COMPLETE), **gone})
        assert not is_covered(("s", "t"), {**known(root=DOWN), **gone})

    def test_a_source_that_was_never_read_covers_nothing(self) -> None:
        assert not is_covered(("s", "t"), {})

    def test_the_roots_own_tables_are_covered_by_the_root(self) -> None:
        assert is_covered(("t",), {"": Coverage("a", ROOT)})


class TestMisses:
    @pytest.mark.parametrize(
        ("misses", "interval", "counted"),
        [
            ((), 600, 0),
            ((5.0,), 600, 1),
            ((0.0, 599.9), 600, 1),
            ((0.0, 600.0), 600, 2),
            ((0.0, 300.0, 600.0, 900.0, 1200.0), 600, 3),
            ((0.0, 1.0, 2.0), 0, 3),
        ],
    )
    def test_only_misses_far_enough_apart_count(self, misses: tuple[float, ...], interval: float, counted: int) -> None:
        assert count_spaced_misses(misses, interval) == counted
        assert has_enough_misses(misses, counted, interval)
        assert not has_enough_misses(misses, counted + 1, interval)


@pytest.mark.parametrize(
    ("listing", "nothing"),
    [
        (None, True),
        (Coverage("a", ("s",)), True),
        (Coverage("a", ("s",), records=1), False),
        *((Coverage("a", ("s",), evidence), False) for evidence in INCOMPLETE),
    ],
)
def test_only_a_whole_listing_shows_nothing(listing: Coverage | None, nothing: bool) -> None:
    assert is_listed_empty("s", {"s": listing} if listing is not None else {}) is nothing
