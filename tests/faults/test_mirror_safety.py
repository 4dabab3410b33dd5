"""Mirrors through whole runs: a failure is never read as a deletion, and what is not ours is never touched.

Each story is told once, run after run over one world of many tables, and then asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import update

from federator.connector import Catalog, ServiceUnavailable, StateError
from federator.index import journal, notices
from federator.index import tables as t
from federator.model import Kind, TableRecord, parse_key
from federator.model.notices import Notice
from federator.planning.marks import Mark, bound_mark
from federator.planning.plan import Plan
from federator.sync import Result, Step, deciding
from federator.testing.memory import MemoryCatalog
from tests.fixtures.spark import World, Worlds, changes, content, outcomes, refusals, wrote

HOUR = 3600.0
LOOSE: dict[str, Any] = {"max_delete_percent": 100}
AT_ONCE: dict[str, Any] = {"misses_before_delete": 1, "min_miss_interval": 0, **LOOSE}
# Where a story tells which of its changes was the last.
ONE_BY_ONE: dict[str, Any] = {"a": {}, "b": {"write_concurrency": 1}}


class Killed(BaseException):
    """The process dies here."""


def removed(world: World, target: str = "b") -> list[str]:
    return [call.partition(" ")[2] for call in wrote(world.store(target)) if call.startswith("deregister_table")]


def target(world: World, key: str) -> TableRecord:
    record = content(world.store("b"))[key]
    return TableRecord(**{**record, "path": tuple(record["path"]), "kind": Kind(record["kind"])})


@dataclass
class Story:
    """A world with what its runs came to, by a name for each."""

    world: World
    runs: dict[str, Result] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def sync(self, name: str, *mirrors: str) -> Result:
        self.runs[name] = self.world.sync(*mirrors)
        self.world.verified()
        return self.runs[name]


# One mirror's life.

FAILING = ("failing", "denied", "short", "undescribed")
TAMPERED = ("lost_mark", "made_again", "other_mark", "other_mirror", "managed_there")


@pytest.fixture(scope="module")
def life(worlds: Worlds) -> Story:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", "min_miss_interval": "1h", **LOOSE}})
    story = Story(world)
    furnish(world)
    story.sync("first")
    story.seen["declared"] = content(world.store("b"))
    story.sync("second")
    # Almost everything happens at once: faults, drops, and somebody at work in the target.
    disturb(world)
    story.seen["tampered"] = tamper(world)
    story.sync("missed once")
    story.sync("missed again at once")
    world.age(2 * HOUR)

    def reappears(step: Step) -> None:
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
        properties=Mark("one", "m", "a$unledgered$t").properties(("unledgered", "t")),
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
        made = life.seen["declared"]
        assert set(outcomes(life.runs["first"]).values()) == {"done"}
        mark = bound_mark(target(life.world, "kept$t"))
        assert mark is not None
        assert (mark.instance, mark.mirror, mark.origin) == ("one", "m", "a$kept$t")
        assert mark.op_id == life.world.ledger("m")["kept$t"]["op_id"]
        assert made["kept$t"]["location"] == "s3://a/kept/t"
        assert made["kept$t"]["properties"]["team"] == "x"

    def test_no_secret_travels(self, life: Story) -> None:
        assert "hunter2" not in str(life.seen["declared"])
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

    def test_what_became_managed_or_is_found_by_a_direct_look_is_said(self, life: Story) -> None:
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


class TestOnlyWhatIsOurs:
    @pytest.mark.parametrize("namespace", TAMPERED)
    def test_what_somebody_changed_into_their_own_is_neither_removed_nor_changed(self, life: Story, namespace: str) -> None:
        assert content(life.world.store("b"))[f"{namespace}$t"] == life.seen["tampered"][namespace]
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
    story.seen["kept by all"] = set(content(world.store("b")))
    story.seen["removed by all"] = removed(world)
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
        assert expected <= reconfigured.seen["kept by all"]
        assert reconfigured.seen["removed by all"] == []

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


# Guards.


def test_a_mass_deletion_waits_for_a_person_and_an_empty_source_empties_nothing(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", "misses_before_delete": 1, "min_miss_interval": 0}})
    a, b = world.store("a"), world.store("b")
    for number in range(12):
        a.add_table(("s", f"t{number:02}"), f"s3://a/{number}")
    world.sync()
    for number in range(6):
        a.remove(("s", f"t{number:02}"))
    held = world.sync()
    assert held.state == "held"
    assert [text.partition(":")[0] for text in held.plans[0].held] == ["max_delete_percent", "namespace_delete_percent"]
    assert (removed(world), held.outcomes) == ([], [])
    decide(world, held.plans[0], "rejected")
    assert removed_by(world, world.sync()) == []
    decide(world, held.plans[0], "approved")
    # Told once that it waits, though it was made twice, and of each decision.
    plan = f"plan {held.plans[0].digest[:12]}"
    told = [(notice.event.value, notice.subject, notice.mirror, notice.message) for notice in notices_of(world, "plan_")]
    assert told[0][:3] == ("plan_held", plan, "m")
    assert "max_delete_percent: 6 of 12 tables" in told[0][3]
    assert told[1:] == [("plan_decided", plan, "m", f"{state} by ann") for state in ("rejected", "approved")]
    approved = world.sync()
    assert approved.plans[0].digest == held.plans[0].digest
    assert removed_by(world, approved) == [f"s$t{number:02}" for number in range(6)]
    # What was just removed still counts: two more would be harmless alone.
    for number in (6, 7):
        a.remove(("s", f"t{number:02}"))
    assert "max_delete_percent: 8 of 12 tables" in world.sync().plans[0].held[0]
    world.age(25 * HOUR)
    assert removed_by(world, world.sync()) == ["s$t06", "s$t07"]
    # Even where any share may go, an origin that has nothing at all empties nothing.
    world.mirrors["m"]["max_delete_percent"] = 100
    a.remove(("s",))
    world.age(25 * HOUR)
    emptied = world.sync()
    assert (emptied.state, emptied.plans[0].held[0].partition(":")[0]) == ("held", "never_empty")
    assert len(content(b)) == 4
    world.verified()


def notices_of(world: World, begin: str) -> list[Notice]:
    """What was told of events whose names begin so, in order."""
    with world.read() as connection:
        return [kept.notice for kept in notices.waiting(connection) if kept.notice.event.value.startswith(begin)]


def test_a_run_that_loses_its_lease_tells_so_and_that_its_mirror_failed(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b"}}, sources=ONE_BY_ONE)
    for name in ("t", "u"):
        world.store("a").add_table(("s", name), f"s3://a/{name}")
    world.store("b").add_namespace(("s",))

    def lose(step: Step) -> None:
        if step.stage == "change":
            with world.federator.index.write() as connection:
                connection.execute(update(t.lease).where(t.lease.c.name == "mirror:m").values(token=99))

    world.during = lose
    result = world.sync()
    assert (result.state, list(result.errors), len(wrote(world.store("b")))) == ("partial", ["mirror m"], 1)
    lost, failed = notices_of(world, "lease_lost"), notices_of(world, "mirror_failed")
    assert [(notice.subject, notice.run_id) for notice in lost] == [("mirror m", result.run_id)]
    assert [(notice.subject, notice.mirror, notice.run_id) for notice in failed] == [("mirror m", "m", result.run_id)]
    assert failed[0].message == result.errors["mirror m"].split("\n")[0]


def decide(world: World, plan: Plan, state: deciding.Decision) -> None:
    deciding.decide(world.federator.index, plan.digest, state, actor="ann")


def removed_by(world: World, result: Result) -> list[str]:
    return sorted(path for action, path, state in world.journal(result) if (action, state) == ("deregister_table", "done"))


# Plans made before.


def test_a_saved_plan_is_carried_out_only_where_the_world_is_as_it_was(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}})
    a, b = world.store("a"), world.store("b")
    for name in ("dropped", "dropped_and_changed", "changed", "changed_there", "kept"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "1"})
    world.sync()
    for name in ("dropped", "dropped_and_changed"):
        a.remove(("s", name))
    for name in ("changed", "changed_there"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "2"})
    for name in ("new", "taken"):
        a.add_table(("s", name), f"s3://a/{name}")
    plan = world.federator.plan().plans[0]
    assert len(plan.changes) == 6
    body = plan.to_json()
    body["changes"][0]["target_path"] = "s$kept"
    with pytest.raises(StateError, match="altered"):
        world.federator.apply([(Plan.from_json(body), plan.digest)])
    b.add_table(("s", "taken"), "s3://b/theirs")
    for name in ("dropped_and_changed", "changed_there"):
        record = target(world, f"s${name}")
        properties = {**record.properties, "somebody": "was here"}
        b.add_table(record.path, record.location, properties=properties, native_id=record.native_id)
    before = content(b)
    result = world.federator.apply([(plan, plan.digest)])
    moved = {"s$taken", "s$dropped_and_changed", "s$changed_there"}
    assert outcomes(result) == {key: "skipped moved" if key in moved else "done" for key in changes(result)}
    assert {key: content(b)[key] for key in moved} == {key: before[key] for key in moved}
    again = world.federator.apply([(plan, plan.digest)])
    assert {key: state for key, state in outcomes(again).items() if key != "s$dropped"} == {
        key: "skipped moved" for key in changes(again) if key != "s$dropped"
    }
    assert removed(world) == ["s$dropped"]
    world.mirrors["m"]["exclude"] = ["z$*"]
    with pytest.raises(StateError, match="configured differently"):
        world.federator.apply([(plan, plan.digest)])
    world.verified()


def test_what_changes_between_the_look_and_the_call_is_not_touched(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}})
    a, b = world.store("a"), world.store("b")
    for name in ("dropped", "changed", "kept"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "1"})
    world.sync()
    a.remove(("s", "dropped"))
    a.add_table(("s", "changed"), "s3://a/changed", properties={"v": "2"})
    a.add_table(("s", "raced"), "s3://a/raced")
    plan = world.federator.plan().plans[0]

    def meanwhile(_: Any, row: Any, real: Any = journal.intend) -> None:
        real(_, row)
        b.add_table(parse_key(row["target_path"]), "s3://b/theirs", properties={"theirs": "yes"})

    monkeypatch.setattr(journal, "intend", meanwhile)
    result = world.federator.apply([(plan, plan.digest)])
    assert outcomes(result) == {f"s${name}": "skipped moved" for name in ("dropped", "changed", "raced")}
    for name in ("dropped", "changed", "raced"):
        assert content(b)[f"s${name}"]["properties"] == {"theirs": "yes"}
    assert world.open_intents() == []
    world.verified()


# Runs that die.


def dying(real: Callable[..., Any], key: str, *, after: bool) -> Callable[..., Any]:
    """The catalog's call, in the middle of which the process dies: before or after it was carried out."""

    def call(catalog: Catalog, record: TableRecord, *more: Any, **options: Any) -> Any:
        if record.key != key:
            return real(catalog, record, *more, **options)
        if after:
            real(catalog, record, *more, **options)
        raise Killed

    return call


def killed(world: World, run: Callable[[], Any], call: str, key: str, *, after: bool) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MemoryCatalog, call, dying(getattr(MemoryCatalog, call), key, after=after))
        with pytest.raises(Killed):
            run()
    assert world.open_intents() == [key]


def test_a_run_that_dies_is_resumed_without_a_second_call(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources=ONE_BY_ONE)
    a, b = world.store("a"), world.store("b")
    for name in ("t1", "t2", "t3"):
        a.add_table(("s", name), f"s3://a/{name}", properties={"v": "1"})

    killed(world, world.sync, "declare_table", "s$t1", after=False)
    assert (wrote(b), set(world.ledger("m"))) == ([], set())
    killed(world, world.sync, "declare_table", "s$t2", after=True)
    assert wrote(b) == ["declare_table s$t1", "declare_table s$t2"]
    assert ("declare_table", "s$t1", "failed") in world.journal()
    # Nothing but the second intent is left over, and no plan has a change that would lead to it.
    a.remove(("s", "t3"))
    settled = world.sync()
    assert (settled.state, changes(settled), refusals(settled)) == ("ok", {}, {})
    assert set(world.ledger("m")) == {"s$t1", "s$t2"}
    assert wrote(b) == ["declare_table s$t1", "declare_table s$t2"]
    world.verified()

    a.add_table(("s", "t1"), "s3://a/t1", properties={"v": "2"})
    a.remove(("s", "t2"))
    plan = world.federator.plan().plans[0]
    apply = lambda: world.federator.apply([(plan, plan.digest)])  # noqa: E731 - the same call, four times
    killed(world, apply, "deregister_table", "s$t2", after=True)
    killed(world, apply, "update_table", "s$t1", after=True)
    assert (set(content(b)), set(world.ledger("m"))) == ({"s$t1"}, {"s$t1"})
    result = world.sync()
    assert (result.state, changes(result)) == ("ok", {})
    assert wrote(b)[2:] == ["deregister_table s$t2", "update_table s$t1"]
    assert target(world, "s$t1").properties["v"] == "2"
    assert world.open_intents() == []
    world.verified()


def test_a_call_whose_record_could_not_be_written_is_found_again(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources=ONE_BY_ONE)
    b = world.store("b")
    world.store("a").add_table(("t",), "s3://a/t")
    world.store("a").add_table(("s", "t"), "s3://a/s/t")
    with monkeypatch.context() as patched:

        def settle(*_: Any, **__: Any) -> None:
            raise Killed

        patched.setattr(journal, "settle", settle)
        with pytest.raises(Killed):
            world.sync()
    assert len(world.open_intents()) == 1
    result = world.sync()
    assert result.state == "ok"
    assert sorted(wrote(b)) == sorted({*wrote(b)})
    assert changes(world.sync()) == {}
    world.verified()


def test_a_target_that_stops_answering_leaves_an_intent_that_the_next_run_settles(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources=ONE_BY_ONE)
    a, b = world.store("a"), world.store("b")
    for number in range(8):
        a.add_table(("s", f"t{number}"), f"s3://a/{number}")
    b.add_namespace(("s",))
    dead: list[str] = []
    declare, describe = MemoryCatalog.declare_table, MemoryCatalog.describe_table

    def declares(catalog: MemoryCatalog, record: TableRecord) -> TableRecord:
        made = declare(catalog, record)
        if record.key != "s$t1":
            return made
        dead.append("b")
        raise ServiceUnavailable("the answer was lost")

    def describes(catalog: MemoryCatalog, path: tuple[str, ...]) -> TableRecord:
        if catalog.source in dead:
            raise ServiceUnavailable("down")
        return describe(catalog, path)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryCatalog, "declare_table", declares)
        patched.setattr(MemoryCatalog, "describe_table", describes)
        result = world.sync()
        assert result.state == "failed"
        found = outcomes(result)
        assert (found["s$t0"], found["s$t1"], found["s$t2"]) == ("done", "unknown 17", "failed 17")
        assert found["s$t7"] == "skipped unavailable"
        assert world.open_intents() == ["s$t1"]
        assert set(world.ledger("m")) == {"s$t0"}
        # Still down: the intent stays open, and nothing more is done there.
        plan = result.plans[0]
        again = outcomes(world.federator.apply([(plan, plan.digest)]))
        assert again["s$t1"] in ("unknown 17", "skipped open_intent")
        assert world.open_intents() == ["s$t1"]
    result = world.sync()
    assert (result.state, len(world.ledger("m")), world.open_intents()) == ("ok", 8, [])
    assert [wrote(b).count(f"declare_table s$t{number}") for number in range(8)] == [1] * 8
    assert changes(world.sync()) == {}
    world.verified()


def test_a_catalog_that_keeps_no_mark_never_makes_us_owners_in_silence(worlds: Worlds) -> None:
    world = worlds(
        mirrors={"m": {"from": "a", "to": "b", **AT_ONCE}}, sources={"a": {}, "b": {"impl": "federator.testing:PLAIN"}}
    )
    b = world.store("b")
    world.store("a").add_table(("s", "t"), "s3://a/t")
    world.store("a").add_table(("s", "lost"), "s3://a/lost")
    b.add_namespace(("s",))
    b.faults("lose:s$lost")
    result = world.sync()
    assert (result.state, outcomes(result)) == ("failed", {"s$lost": "needs_adoption needs_adoption", "s$t": "done"})
    b.faults("")
    assert set(world.ledger("m")) == {"s$t"}
    result = world.sync()
    assert (changes(result), refusals(result)) == ({}, {"s$lost": "name_taken"})
    world.store("a").remove(("s",))
    b.remove(("s", "t"))
    b.add_table(("s", "t"), "s3://a/t")
    world.store("a").add_table(("other", "x"), "s3://a/x")
    result = world.sync()
    assert refusals(result)["s$t"] == "not_ours"
    assert removed(world) == []
    world.verified()


# More than one mirror.


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
        one.store("a").add_table(parse_key(key), f"s3://x/{key}", properties={"by": "one"})
    b.add_table(("s", "adopted"), "s3://x/adopted", properties={"theirs": "kept"})
    one.store("a").add_table(("s", "adopted"), "s3a://x/adopted/", properties={"by": "one"})
    for key in ("s$yours", "s$both"):
        two.store("c").add_table(parse_key(key), f"s3://x/{key}", properties={"by": "two"})
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


def test_two_mirrors_do_not_give_one_place_two_names(worlds: Worlds) -> None:
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
