"""More than one mirror: both directions, rings, and two federators on one target."""

from __future__ import annotations

from federator.model import parse_path_key
from tests.fixtures.spark import World, Worlds, changes, content, outcomes, refusals, wrote
from tests.stories.mirrored import AT_ONCE


def test_mirrors_in_both_directions_and_in_a_ring_come_to_rest(worlds: Worlds) -> None:
    names = ("ab", "ba", "bc", "ca")
    world = worlds(
        mirrors={name: {"from": name[0], "to": name[1], **AT_ONCE} for name in names}, sources={"a": {}, "b": {}, "c": {}}
    )
    for name in "abc":
        world.store(name).add_table((f"from_{name}", "t"), f"s3://{name}/t")
        world.store(name).add_table(("shared", "t"), f"s3://{name}/shared")
    first = world.sync()
    assert first.state == "ok"
    assert changes(world.sync()) == {}
    reached = {name: {key for key in content(world.store(name)) if key.startswith("from_")} for name in "abc"}
    # A copy is no origin: what c got from b did not come from a.
    assert reached == {"a": {"from_a$t", "from_b$t", "from_c$t"}, "b": {"from_a$t", "from_b$t"}, "c": {"from_b$t", "from_c$t"}}
    for name in "abc":
        there = content(world.store(name))
        assert there["shared$t"]["location"] == f"s3://{name}/shared"
        own = there[f"from_{name}$t"]["properties"]
        assert not [key for key in own if key.startswith("federator.")]
    assert not [call for name in "abc" for call in wrote(world.store(name)) if not call.startswith("declare_table")]
    world.verified()


def test_two_federators_on_one_target_leave_each_other_alone(worlds: Worlds) -> None:
    one = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE, "on_conflict": "adopt_if_same_location"}})
    two = World(one.directory, mirrors={"m": {**one.mirrors["m"], "from": "c"}}, sources={"b": {}, "c": {}}, instance="two")
    b = one.store("b")
    for key in ("s$mine", "s$both"):
        one.store("a").add_table(parse_path_key(key), f"s3://x/{key}", properties={"by": "one"})
    b.add_table(("s", "adopted"), "s3://x/adopted", properties={"theirs": "kept"})
    one.store("a").add_table(("s", "adopted"), "s3a://x/adopted/", properties={"by": "one"})
    for key in ("s$yours", "s$both"):
        two.store("c").add_table(parse_path_key(key), f"s3://x/{key}", properties={"by": "two"})
    # Tables that stay, so that neither origin loses more than half of its tables at once (``half_gone``).
    for number in range(3):
        one.store("a").add_table(("one", f"stays{number}"), f"s3://x/one/{number}")
        two.store("c").add_table(("two", f"stays{number}"), f"s3://x/two/{number}")
    stay = {f"{owner}$stays{number}" for owner in ("one", "two") for number in range(3)}
    first = one.sync()
    assert changes(first)["s$adopted"] == "adopt"
    adopted = content(b)["s$adopted"]
    assert (adopted["location"], adopted["properties"]["theirs"], adopted["properties"]["by"]) == (
        "s3://x/adopted",
        "kept",
        "one",
    )
    second = two.sync()
    declared = {key: "declare_table" for key in ("s$yours", *sorted(stay)) if not key.startswith("one")}
    assert (changes(second), refusals(second)) == (declared | {"two": "create_namespace"}, {"s$both": "not_ours"})
    before = content(b)
    one.store("a").remove(("s", "both"))
    one.store("a").remove(("s", "adopted"))
    assert set(changes(one.sync()).values()) == {"deregister_table"}
    two.sync()
    assert content(b)["s$yours"] == before["s$yours"]
    assert content(b)["s$mine"] == before["s$mine"]
    assert content(b)["s$both"]["properties"]["federator.instance"] == "two"
    two.store("c").remove(("s",))
    two.store("c").add_table(("z", "t"), "s3://x/z")
    two.sync()
    assert set(content(b)) == {"s$mine", "z$t", *stay}
    for world in (one, two):
        world.verified()
    two.close()


def test_two_mirrors_do_not_give_one_location_two_names(worlds: Worlds) -> None:
    world = worlds(
        mirrors={"ac": {"from": "a", "to": "c", **AT_ONCE}, "bc": {"from": "b", "to": "c", **AT_ONCE}},
        sources={"a": {}, "b": {}, "c": {}},
    )
    world.store("a").add_table(("from_a", "t"), "s3://x/t")
    world.store("b").add_table(("from_b", "t"), "s3://x/t/")
    result = world.sync()
    found = outcomes(result)
    assert {found["from_a$t"], found["from_b$t"]} == {"done", "skipped location_declared"}
    assert len(content(world.store("c"))) == 1
    world.verified()
