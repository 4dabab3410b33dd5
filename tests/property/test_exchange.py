"""Catalogs that mirror each other while users change them: a fixed point, no dead declarations, no foreign changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federator.connector import Capabilities
from federator.model import TableRecord, canonical_location, parse_path_key
from federator.planning.changes import Action, Change
from federator.planning.mapping import MirrorContext, relocate, relocate_to_origin
from federator.planning.ownership import find_bound_marker, strip_comment_marker, strip_marker_properties
from federator.planning.reasons import Reason
from federator.planning.rule import LocationReplacement, MirrorRule
from tests.fixtures.planning import ANY, Mirrors, context

COMMENTS = replace(ANY, keeps_properties=False)
FIXED = replace(ANY, can_alter=False)
FOLDED = replace(ANY, names=replace(ANY.names, folds_case=True))
# Two misses an interval apart for each of the hops, the drop of a namespace, and one round that finds nothing.
ROUNDS = 24

SHAPES = {
    "pair": (("a", "b"), ("b", "a")),
    "ring": (("a", "b"), ("b", "c"), ("c", "a")),
    "star": (("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")),
    "feed": (("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")),
    "mesh": (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "c"), ("c", "a")),
}
NAMES = ("s$t", "s$u", "z$t", "S$T")
EDITS = st.one_of(
    st.tuples(st.just("make"), st.sampled_from("abcx"), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("drop"), st.sampled_from("abcx"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("rename"), st.sampled_from("abcx"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("move"), st.sampled_from("abcx"), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("tag"), st.sampled_from("abcx"), st.sampled_from(NAMES), st.integers(1, 2)),
    st.tuples(st.just("say"), st.sampled_from("abcx"), st.sampled_from(NAMES), st.integers(1, 2)),
    st.tuples(st.just("round"), st.just("a"), st.just("s$t"), st.just(0)),
)  # fmt: skip
POLICIES = st.fixed_dictionaries(
    {
        "on_conflict": st.sampled_from(["report", "adopt_if_same_location"]),
        "on_missing": st.sampled_from(["report", "recreate"]),
        "on_drift": st.sampled_from(["fix", "report"]),
        "update_by_recreate": st.booleans(),
        "doc": st.booleans(),
        "transitive": st.booleans(),
    }
)
TARGETS = st.sampled_from([ANY, ANY, COMMENTS, FIXED, FOLDED])


def mirror(origin: str, target: str, to: Capabilities = ANY, **rule: Any) -> MirrorContext:
    return context(to, **{"name": origin + target, "origin": origin, "target": target} | rule)


def world(shape: str, policy: dict[str, Any], to: Capabilities = ANY) -> Mirrors:
    edges = SHAPES[shape]
    sources = {name for edge in edges for name in edge}
    return Mirrors({name: {} for name in sorted(sources)}, [mirror(*edge, to, **policy) for edge in edges])


def edit(world: Mirrors, what: str, source: str, key: str, number: int) -> None:
    """What a person does. Tables of mirrors are changed like any other, but never created at a location that is taken."""
    if what == "round":
        world.round()
        return
    tables = world.catalogs.get(source)
    if tables is None:
        return
    record = tables.get(key)
    if what == "make":
        taken = {other.canonical for catalog in world.catalogs.values() for other in catalog.values()}
        if record is None and f"s3://x/{number}" not in taken:
            path = parse_path_key(key)
            native = f"p{next(world.numbers)}"
            tables[key] = TableRecord(source, path, f"s3://x/{number}", {"p": str(number)}, native_id=native)
            world.__post_init__()
    elif record is None:
        return
    elif what == "drop":
        del tables[key]
    elif what == "tag":
        tables[key] = replace(record, properties={**record.properties, "q": str(number)})
    elif what == "say":
        tables[key] = replace(record, doc=f"said {number}") if find_bound_marker(record) is None else record
    elif find_bound_marker(record) is not None:
        return
    elif what == "move":
        tables[key] = replace(record, location=f"s3://x/{number}")
    elif NAMES[number] not in tables:
        tables[NAMES[number]] = replace(tables.pop(key), path=parse_path_key(NAMES[number]))
        world.__post_init__()


def rest(world: Mirrors) -> None:
    """Rounds until one plans nothing and no miss is being counted."""
    planned: list[Change] = []
    for _ in range(ROUNDS):
        planned = world.round()
        if not planned and not any(refusal.reason is Reason.MISSES for refusal in world.refusals):
            assert world.round() == []
            return
    raise AssertionError(
        f"still planning after {ROUNDS} rounds: {[(c.action, c.target_source, c.target_path) for c in planned]}"
    )


@settings(max_examples=150)
@given(st.sampled_from(sorted(SHAPES)), POLICIES, TARGETS, st.lists(EDITS, max_size=10))
def test_whatever_people_do_mirrors_come_to_rest_and_keep_nothing_dead(
    shape: str, policy: dict[str, Any], to: Capabilities, edits: list[tuple[str, str, str, int]]
) -> None:
    mirrors = world(shape, policy, to)
    for step in edits:
        edit(mirrors, *step)
    rest(mirrors)
    for source, tables in mirrors.catalogs.items():
        for key, record in tables.items():
            mark = find_bound_marker(record)
            if mark is None:
                continue
            first, _, path = mark.origin.partition("$")
            assert path in mirrors.catalogs[first], f"{source}${key} outlived {mark.origin}"
            assert source not in mark.visited_sources, f"{source}${key} came back to {source}"


@settings(max_examples=150)
@given(st.sampled_from(sorted(SHAPES)), POLICIES, TARGETS, st.lists(EDITS, max_size=8))
def test_what_no_mirror_made_is_never_touched(
    shape: str, policy: dict[str, Any], to: Capabilities, edits: list[tuple[str, str, str, int]]
) -> None:
    mirrors = world(shape, {**policy, "on_conflict": "report"}, to)
    for step in edits:
        edit(mirrors, *step)
    before = {
        (source, key): record
        for source, tables in mirrors.catalogs.items()
        for key, record in tables.items()
        if find_bound_marker(record) is None
        and not any((True, key) in mirrors.ledgers.get(c.rule.name, {}) for c in mirrors.contexts)
    }
    rest(mirrors)
    assert {(source, key): mirrors.catalogs[source].get(key) for source, key in before} == before


@given(st.sampled_from(sorted(SHAPES)), POLICIES)
def test_the_same_table_everywhere_from_the_start_is_nobodys_echo(shape: str, policy: dict[str, Any]) -> None:
    mirrors = world(shape, policy)
    for source in mirrors.catalogs:
        mirrors.catalogs[source]["s$t"] = TableRecord(source, ("s", "t"), "s3://x/1", {"of": source}, native_id=source)
    mirrors.__post_init__()
    rest(mirrors)
    for tables in mirrors.catalogs.values():
        assert set(tables) == {"s$t"}
        assert tables["s$t"].canonical == "s3://x/1"


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("to", [ANY, COMMENTS], ids=["properties", "comments"])
def test_a_forwarded_table_reaches_everyone_and_leaves_everyone(shape: str, to: Capabilities) -> None:
    mirrors = world(shape, {"transitive": True}, to)
    first = "x" if shape == "feed" else "a"
    edit(mirrors, "make", first, "s$t", 1)
    rest(mirrors)
    assert all(set(tables) == {"s$t"} for tables in mirrors.catalogs.values())
    edit(mirrors, "drop", first, "s$t", 0)
    rest(mirrors)
    assert all(tables == {} for tables in mirrors.catalogs.values())


def test_two_instances_on_one_target_leave_each_others_alone() -> None:
    own_mirror, other_mirror = mirror("a", "c"), replace(mirror("b", "c"), instance="you")
    mirrors = Mirrors({"a": {}, "b": {}, "c": {}}, [own_mirror, other_mirror])
    for source, number in (("a", "1"), ("b", "2")):
        mirrors.catalogs[source]["s$t"] = TableRecord(source, ("s", "t"), f"s3://x/{number}", native_id=source)
    mirrors.catalogs["b"]["s$u"] = TableRecord("b", ("s", "u"), "s3://x/3", native_id="u")
    rest(mirrors)
    marks = {key: find_bound_marker(record) for key, record in mirrors.catalogs["c"].items()}
    assert {key: mark and mark.instance for key, mark in marks.items()} == {"s$t": "me", "s$u": "you"}
    assert [refusal.reason for refusal in mirrors.refusals] == [Reason.NOT_OURS]
    del mirrors.catalogs["a"]["s$t"]
    rest(mirrors)
    assert {key: find_bound_marker(record).instance for key, record in mirrors.catalogs["c"].items()} == {
        "s$t": "you",
        "s$u": "you",
    }  # type: ignore[union-attr]


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_many_mirrors_into_one_target_the_best_source_gets_the_name(first: str) -> None:
    policy = {"on_conflict": "source_priority", "source_priority": ("a", "b")}
    contexts = [replace(mirror(s, "c", **policy), competing_mirrors={f"{o}c": o}) for s, o in (("a", "b"), ("b", "a"))]
    mirrors = Mirrors({"a": {}, "b": {}, "c": {}}, contexts)
    tables = {s: TableRecord(s, ("s", "t"), f"s3://x/{s}", {"from": s, f"of_{s}": "1"}, native_id=s) for s in "ab"}
    mirrors.catalogs[first]["s$t"] = tables[first]
    rest(mirrors)
    assert mirrors.catalogs["c"]["s$t"].location == f"s3://x/{first}"
    for source in "ab":
        mirrors.catalogs[source]["s$t"] = tables[source]
    rest(mirrors)
    assert strip_marker_properties(mirrors.catalogs["c"]["s$t"].properties) == {"from": "a", "of_a": "1"}
    assert [refusal.reason for refusal in mirrors.refusals] == [Reason.OUTRANKED]
    del mirrors.catalogs["a"]["s$t"]
    rest(mirrors)
    assert mirrors.catalogs["c"]["s$t"].location == "s3://x/b"


class TestRenames:
    def build_renamed(self, to: Capabilities = ANY, **policy: Any) -> Mirrors:
        mirrors = Mirrors({"a": {}, "b": {}}, [mirror("a", "b", to, **policy)])
        mirrors.catalogs["a"]["s$old"] = TableRecord("a", ("s", "old"), "s3://x/1", {"team": "x", "gone": "1"}, native_id="1")
        rest(mirrors)
        copy = mirrors.catalogs["b"]["s$old"]
        mirrors.catalogs["b"]["s$old"] = replace(copy, properties={**copy.properties, "theirs": "kept"})
        rest(mirrors)
        moved = replace(mirrors.catalogs["a"].pop("s$old"), path=("s", "new"), properties={"team": "y"})
        mirrors.catalogs["a"]["s$new"] = moved
        return mirrors

    def test_the_new_name_waits_for_the_old_one_and_both_go_together(self) -> None:
        mirrors = self.build_renamed()
        assert mirrors.round() == []
        assert [(r.reason, r.target_path) for r in mirrors.refusals] == [
            (Reason.RENAME_PENDING, "s$new"), (Reason.MISSES, "s$old"),
        ]  # fmt: skip
        pair = mirrors.round()
        assert [(c.action, c.target_path, c.pair) for c in pair] == [
            (Action.DEREGISTER_TABLE, "s$old", "s$old -> s$new"), (Action.DECLARE_TABLE, "s$new", "s$old -> s$new"),
        ]  # fmt: skip
        assert set(mirrors.catalogs["b"]) == {"s$new"}
        assert strip_marker_properties(mirrors.catalogs["b"]["s$new"].properties) == {"team": "y", "theirs": "kept"}
        rest(mirrors)
        assert set(mirrors.catalogs["b"]) == {"s$new"}

    def test_a_rename_that_a_dead_run_left_unfinished_is_completed_as_planned(self) -> None:
        mirrors = self.build_renamed()
        mirrors.round()
        mirrors.crawl()
        old, new = mirrors.plan(mirrors.contexts[0]).changes
        assert mirrors.apply(mirrors.contexts[0], old)
        mirrors.pending_renames = [Change.from_json(old.to_json())]
        (again,) = mirrors.round()
        assert (again.pair, again.after) == (new.pair, new.after)
        assert strip_marker_properties(mirrors.catalogs["b"]["s$new"].properties)["theirs"] == "kept"

    def test_every_table_of_a_catalog_may_be_renamed_without_a_persons_word(self) -> None:
        mirrors = Mirrors({"a": {}, "b": {}}, [mirror("a", "b")])
        for n in range(9):
            mirrors.catalogs["a"][f"s$t{n}"] = TableRecord("a", ("s", f"t{n}"), f"s3://x/{n}", native_id=str(n))
        rest(mirrors)
        mirrors.catalogs["a"] = {
            f"s$u{n}": replace(r, path=("s", f"u{n}")) for n, r in enumerate(mirrors.catalogs["a"].values())
        }
        mirrors.round()
        changes = mirrors.round()
        assert len(changes) == 18
        assert mirrors.plans[0].held == ()
        assert set(mirrors.catalogs["b"]) == {f"s$u{n}" for n in range(9)}

    def test_a_comment_of_the_targets_own_goes_along_with_a_mark_in_the_comment(self) -> None:
        mirrors = self.build_renamed(COMMENTS)
        copy = mirrors.catalogs["b"]["s$old"]
        mark = find_bound_marker(copy)
        assert mark is not None
        mirrors.catalogs["b"]["s$old"] = replace(copy, doc=f"our own words\n{copy.doc}")
        rest(mirrors)
        new = mirrors.catalogs["b"]["s$new"]
        assert strip_comment_marker(new.doc) == "our own words"
        assert find_bound_marker(new) == replace(mark, origin="a$s$new", op_id=find_bound_marker(new).op_id)  # type: ignore[union-attr]


def test_a_namespace_that_we_made_goes_when_nothing_is_in_it_and_a_foreign_one_stays() -> None:
    mirrors = Mirrors({"a": {}, "b": {}}, [mirror("a", "b")])
    mirrors.catalogs["b"]["kept$x"] = TableRecord("b", ("kept", "x"), "s3://x/x", native_id="x")
    for key in ("deep$s$t", "kept$t"):
        mirrors.catalogs["a"][key] = TableRecord("a", parse_path_key(key), f"s3://x/{key}", native_id=key)
    mirrors.__post_init__()
    rest(mirrors)
    assert set(mirrors.namespaces["b"]) == {"kept", "deep", "deep$s"}
    mirrors.catalogs["a"].clear()
    mirrors.catalogs["b"].pop("kept$x")
    rest(mirrors)
    assert mirrors.catalogs["b"] == {}
    assert set(mirrors.namespaces["b"]) == {"kept"}
    assert mirrors.ledgers["ab"] == {}


# Places that one catalog writes differently than the other.

PREFIXES = st.lists(
    st.sampled_from(["s3a://", "s3://lake", "s3://lake/eu", "abfss://c@h/x", "/data"]), unique=True, min_size=1, max_size=3
)
PATHS = st.sampled_from(["", "/", "/t.lance", "/a/b", "//x", "2/t"])


@given(PREFIXES, st.data())
def test_a_location_finds_its_way_back(prefixes: list[str], data: st.DataObject) -> None:
    moves = tuple(
        LocationReplacement(prefix, f"gs://copy{n}{'/' if prefix.endswith('/') else ''}") for n, prefix in enumerate(prefixes)
    )
    rule = MirrorRule(name="m", origin="a", target="b", location=moves)
    location = data.draw(st.sampled_from(prefixes)) + data.draw(PATHS)
    there = relocate(rule, location)
    back = MirrorRule(name="n", origin="b", target="a", location=tuple(LocationReplacement(m.target, m.origin) for m in moves))
    assert relocate_to_origin(rule, there) == location
    assert relocate(back, there) == location


@given(st.booleans())
def test_replicas_that_mirror_each_other_come_to_rest(both: bool) -> None:
    there, back = (
        (LocationReplacement("s3://eu", "s3://us"), LocationReplacement("s3a://", "s3://")),
        (LocationReplacement("s3://us", "s3://eu"),),
    )
    contexts = [mirror("a", "b", location=there), mirror("b", "a", location=back)]
    mirrors = Mirrors({"a": {}, "b": {}}, contexts)
    mirrors.catalogs["a"]["s$t"] = TableRecord("a", ("s", "t"), "s3://eu/t", native_id="1")
    mirrors.catalogs["a"]["s$u"] = TableRecord("a", ("s", "u"), "s3a://eu2/u", native_id="2")
    if both:
        mirrors.catalogs["b"]["s$v"] = TableRecord("b", ("s", "v"), "s3://us/v", native_id="3")
        mirrors.__post_init__()
    rest(mirrors)
    locations = {key: record.location for key, record in mirrors.catalogs["b"].items()}
    assert locations == {"s$t": "s3://us/t", "s$u": "s3://eu2/u"} | ({"s$v": "s3://us/v"} if both else {})
    assert canonical_location(mirrors.catalogs["a"]["s$t"].location or "") == "s3://eu/t"
