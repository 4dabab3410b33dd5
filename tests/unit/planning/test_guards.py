"""Guards: the exact bounds beyond which a plan needs an approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from federator.model import NamespaceRecord
from federator.planning.changes import Action, Change, is_destructive
from federator.planning.guards import GUARDS, GuardFacts, measure_guards
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.planning.rule import MirrorRule
from tests.fixtures.planning import owned, table

THERE: dict[str, Any] = {"before": owned()}


def removal(
    number: int, namespace: str = "s", origin: str = "o", proof: str = "absent", before: Any = THERE["before"]
) -> Change:
    path, source = f"{namespace}$t{number}", f"{origin}$t{number}"
    return Change(Action.DEREGISTER_TABLE, "b", path, "a", source, "gone", before=before, precondition={"origin": proof})


def moved(number: int, namespace: str = "s") -> Change:
    path = f"{namespace}$t{number}"
    before, after = table("b", path, "s3://x/old"), table("b", path, "s3://x/new")
    return Change(Action.UPDATE_TABLE, "b", path, "a", path, "moved", before=before, after=after)


def declared(number: int) -> Change:
    return Change(Action.DECLARE_TABLE, "b", f"s$t{number}", "a", f"s$t{number}", "new", after=table("b", f"s$t{number}"))


def dropped(number: int, *, exists: bool = True) -> Change:
    namespace = NamespaceRecord("b", (f"s{number}",)) if exists else None
    return Change(Action.DROP_NAMESPACE, "b", f"s{number}", "a", f"s{number}", "empty", namespace=namespace)


def rule(**fields: Any) -> MirrorRule:
    return MirrorRule(name="m", origin="a", target="b", **fields)


def facts(
    live: int = 1000, *, namespaces: Mapping[str, int] | None = None, origins: Mapping[str, int] | None = None, deleted: int = 0,
    before: Mapping[str, int] | None = None, selected: int = 5, filtered: bool = False,
) -> GuardFacts:  # fmt: skip
    return GuardFacts(live, namespaces or {"s": live}, origins or {"o": live}, deleted, before or {}, selected, filtered)


def objections(rule: MirrorRule, changes: Sequence[Change], known: GuardFacts) -> list[Hold]:
    return [hold for _, hold in measure_guards(rule, changes, known) if hold is not None]


def held(changes: list[Change], known: GuardFacts, **fields: Any) -> set[str]:
    return {hold.guard for hold in objections(rule(**fields), changes, known)}


class TestPercent:
    @pytest.mark.parametrize(
        ("removals", "live", "stops"),
        [(2, 2, False), (3, 15, False), (3, 14, True), (20, 100, False), (21, 100, True), (3, 3, True), (2, 1, False)],
    )
    def test_a_fifth_from_three_removals_up(self, removals: int, live: int, stops: bool) -> None:
        changes = [removal(number) for number in range(removals)]
        assert ("max_delete_percent" in held(changes, facts(live))) is stops
        assert ("namespace_delete_percent" in held(changes, facts(live))) is stops

    def test_a_changed_location_counts_like_a_removal(self) -> None:
        assert "max_delete_percent" in held([removal(0), moved(1), moved(2)], facts(14))
        assert "max_delete_percent" not in held([removal(0), moved(1)], facts(14))

    def test_removals_in_the_window_count(self) -> None:
        assert "max_delete_percent" not in held([removal(0)], facts(13, deleted=2))
        assert "max_delete_percent" in held([removal(0)], facts(11, deleted=2))
        assert "max_delete_percent" not in held([declared(0)], facts(1, deleted=90))

    @pytest.mark.parametrize(("percent", "stops"), [(100.0, False), (99.9, True), (0.0, True)])
    def test_the_limit_is_the_rules(self, percent: float, stops: bool) -> None:
        changes = [removal(number) for number in range(10)]
        assert ("max_delete_percent" in held(changes, facts(10), max_delete_percent=percent)) is stops

    def test_the_ledgers_forgetting_of_what_is_gone_anyway_is_no_removal(self) -> None:
        assert not held([removal(number, before=None) for number in range(10)], facts(10))


class TestNamespaces:
    def test_an_emptied_namespace_is_not_lost_in_a_large_mirror(self) -> None:
        changes = [removal(number, "small") for number in range(3)]
        assert held(changes, facts(1000, namespaces={"small": 3, "big": 997})) == {"namespace_delete_percent"}
        assert not held(changes, facts(1000, namespaces={"small": 15, "big": 985}))

    def test_a_namespace_that_empties_slowly_is_noticed(self) -> None:
        known = facts(1000, namespaces={"small": 8, "big": 992}, deleted=2, before={"small": 2})
        assert held([removal(0, "small")], known) == {"namespace_delete_percent"}
        assert not held([removal(0, "big")], known)


class TestEmptySources:
    def test_an_empty_source_never_empties_a_target(self) -> None:
        assert held([removal(0)], facts(selected=0)) == {"never_empty"}
        assert held([moved(0)], facts(selected=0)) == {"never_empty"}
        assert not held([declared(0)], facts(selected=0))
        assert not held([removal(0)], facts(selected=1))

    @pytest.mark.parametrize("tables", [1, 2, 5])
    def test_a_namespace_that_empties_at_once_may_be_a_revoked_grant(self, tables: int) -> None:
        changes = [removal(number, f"n{number}") for number in range(tables)]
        known: dict[str, Any] = {"namespaces": {f"n{number}": 100 for number in range(tables)}, "filtered": True}
        assert held(changes, facts(origins={"o": 0}, **known)) == {"emptied_namespace"}
        assert not held(changes, facts(origins={"o": 1}, **known))
        assert not held(changes, facts(origins={"o": 0}, **{**known, "filtered": False}))

    @pytest.mark.parametrize(("new", "stops"), [("o", False), ("elsewhere", True)])
    def test_a_rename_out_of_a_namespace_may_be_a_revoked_grant_too(self, new: str, stops: bool) -> None:
        old = replace(removal(0), pair="s$t0 -> s$t1")
        changed = replace(declared(1), origin_path=f"{new}$t1", pair="s$t0 -> s$t1")
        assert ("emptied_namespace" in held([old, changed], facts(origins={"o": 0}, filtered=True))) is stops

    def test_pruning_empties_a_namespace_on_purpose(self) -> None:
        assert not held([removal(0, proof="any")], facts(origins={"o": 0}, filtered=True))


@pytest.mark.parametrize(("changes", "stops"), [(3, False), (4, True)])
def test_a_plan_of_too_many_changes_is_held(changes: int, stops: bool) -> None:
    assert held([declared(n) for n in range(changes)], facts(), max_changes=3) == ({"max_changes"} if stops else set())


def test_every_guard_names_itself_in_its_hold() -> None:
    holds = objections(
        rule(max_changes=0, max_dropped_namespaces=0),
        [*(removal(n) for n in range(9)), dropped(1)],
        facts(9, origins={"o": 0}, selected=0, filtered=True),
    )
    assert [hold.guard for hold in holds] == list(GUARDS)


def test_what_is_destructive() -> None:
    assert [is_destructive(change) for change in (removal(0), moved(0), declared(0), removal(0, before=None))] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("planned", "before", "stops"), [(5, 0, False), (6, 0, True), (1, 5, True), (2, 3, False), (0, 9, False)]
)
def test_dropped_namespaces_have_a_limit_of_their_own(planned: int, before: int, stops: bool) -> None:
    known = replace(facts(), dropped_in_window=before)
    changes = [*map(dropped, range(planned)), dropped(99, exists=False), declared(1)]
    assert held(changes, known, max_delete_percent=0) == ({"dropped_namespaces"} if stops else set())
    assert held(changes, known, max_dropped_namespaces=100) == set()
    for hold in objections(rule(), changes, known):
        assert [hold.binds(change) for change in changes] == [True] * planned + [False, False]


class TestMeasurements:
    def measured(self, changes: list[Change], known: GuardFacts, **fields: Any) -> dict[str, tuple[Any, ...]]:
        results = measure_guards(rule(**fields), changes, known)
        return {m.guard: (m.measured, m.total, m.limit, m.namespace) for m, _ in results}

    def test_each_guard_says_what_it_measured_also_if_it_does_not_object(self) -> None:
        known = facts(40, namespaces={"s": 20, "u": 20}, deleted=1, before={"u": 1})
        changes = [removal(0), removal(1), removal(2, "u"), declared(3)]
        assert objections(rule(), changes, known) == []
        assert self.measured(changes, known) == {
            "max_changes": (4, None, 10_000, None),
            "max_delete_percent": (4, 41, 20.0, None),
            "namespace_delete_percent": (2, 20, 20.0, "s"),
            "never_empty": (5, None, None, None),
            "emptied_namespace": (0, None, None, None),
            "dropped_namespaces": (0, None, rule().max_dropped_namespaces, None),
        }

    def test_a_guard_that_objects_measured_what_its_hold_says(self) -> None:
        known = facts(9, namespaces={"s": 4, "u": 5})
        results = measure_guards(rule(), [removal(number) for number in range(4)], known)
        by_guard = {m.guard: (m.measured, m.total, hold.detail.partition(" tables")[0]) for m, hold in results if hold}
        assert by_guard["max_delete_percent"] == (4, 9, "4 of 9")
        assert by_guard["namespace_delete_percent"] == (4, 4, "4 of 4")

    def test_measurements_are_kept_with_the_plan_and_are_no_part_of_its_digest(self) -> None:
        guards = tuple(m for m, _ in measure_guards(rule(), [removal(0)], facts()))
        plan = Plan("m", "d", 1, 1, (removal(0),), guards=guards)
        assert Plan.from_json(plan.to_json()).guards == guards
        assert replace(plan, guards=()).digest == plan.digest
