"""Planning over random worlds: the two forbidden results never occur, and mirrors reach a fixed point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.connector import Capabilities
from federator.model import (
    COMPLETE,
    Coverage,
    Kind,
    TableRecord,
    carried_evidence,
    failed_evidence,
    parse_path_key,
    skipped_evidence,
)
from federator.planning.changes import Action, Change
from federator.planning.decision import Cell, CrawlEvidence, LedgerEntry, OriginState, decide
from federator.planning.evidence import count_spaced_misses, is_covered
from federator.planning.mapping import MirrorContext, map_table
from federator.planning.ownership import OwnershipMarker, find_bound_marker
from tests.fixtures.planning import ANY, Mirrors, context, table

PATH = ("s", "t")
EVIDENCE = st.sampled_from(
    [COMPLETE, failed_evidence(17, "down"), failed_evidence(15, "denied"), skipped_evidence("appeared"), carried_evidence(2)]
)
IDS = st.sampled_from([None, "n1", "n2"])
MARKS = st.none() | st.builds(
    lambda instance, mirror, path: OwnershipMarker(instance, mirror, "a$s$t", "op").to_properties(path),
    st.sampled_from(["me", "you"]), st.sampled_from(["m", "n"]), st.sampled_from([PATH, ("s", "copied")]),
)  # fmt: skip
LOCATIONS = st.sampled_from(["s3://x/1", "s3://x/2", "s3a://x/1/"])
WRITES = (Action.DECLARE_TABLE, Action.UPDATE_TABLE, Action.DEREGISTER_TABLE)


@st.composite
def coverages(draw: st.DrawFn, source: str) -> dict[str, Coverage]:
    keys = draw(st.sets(st.sampled_from(["", "s", "z"])))
    return {key: Coverage(source, parse_path_key(key), draw(EVIDENCE), found=draw(st.booleans())) for key in keys}


@st.composite
def contexts(draw: st.DrawFn) -> MirrorContext:
    keeps_properties, keeps_comment = draw(st.booleans()), draw(st.booleans())
    target = replace(ANY, can_alter=draw(st.booleans()), keeps_properties=keeps_properties, keeps_comment=keeps_comment)
    return context(
        target,
        delete=draw(st.sampled_from(["never", "owned"])),
        prune_unselected=draw(st.booleans()),
        on_conflict=draw(st.sampled_from(["report", "adopt_if_same_location"])),
        on_missing=draw(st.sampled_from(["report", "recreate"])),
        misses_before_delete=draw(st.integers(1, 3)),
        min_miss_interval=draw(st.sampled_from([0.0, 600.0])),
        transitive=draw(st.booleans()),
    )


@st.composite
def targets(draw: st.DrawFn) -> TableRecord:
    kind = draw(st.sampled_from([Kind.TABLE, Kind.TABLE, Kind.MANAGED_TABLE, Kind.UNDESCRIBED]))
    properties = {**(draw(MARKS) or {}), **draw(st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from("12")))}
    return table("b", "s$t", draw(LOCATIONS), kind=kind, native_id=draw(IDS), properties=properties)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[MirrorContext, Cell, CrawlEvidence]:
    """One target path with anything in it, anything known of it, and any origins that want it."""
    where = draw(contexts())
    origins = draw(st.lists(st.sampled_from(["s$t", "S$T", "z$t"]), unique=True, max_size=2))
    wanted = [map_table(where, table("a", key, draw(LOCATIONS), properties={"p": "1"})) for key in origins]
    target = draw(st.none() | targets())
    states = st.sampled_from(OriginState)
    ledgers = st.builds(
        LedgerEntry, st.sampled_from(["s$t", "z$t", "old$t"]), st.just("op"), IDS, st.just({"properties": {"p": "0"}}), states
    )
    misses = st.dictionaries(
        st.sampled_from(["s$t", "z$t", "old$t"]), st.lists(st.sampled_from([0.0, 300.0, 600.0, 1200.0])).map(sorted)
    )
    knowledge = CrawlEvidence(draw(coverages("a")), draw(coverages("b")), draw(misses))
    return where, Cell(PATH, wanted, target, draw(st.none() | ledgers)), knowledge


def is_owned(where: MirrorContext, cell: Cell) -> bool:
    """Rule 2 once more, written down a second time and differently."""
    target, ledger = cell.target, cell.ledger
    if target is None or ledger is None or target.kind is not Kind.TABLE:
        return False
    identities = {ledger.native_id, target.native_id}
    if None not in identities and len(identities) == 2:
        return False
    if not (where.target.keeps_properties or where.target.keeps_comment):
        return None not in identities
    p = target.properties
    return (p.get("federator.instance"), p.get("federator.mirror"), p.get("federator.path")) == ("me", "m", "s$t")


@given(worlds())
def test_nothing_is_removed_without_proof_that_the_origin_is_absent_and_the_target_owned(
    world: tuple[MirrorContext, Cell, CrawlEvidence],
) -> None:
    where, cell, knowledge = world
    decision = decide(where, cell, knowledge)
    if not isinstance(decision, Change) or decision.action is not Action.DEREGISTER_TABLE:
        return
    assert cell.ledger is not None
    assert cell.ledger.origin_state is not OriginState.SELECTED
    misses = knowledge.misses.get(cell.ledger.origin_path, [])
    proven = count_spaced_misses(misses, where.rule.min_miss_interval) >= where.rule.misses_before_delete
    gone = cell.ledger.origin_state is OriginState.ABSENT and proven and decision.precondition["origin"] == "absent"
    assert gone or (where.rule.prune_unselected and cell.ledger.origin_state is OriginState.UNSELECTED)
    if cell.target is None:
        assert is_covered(PATH, knowledge.target)
    else:
        assert is_owned(where, cell)
        assert where.rule.delete == "owned"
        assert decision.precondition["target"] == cell.target.digest


@given(worlds())
def test_only_an_adoption_writes_onto_what_is_not_owned(world: tuple[MirrorContext, Cell, CrawlEvidence]) -> None:
    where, cell, knowledge = world
    decision = decide(where, cell, knowledge)
    if not isinstance(decision, Change):
        return
    if decision.action is Action.ADOPT:
        assert where.rule.on_conflict == "adopt_if_same_location"
        assert cell.target is not None
        assert cell.ledger is None
        assert find_bound_marker(cell.target) is None
        assert decision.after is not None
        assert decision.after.canonical == cell.target.canonical
    elif cell.target is not None:
        assert decision.action in WRITES
        assert is_owned(where, cell)
    elif decision.action is Action.DECLARE_TABLE:
        assert is_covered(PATH, knowledge.target)


@given(worlds())
def test_a_name_changes_its_origin_and_its_location_together_only_where_the_first_origin_lost_it(
    world: tuple[MirrorContext, Cell, CrawlEvidence],
) -> None:
    where, cell, knowledge = world
    decision = decide(where, cell, knowledge)
    if isinstance(decision, Change) and decision.action is Action.UPDATE_TABLE and decision.moves_location:
        assert cell.ledger is not None
        assert decision.origin_path == cell.ledger.origin_path


@given(worlds())
def test_deciding_is_a_function(world: tuple[MirrorContext, Cell, CrawlEvidence]) -> None:
    assert decide(*world) == decide(*world)


@given(st.lists(st.floats(0, 5000), max_size=12).map(sorted), st.integers(1, 5), st.floats(0, 1000))
def test_misses_are_never_counted_closer_than_the_interval(misses: list[float], needed: int, interval: float) -> None:
    counted = count_spaced_misses(misses, interval)
    assert counted <= len(misses)
    if counted > 1 and interval:
        assert (counted - 1) * interval <= misses[-1] - misses[0] + 1e-6


# Fixed points.

NAMES = st.sampled_from(["s$t", "s$u", "S$T", "z$t"])
TABLE_LOCATIONS = st.sampled_from(["s3://x/1", "s3://x/2", "s3://x/3"])
PROPERTIES = st.dictionaries(st.sampled_from("pq"), st.sampled_from("12"))
TABLES = st.dictionaries(NAMES, st.tuples(TABLE_LOCATIONS, PROPERTIES), max_size=3)
FOLDED = replace(ANY, names=replace(ANY.names, folds_case=True))


def mirror(name: str, origin: str, target: str, to: Capabilities = ANY, **rule: Any) -> MirrorContext:
    return context(to, **{"name": name, "origin": origin, "target": target} | rule)


def catalog(source: str, tables: dict[str, tuple[str, dict[str, str]]]) -> dict[str, TableRecord]:
    return {
        key: TableRecord(source, parse_path_key(key), location, properties, native_id=f"{source}{number}")
        for number, (key, (location, properties)) in enumerate(tables.items())
    }


def settle(world: Mirrors, rounds: int = 4) -> None:
    for _ in range(rounds):
        if not world.round():
            return
    raise AssertionError(f"still changing after {rounds} rounds")


POLICIES = st.fixed_dictionaries(
    {
        "on_conflict": st.sampled_from(["report", "adopt_if_same_location"]),
        "on_missing": st.sampled_from(["report", "recreate"]),
        "transitive": st.booleans(),
        "namespace": st.sampled_from([None, "flat", "{namespace}_copy"]),
    }
)


@given(TABLES, POLICIES, st.booleans())
def test_one_mirror_is_settled_by_one_round(origin: dict[str, Any], policy: dict[str, Any], folds: bool) -> None:
    world = Mirrors({"a": catalog("a", origin), "b": {}}, [mirror("m", "a", "b", FOLDED if folds else ANY, **policy)])
    world.round()
    assert world.round() == []


@given(TABLES, TABLES, POLICIES, POLICIES)
def test_two_way_mirrors_come_to_rest(
    a_tables: dict[str, Any], b_tables: dict[str, Any], forward: dict[str, Any], backward: dict[str, Any]
) -> None:
    contexts = [mirror("ab", "a", "b", **forward), mirror("ba", "b", "a", **backward)]
    world = Mirrors({"a": catalog("a", a_tables), "b": catalog("b", b_tables)}, contexts)
    before = {name: dict(tables) for name, tables in world.catalogs.items()}
    settle(world)
    for name, tables in before.items():
        for key, record in tables.items():
            assert world.catalogs[name][key].canonical == record.canonical


@given(TABLES, TABLES, TABLES, POLICIES)
def test_a_ring_of_mirrors_comes_to_rest(
    a_tables: dict[str, Any], b_tables: dict[str, Any], c_tables: dict[str, Any], policy: dict[str, Any]
) -> None:
    contexts = [mirror("ab", "a", "b", **policy), mirror("bc", "b", "c", **policy), mirror("ca", "c", "a", **policy)]
    world = Mirrors({"a": catalog("a", a_tables), "b": catalog("b", b_tables), "c": catalog("c", c_tables)}, contexts)
    settle(world, rounds=6)


class TestExchange:
    """The same by example, so that a failure can be read."""

    def test_two_catalogs_end_with_each_others_tables_and_plan_nothing_more(self) -> None:
        one, two = {"s$a": ("s3://x/1", {})}, {"s$b": ("s3://x/2", {})}
        world = Mirrors({"a": catalog("a", one), "b": catalog("b", two)}, [mirror("ab", "a", "b"), mirror("ba", "b", "a")])
        assert {change.action for change in world.round()} == {Action.DECLARE_TABLE}
        assert world.round() == []
        assert set(world.catalogs["a"]) == set(world.catalogs["b"]) == {"s$a", "s$b"}

    @pytest.mark.parametrize("transitive", [False, True])
    def test_a_ring_forwards_only_as_configured_and_never_back(self, transitive: bool) -> None:
        world = Mirrors(
            {"a": catalog("a", {"s$a": ("s3://x/1", {})}), "b": {}, "c": {}},
            [mirror(name, name[0], name[1], transitive=transitive) for name in ("ab", "bc", "ca")],
        )
        while world.round():
            pass
        assert set(world.catalogs["b"]) == {"s$a"}
        assert set(world.catalogs["c"]) == ({"s$a"} if transitive else set())
        assert find_bound_marker(world.catalogs["a"]["s$a"]) is None
        if transitive:
            mark = find_bound_marker(world.catalogs["c"]["s$a"])
            assert mark is not None
            assert mark.origin == "a$s$a"

    def test_a_change_at_the_origin_is_followed_and_comes_to_rest(self) -> None:
        world = Mirrors(
            {"a": catalog("a", {"s$a": ("s3://x/1", {"p": "1", "q": "1"})}), "b": {}},
            [mirror("ab", "a", "b"), mirror("ba", "b", "a")],
        )
        world.round()
        copy = world.catalogs["b"]["s$a"]
        world.catalogs["b"]["s$a"] = replace(copy, properties={**copy.properties, "theirs": "kept"})
        for properties in ({"p": "2", "q": "1"}, {"p": "2"}, {}):
            world.catalogs["a"]["s$a"] = replace(world.catalogs["a"]["s$a"], properties=properties)
            assert [change.action for change in world.round()] == [Action.UPDATE_TABLE]
            assert world.round() == []
            plain = {k: v for k, v in world.catalogs["b"]["s$a"].properties.items() if not k.startswith("federator.")}
            assert plain == {**properties, "theirs": "kept"}

    def test_a_table_that_is_proven_gone_leaves_both_and_nothing_else_does(self) -> None:
        there, back = mirror("ab", "a", "b"), mirror("ba", "b", "a")
        one = {"s$a": ("s3://x/1", {}), "s$b": ("s3://x/2", {})}
        world = Mirrors({"a": catalog("a", one), "b": {}}, [there, back])
        world.round()
        del world.catalogs["a"]["s$a"]
        assert world.round() == []
        gone = world.round()
        assert [(change.action, change.target_path) for change in gone] == [(Action.DEREGISTER_TABLE, "s$a")]
        assert [set(tables) for tables in world.catalogs.values()] == [{"s$b"}, {"s$b"}]
        assert world.round() == []
