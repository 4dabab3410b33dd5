"""Misses: counted for lost origins that are proven absent, and forgotten."""

from __future__ import annotations

from federator.model import COMPLETE, Coverage, failed_evidence
from federator.planning.misses import MAX_MISSES, Missed, add_miss, forget_all, update_misses, valid_misses
from tests.prove.rules_in_memory import lost_origins

COVERAGE = {key: Coverage("lake", path, evidence) for key, path, evidence in (
    ("", (), COMPLETE), ("s", ("s",), COMPLETE), ("down", ("down",), failed_evidence(17, "down")),
)}  # fmt: skip


def test_only_a_lost_origin_that_is_proven_absent_is_missed() -> None:
    lost = lost_origins(["s$a", "s$there", "down$b"], {"s$there"})
    assert lost == {"s$a", "down$b"}
    update = update_misses({"s$a": Missed([1.0], "c")}, "c", lost, COVERAGE, {"s", "down"}, 2.0)
    assert update.counted == {"s$a": [1.0, 2.0]}
    assert update.forgotten == set()
    other = {"s$b": Missed([1.0], "c")}
    assert update.applied(other, "d") == {**other, "s$a": Missed([1.0, 2.0], "d")}


def test_an_origin_that_is_seen_and_one_that_no_ledger_names_are_forgotten() -> None:
    stored = {"s$a": Missed([1.0], "c"), "s$b": Missed([1.0], "c"), "down$b": Missed([1.0], "c")}
    update = update_misses(stored, "c", {"down$b"}, COVERAGE, {"s", "down"}, 2.0)
    assert (update.counted, update.forgotten) == ({}, {"s$a", "s$b"})
    assert update.applied(stored, "c") == {"down$b": Missed([1.0], "c")}


def test_misses_of_another_configuration_do_not_count() -> None:
    stored = {"s$a": Missed([1.0, 2.0], "before"), "s$b": Missed([3.0], "now")}
    assert valid_misses(stored, "now") == {"s$b": [3.0]}
    update = update_misses(stored, "now", {"s$a", "s$b"}, COVERAGE, {"s"}, 4.0)
    assert update.counted == {"s$a": [4.0], "s$b": [3.0, 4.0]}
    assert update.forgotten == {"s$a"}


def test_the_first_and_the_newest_miss_are_kept() -> None:
    misses: list[float] = []
    for number in range(100):
        misses = add_miss(misses, float(number))
    assert len(misses) == MAX_MISSES
    assert (misses[0], misses[-1]) == (0.0, 99.0)
    assert misses == sorted(misses)


def test_misses_of_a_clock_that_went_back_are_forgotten() -> None:
    """Else the table would be missed, and nothing more, until the clock is there again."""
    assert add_miss([10.0, 86_410.0], 20.0) == [10.0, 20.0]
    assert add_miss([86_410.0], 20.0) == [20.0]


def test_a_confirmed_catalog_has_missed_nothing() -> None:
    stored = {"s$a": Missed([1.0], "c"), "s$b": Missed([1.0], "d")}
    assert forget_all(stored).applied(stored, "c") == {}
