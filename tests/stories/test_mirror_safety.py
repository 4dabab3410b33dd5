"""Mirrors through whole runs: a failure is never read as a deletion, and an object that is not owned is never touched.

Each story is told once, run after run over one world of many tables, and then asked about.
"""

from __future__ import annotations

from typing import Any

import pytest

from federator.model import Kind
from federator.planning.ownership import OwnershipMarker, find_bound_marker
from federator.stages.result import ProgressEvent
from tests.fixtures.spark import World, Worlds, changes, content, outcomes, refusals, wrote
from tests.stories.mirrored import AT_ONCE, HOUR, LOOSE, Story, removed, target

# One mirror's life.

FAILING = ("failing", "denied", "short", "undescribed")
TAMPERED = ("lost_mark", "made_again", "other_mark", "other_mirror", "managed_there")


@pytest.fixture(scope="module")
def life(worlds: Worlds) -> Story:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", "min_miss_interval": "1h", **LOOSE}})
    story = Story(world)
    furnish(world)
    story.sync("first")
    story.observations["declared"] = content(world.store("b"))
    story.sync("second")
    # Almost everything happens at once: faults, drops, and somebody at work in the target.
    disturb(world)
    story.observations["tampered"] = tamper(world)
    story.sync("missed once")
    story.sync("missed again at once")
    world.age(2 * HOUR)

    def reappears(step: ProgressEvent) -> None:
        if (step.stage, step.state) == ("apply", None):
            world.store("a").add_table(("reappearing", "t"), "s3://a/reappearing/t", properties={"team": "x"})

    world.during = reappears
    story.sync("missed after an hour")
    world.during = lambda _: None
    for turn in range(2):
        world.age(2 * HOUR)
        story.sync(f"later {turn}")
    return story


def furnish(world: World) -> None:
    a, b = world.store("a"), world.store("b")
    for namespace in (
        *FAILING,
        *TAMPERED,
        "dropped",
        "kept",
        "moving",
        "managed",
        "no_lance",
        "reappearing",
        "removed_there",
        "gone_both",
    ):
        for name in ("t", "u"):
            a.add_table((namespace, name), f"s3://a/{namespace}/{name}", properties={"team": "x", "storage.token": "hunter2"})
    for name, location in (("same", "s3://a/same/t"), ("elsewhere", "s3://b/elsewhere")):
        a.add_table((name, "t"), f"s3://a/{name}/t")
        b.add_table((name, "t"), location)
    a.add_table(("unledgered", "t"), "s3://a/unledgered/t")
    b.add_table(
        ("unledgered", "t"),
        "s3://a/unledgered/t",
        properties=OwnershipMarker("one", "m", "a$unledgered$t").to_properties(("unledgered", "t")),
    )
    a.add_table(("second", "name"), "s3://a/second")
    b.add_table(("first", "name"), "s3a://a/second/")


def disturb(world: World) -> None:
    a, b = world.store("a"), world.store("b")
    for namespace in (*FAILING, *TAMPERED, "dropped", "reappearing", "gone_both", "no_lance"):
        a.remove((namespace, "t"))
    for namespace in ("failing", "denied", "short"):
        a.remove((namespace, "u"))
    a.add_table(("undescribed", "t"), "s3://a/undescribed/t")
    a.faults("fail:failing; deny:denied; short:short; undescribed:undescribed$t")
    a.add_table(("moving", "t"), "s3://a/moved/t", properties={"team": "y"})
    a.add_table(("managed", "t"), kind=Kind.MANAGED_TABLE)
    a.add_foreign(("no_lance", "t"), "a Parquet table")
    b.remove(("removed_there", "t"))
    b.remove(("gone_both", "t"))


def tamper(world: World) -> dict[str, Any]:
    """Somebody makes tables of ours their own; returns what they are then."""
    b = world.store("b")
    for namespace in TAMPERED:
        record = target(world, f"{namespace}$t")
        fields: dict[str, Any] = {"properties": dict(record.properties), "native_id": record.native_id}
        if namespace == "lost_mark":
            fields["properties"] = {"team": "x"}
        elif namespace == "made_again":
            del fields["native_id"]
        elif namespace == "other_mark":
            fields["properties"] |= {"federator.instance": "two"}
        elif namespace == "other_mirror":
            fields["properties"] |= {"federator.mirror": "n"}
        else:
            fields["kind"] = Kind.MANAGED_TABLE
        b.add_table(record.path, record.location, **fields)
    return {namespace: content(b)[f"{namespace}$t"] for namespace in TAMPERED}


class TestAMirrorsFirstRuns:
    def test_everything_is_declared_where_it_is_free(self, life: Story) -> None:
        made = life.observations["declared"]
        assert set(outcomes(life.runs["first"]).values()) == {"done"}
        mark = find_bound_marker(target(life.world, "kept$t"))
        assert mark is not None
        assert (mark.instance, mark.mirror, mark.origin) == ("one", "m", "a$kept$t")
        assert mark.op_id == life.world.ledger("m")["kept$t"]["op_id"]
        assert made["kept$t"]["location"] == "s3://a/kept/t"
        assert made["kept$t"]["properties"]["team"] == "x"

    def test_no_secret_travels(self, life: Story) -> None:
        assert "hunter2" not in str(life.observations["declared"])
        assert "hunter2" not in str([plan.to_json() for plan in life.runs["first"].plans])

    def test_what_is_in_the_way_is_left_as_it_was(self, life: Story) -> None:
        found = refusals(life.runs["first"])
        assert {key: found.get(key) for key in ("same$t", "elsewhere$t", "unledgered$t", "second$name")} == {
            "same$t": "name_taken", "elsewhere$t": "name_taken", "unledgered$t": "unledgered", "second$name": "location_declared",
        }  # fmt: skip
        touched = {call.partition(" ")[2] for call in wrote(life.world.store("b"))}
        assert not touched & {"same$t", "elsewhere$t", "unledgered$t", "second$name", "first$name"}

    def test_the_second_run_plans_nothing(self, life: Story) -> None:
        assert changes(life.runs["second"]) == {}
        assert life.runs["second"].state == "ok"

    def test_the_ledger_knows_every_declaration_and_nothing_else(self, life: Story) -> None:
        first = {key for key, state in outcomes(life.runs["first"]).items() if "$" in key and state == "done"}
        gone = {"dropped$t", "gone_both$t"}
        assert set(life.world.ledger("m")) == first - gone


class TestAFailureIsNoDeletion:
    @pytest.mark.parametrize("namespace", FAILING)
    def test_a_namespace_that_cannot_be_read_loses_nothing_however_often(self, life: Story, namespace: str) -> None:
        assert not [key for key in removed(life.world) if key.startswith(f"{namespace}$")]
        assert {f"{namespace}$t", f"{namespace}$u"} <= set(content(life.world.store("b")))
        assert not [key for key in life.world.misses("a") if key.startswith(f"{namespace}$")]

    def test_the_runs_say_that_something_failed(self, life: Story) -> None:
        assert {life.runs[name].state for name in ("missed once", "missed after an hour", "later 0")} == {"partial"}

    @pytest.mark.parametrize("key", ["managed$t", "no_lance$t"])
    def test_what_is_no_lance_table_any_more_is_not_gone(self, life: Story, key: str) -> None:
        assert key not in removed(life.world)
        assert key in content(life.world.store("b"))

    def test_what_became_managed_or_is_found_by_an_observation_is_reported(self, life: Story) -> None:
        assert refusals(life.runs["later 1"])["managed$t"] == "managed_table"
        assert refusals(life.runs["later 1"])["no_lance$t"] == "still_there"
        assert "no_lance$t" not in changes(life.runs["later 1"])


class TestADeletion:
    def test_the_first_miss_only_counts(self, life: Story) -> None:
        assert refusals(life.runs["missed once"])["dropped$t"] == "misses"

    def test_a_second_miss_too_soon_only_counts(self, life: Story) -> None:
        assert refusals(life.runs["missed again at once"])["dropped$t"] == "misses"

    def test_after_the_interval_and_a_direct_look_it_is_deregistered_once(self, life: Story) -> None:
        assert outcomes(life.runs["missed after an hour"])["dropped$t"] == "done"
        assert removed(life.world).count("dropped$t") == 1
        assert "dropped$t" not in content(life.world.store("b"))
        assert "dropped$t" not in life.world.tables("b")

    def test_nothing_else_was_ever_removed(self, life: Story) -> None:
        assert removed(life.world) == ["dropped$t"]

    def test_what_reappears_before_the_call_is_spared_and_settles(self, life: Story) -> None:
        assert outcomes(life.runs["missed after an hour"])["reappearing$t"] == "skipped still_there"
        assert "reappearing$t" not in life.world.misses("a")
        assert "reappearing$t" not in {**changes(life.runs["later 1"]), **refusals(life.runs["later 1"])}

    def test_what_is_gone_on_both_sides_is_only_forgotten(self, life: Story) -> None:
        assert outcomes(life.runs["missed after an hour"])["gone_both$t"] == "done"
        assert "gone_both$t" not in life.world.ledger("m")


class TestOnlyWhatIsOwned:
    @pytest.mark.parametrize("namespace", TAMPERED)
    def test_what_somebody_changed_into_their_own_is_neither_removed_nor_changed(self, life: Story, namespace: str) -> None:
        assert content(life.world.store("b"))[f"{namespace}$t"] == life.observations["tampered"][namespace]
        assert refusals(life.runs["later 1"])[f"{namespace}$t"] == "not_ours"

    def test_what_somebody_removed_is_reported_and_not_made_again(self, life: Story) -> None:
        assert refusals(life.runs["later 1"])["removed_there$t"] == "missing_at_target"
        assert wrote(life.world.store("b")).count("declare_table removed_there$t") == 1

    def test_a_change_at_the_origin_is_followed_once(self, life: Story) -> None:
        assert outcomes(life.runs["missed once"])["moving$t"] == "done"
        there = target(life.world, "moving$t")
        assert (there.location, there.properties["team"]) == ("s3://a/moved/t", "y")
        assert wrote(life.world.store("b")).count("update_table moving$t") == 1


# A mirror whose configuration changes.


@pytest.fixture(scope="module")
def reconfigured(worlds: Worlds) -> Story:
    plain: dict[str, Any] = {"from": "a", "to": "b", **LOOSE}
    world = worlds(mirrors={"m": plain})
    story = Story(world)
    a = world.store("a")
    for namespace in ("excluded", "deselected", "remapped", "kept"):
        for name in ("t", "u"):
            a.add_table((namespace, name), f"s3://a/{namespace}/{name}")
    story.sync("first")
    world.mirrors = {
        "m": {**plain, "include": ["excluded$*", "remapped$*", "kept$*"], "exclude": ["excluded$*"], "table": "{table}_v2"}
    }
    story.sync("narrowed")
    # What is not looked for is not missed, not even where it is really gone.
    for namespace in ("excluded", "deselected", "remapped"):
        a.remove((namespace, "t"))
    for turn in range(3):
        story.sync(f"narrowed and gone {turn}")
        world.age(HOUR)
    world.mirrors = {}
    story.sync("removed")
    story.observations["kept by all"] = set(content(world.store("b")))
    story.observations["removed by all"] = removed(world)
    world.mirrors = {"m": plain}
    a.remove(("kept", "t"))
    story.sync("back")
    # One miss, and then another principal looks, or another place.
    world.sources["a"] = {"root": "s3://another/root"}
    world.age(HOUR)
    story.sync("another configuration")
    return story


class TestAChangedConfiguration:
    @pytest.mark.parametrize("run", ["narrowed", *(f"narrowed and gone {turn}" for turn in range(3)), "removed"])
    def test_it_deregisters_nothing(self, reconfigured: Story, run: str) -> None:
        assert "deregister_table" not in changes(reconfigured.runs[run]).values()

    def test_what_was_there_is_there(self, reconfigured: Story) -> None:
        expected = {
            f"{namespace}${name}" for namespace in ("excluded", "deselected", "remapped", "kept") for name in ("t", "u")
        }
        assert expected <= reconfigured.observations["kept by all"]
        assert reconfigured.observations["removed by all"] == []

    def test_each_is_called_unselected(self, reconfigured: Story) -> None:
        for run in ("narrowed", "narrowed and gone 2"):
            found = refusals(reconfigured.runs[run])
            assert {found[key] for key in ("excluded$t", "deselected$t", "remapped$t")} == {"unselected"}

    def test_a_remapped_table_gets_no_second_name(self, reconfigured: Story) -> None:
        assert refusals(reconfigured.runs["narrowed"])["kept$t_v2"] == "location_declared"

    def test_the_target_of_a_mirror_may_change_without_a_word_about_the_old_one(self, worlds: Worlds) -> None:
        world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources={"a": {}, "b": {}, "c": {}})
        world.store("a").add_table(("s", "t"), "s3://a/t")
        world.sync()
        world.mirrors["m"]["to"] = "c"
        world.store("a").add_table(("s", "u"), "s3://a/u")
        assert set(outcomes(world.sync()).values()) == {"done"}
        assert set(content(world.store("c"))) == {"s$t", "s$u"}
        assert removed(world) == []

    def test_what_is_selected_again_is_looked_for_again(self, reconfigured: Story) -> None:
        assert changes(reconfigured.runs["back"]) == {
            f"{namespace}$t": "deregister_table" for namespace in ("excluded", "deselected", "remapped")
        }

    def test_a_new_configuration_of_the_origin_forgets_its_misses(self, reconfigured: Story) -> None:
        for run in ("back", "another configuration"):
            assert refusals(reconfigured.runs[run])["kept$t"] == "misses"
        assert reconfigured.world.misses("a") == {"kept$t": 1}
        assert "kept$t" in content(reconfigured.world.store("b"))
