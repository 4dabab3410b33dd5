"""Renames, filters and ownership markers through whole runs: the catalogs end as the planner decided."""

from __future__ import annotations

from typing import Any

from federator.planning.ownership import find_bound_marker, strip_marker_properties
from federator.planning.reasons import Reason
from tests.fixtures.spark import Worlds, changes, content, refusals

HOUR = 3600.0


def test_a_renamed_namespace_goes_over_in_pairs_and_is_no_deletion(worlds: Worlds) -> None:
    """Ten of ten tables get a new name: the guards have nothing to say, and what the target had added goes along."""
    world = worlds(mirrors={"m": {"from": "a", "to": "b", "min_miss_interval": "1h"}})
    a, b = world.store("a"), world.store("b")
    for n in range(10):
        a.add_table(("old", f"t{n}"), f"s3://a/{n}", properties={"team": "x"})
    world.sync()
    world.verified()
    record = world.tables("b")["old$t0"]
    b.add_table(record.path, record.location, properties={**record.properties, "theirs": "kept"}, native_id=record.native_id)
    for n in range(10):
        a.remove(("old", f"t{n}"))
        a.add_table(("new", f"t{n}"), f"s3://a/{n}", properties={"team": "y"})

    first = world.sync()
    assert changes(first) == {}
    assert {key: reason for key, reason in refusals(first).items() if key.startswith("new")} == {
        f"new$t{n}": Reason.RENAME_PENDING for n in range(10)
    }

    world.age(2 * HOUR)
    second = world.sync()
    assert second.plans[0].held == ()
    pairs = [(change.action.value, change.pair) for change in second.plans[0].changes if change.pair]
    assert pairs == [(action, f"old$t{n} -> new$t{n}") for n in range(10) for action in ("deregister_table", "declare_table")]
    there = content(b)
    assert set(there) == {f"new$t{n}" for n in range(10)}
    assert strip_marker_properties(world.tables("b")["new$t0"].properties) == {"team": "y", "theirs": "kept"}
    assert set(world.ledger("m")) >= set(there)

    # What the guard counts over its window has not been touched: an honest deletion is still free.
    a.remove(("new", "t9"))
    world.sync()
    world.age(2 * HOUR)
    third = world.sync()
    assert changes(third)["new$t9"] == "deregister_table"
    assert third.plans[0].held == ()


def test_a_filter_chooses_and_never_takes_away(worlds: Worlds) -> None:
    where: dict[str, Any] = {"owner": ["etl*"], "properties": {"pii": "!yes"}}
    world = worlds(
        mirrors={
            "m": {"from": "a", "to": "b", "where": where, "namespace": "copy", "prefix": "p_", "deny_properties": ["tmp*"]}
        }
    )
    a = world.store("a")
    for name, owner, properties in (
        ("t", "etl-eu", {"team": "x", "tmp1": "1"}),
        ("u", "ann", {}),
        ("v", "etl", {"pii": "yes"}),
    ):
        a.add_table(("s", name), f"s3://a/{name}", owner=owner, properties=properties, doc="orders")
    world.sync()
    made = world.tables("b")
    assert set(made) == {"copy$p_t"}
    assert (strip_marker_properties(made["copy$p_t"].properties), made["copy$p_t"].doc) == ({"team": "x"}, "orders")
    mark = find_bound_marker(made["copy$p_t"])
    assert mark is not None
    assert mark.origin == "a$s$t"

    a.add_table(("s", "t"), "s3://a/t", owner="bob", doc="changed", native_id=world.tables("a")["s$t"].native_id)
    for _ in range(2):
        world.age(2 * HOUR)
        result = world.sync()
        assert (changes(result), refusals(result)) == ({}, {"copy$p_t": Reason.UNSELECTED})
    assert world.tables("b") == made
