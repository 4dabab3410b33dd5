"""Moments and who did what, on both databases."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from federator.connector import InvalidInput, StateError
from federator.connector.options import MASKED
from federator.index import Index, audit_log, datasets, differences, history, journal, retention, runs
from federator.index import tables as t
from federator.index.differences import FieldChange, How, Wanted
from federator.index.leases import hold
from federator.index.moments import BeyondHorizon, Moment, last_runs, moment
from federator.model import Aliases, Record, Scopes
from tests.integration.index_support import fill, namespace, table


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


def run(index: Index, *steps: Callable[[str], object], kind: str = "sync") -> str:
    """A run that does some things and ends."""
    handle = runs.start(index, kind, actor="anna")
    for step in steps:
        step(handle.id)
    runs.finish(index, handle, "ok", summary={})
    return handle.id


def write(index: Index, run_id: str, source: str, path: str, action: str = "declare_table") -> None:
    """A write of ours, in the journal as apply leaves it."""
    row = {
        "op_id": f"op-{path}-{action}-{time.time_ns()}", "run_id": run_id, "plan": "p", "mirror": "m", "seq": 1, "action": action,
        "target_source": source, "target_path": path, "origin_path": path, "change": "{}",
    }  # fmt: skip
    with index.write() as connection:
        journal.intend(connection, row)
        journal.settle(connection, str(row["op_id"]), "done")


T = table(
    "lake",
    "s",
    "t",
    owner="anna",
    properties={"team": "eu", "aws.secret_access_key": "one"},
    schema='[{"name":"a","type":"int"}]',
)


def test_a_run_and_a_time_name_the_same_past(index: Index) -> None:
    first = run(index, lambda r: fill(index, "lake", namespace("lake", "s"), T, run=r))
    between = time.time()
    second = run(
        index,
        lambda r: fill(index, "lake", replace(T, owner="ben"), run=r),
        lambda r: fill(index, "copy", table("copy", "x"), run=r),
    )
    one, other = moment(index, first), moment(index, second[:-2])
    assert (one.revisions, other.revisions) == ({"lake": 1}, {"lake": 2, "copy": 1})
    assert last_runs(index) == (one, other)
    run(index, kind="report")
    assert last_runs(index) == (one, other)
    assert moment(index, "-1d").revisions == moment(index, "1970-01-02").revisions == {}
    assert moment(index, "now").revisions == {"lake": 2, "copy": 1}
    views = [history.table(index, ("lake", "s", "t"), at) for at in (one, other, Moment(between, {"lake": 1}))]
    assert [view.owner for view in views] == ["anna", "ben", "anna"]
    assert [node.name for node in history.walk(index, (), one)] == ["lake"]


def test_what_is_no_moment_says_what_is(index: Index) -> None:
    for text in ("yesterday", "2026-13-01", "2199-01-01", "0123", "%", "-2y", ""):
        with pytest.raises(InvalidInput) as refused:
            moment(index, text)
        assert refused.value.hint


def test_a_run_that_goes_on_is_no_moment_yet(index: Index) -> None:
    handle = runs.start(index, "sync")
    with pytest.raises(StateError, match="has not ended"):
        moment(index, handle.id)
    with pytest.raises(StateError, match="no two runs"):
        last_runs(index)


def test_each_change_names_who_did_it(index: Index) -> None:
    names = ("ours", "theirs", "both", "gone")
    before: list[Record] = [namespace("lake", "s"), T, *(table("lake", "s", name) for name in ("both", "gone"))]
    one = run(index, lambda r: fill(index, "lake", *before, run=r))

    def crawled(r: str) -> None:
        moved = replace(
            T, location="s3://lake/elsewhere", schema='[{"name":"a","type":"bigint"}]',
            properties={"team": "us", "aws.secret_access_key": "two"},
        )  # fmt: skip
        fill(index, "lake", moved, table("lake", "s", "theirs"), table("lake", "s", "both", doc="theirs"), run=r)

    def applied(r: str) -> None:
        for name in ("ours", "both"):
            write(index, r, "lake", f"s${name}", "declare_table" if name == "ours" else "update_table")
        write(index, r, "lake", "s$gone", "deregister_table")
        done = [table("lake", "s", "ours"), table("lake", "s", "both", doc="ours")]
        fill(index, "lake", *done, gone=[("s", "gone")], run=r)

    two = run(index, crawled, applied)
    page = differences.page(index, moment(index, one), moment(index, two))
    found = {seen.id.removeprefix("lake$s$"): seen for seen in page.differences}
    assert {name: (seen.how.value, seen.by.action if seen.by else None) for name, seen in found.items()} == {
        "t": ("changed", None), "theirs": ("added", None), "both": ("changed", "update_table"), "ours": ("added", "declare_table"),
        "gone": ("removed", "deregister_table"),
    }  # fmt: skip
    assert {(seen.by.mirror, seen.by.run_id, seen.by.actor) for seen in found.values() if seen.by} == {("m", two, "anna")}
    assert found["t"].fields == (
        FieldChange("location", "s3://lake/s/t.lance", "s3://lake/elsewhere"),
        FieldChange("property:aws.secret_access_key", MASKED, MASKED),
        FieldChange("property:team", "eu", "us"),
        FieldChange("column:a", "int", "bigint"),
    )
    # What the crawl of the same run saw before our write was not our doing.
    crawl = Moment(time.time(), {"lake": 2})
    seen = {d.id: d.by for d in differences.walk(index, moment(index, one), crawl, Wanted(("lake", "s", "both")))}
    assert seen == {"lake$s$both": None}
    assert set(found) == set(names) | {"t"}


def test_filters_and_pages_of_a_comparison(index: Index) -> None:
    fill(index, "a", namespace("a", "s"), *(table("a", "s", f"t{number}") for number in range(5)))
    fill(index, "b", table("b", "x"))
    fill(index, "a", table("a", "s", "t0", doc="new"), table("a", "r", "t9"), gone=[("s", "t1")])
    begin, end = Moment(0.0, {"a": 1}), Moment(1.0, {"a": 2, "b": 1})
    counts = {"added": 2, "removed": 1, "changed": 1}
    assert differences.totals(index, begin, end) == counts
    pages, after = [], None
    while True:
        page = differences.page(index, begin, end, after=after, limit=1)
        pages += [(seen.id, seen.how) for seen in page.differences]
        after = page.next
        if after is None:
            break
    assert pages == [("a$r$t9", How.ADDED), ("a$s$t0", How.CHANGED), ("a$s$t1", How.REMOVED), ("b$x", How.ADDED)]
    for how, number in counts.items():
        assert len(list(differences.walk(index, begin, end, Wanted(how=How(how))))) == number
    assert [d.id for d in differences.walk(index, begin, end, Wanted(("a", "s")))] == ["a$s$t0", "a$s$t1"]
    back = {d.id: d.how for d in differences.walk(index, end, begin)}
    assert back == {"a$r$t9": How.REMOVED, "a$s$t0": How.CHANGED, "a$s$t1": How.ADDED, "b$x": How.REMOVED}


def test_datasets_of_then(index: Index) -> None:
    twice = table("lake", "s", "t", location="s3://b/one", doc="x"), table("lake", "s", "u", location="s3://b/one")
    fill(index, "lake", *twice)
    fill(index, "copy", table("copy", "t", location="s3://b/one", doc="y"))
    fill(index, "lake", table("lake", "s", "t", location="s3://b/two"), gone=[("s", "u")])
    then = Moment(1.0, {"lake": 1, "copy": 1})
    (view,) = history.datasets(index, then).datasets
    assert (view.location, [d.id for d in view.declarations]) == ("s3://b/one", ["copy$t", "lake$s$t", "lake$s$u"])
    assert view.duplicates == ["lake$s$t", "lake$s$u"]
    assert [found.field for found in view.disagreements] == ["doc"]
    later = history.datasets(index, Moment(2.0, {"lake": 2, "copy": 1}), limit=1)
    assert [found.location for found in later.datasets] == ["s3://b/one"]
    rest = history.datasets(index, Moment(2.0, {"lake": 2, "copy": 1}), after=later.next or "")
    assert ([found.location for found in rest.datasets], rest.next) == (["s3://b/two"], None)
    assert history.datasets(index, then, declared_in="other").datasets == []


def test_what_a_policy_keeps(index: Index) -> None:
    first = run(index, lambda r: fill(index, "lake", T, run=r))
    second = run(index, lambda r: fill(index, "lake", replace(T, owner="ben"), run=r))
    third = run(index, lambda r: fill(index, "lake", replace(T, owner="carl"), run=r))
    now = time.time()
    assert retention.cutoff(index, now, keep_seconds=None, keep_runs=0) is None
    assert retention.cutoff(index, now, keep_seconds=60, keep_runs=4) is None
    began = {r["id"]: r["started_at"] for r in runs.recent(index)}
    assert retention.cutoff(index, now, keep_seconds=0, keep_runs=2) == began[second]
    assert retention.cutoff(index, now, keep_seconds=0, keep_runs=0) == now
    handle = runs.start(index, "prune")
    with hold(index, "source:lake") as lease:
        pruned = retention.prune(index, lease, "lake", began[third], handle)
        assert (pruned.horizon, pruned.records) == (2, 1)
        again = retention.prune(index, lease, "lake", began[second], handle)
        assert (again.horizon, again.records) == (2, 0)
    assert history.table(index, ("lake", "s", "t"), moment(index, second)).owner == "ben"
    with pytest.raises(BeyondHorizon, match=r"lake is kept from .*Z on \(revision 2\)"):
        history.table(index, ("lake", "s", "t"), moment(index, first))


COLUMNS = '[{"name":"id","type":"int64","nullable":true}]'


def look(index: Index, place: str, state: str, at: float, schema: str | None = None, message: str | None = None) -> None:
    """What verification found at a place, as a run saves it."""
    nothing = dict.fromkeys(("version", "rows", "fragments", "size", "indices", "format", "changed_at"))
    row = {
        "canonical": place,
        "location": place,
        "state": state,
        "checked_at": at,
        "checked_through": "lake",
        "message": message,
    }
    with index.write() as connection:
        datasets.save(connection, [{**nothing, **row, "schema": schema, "fingerprint": schema and str(hash(schema))}])


def past_rows(index: Index) -> int:
    with index.read() as connection:
        return connection.execute(select(func.count()).select_from(t.dataset_past)).scalar_one()


def test_how_a_place_had_been_found(index: Index) -> None:
    place = "s3://lake/s/t.lance"
    fill(index, "lake", namespace("lake", "s"), T, table("lake", "s", "new"))
    for at in (100.0, 200.0):
        look(index, place, "valid", at, COLUMNS)
    assert past_rows(index) == 0, "found as before: nothing is written"
    look(index, place, "missing", 300.0, message="nothing is there")
    look(index, place, "missing", 400.0, message="the same in other words")
    look(index, place, "valid", 500.0, COLUMNS.replace("int64", "int32"))
    assert past_rows(index) == 2
    expected = {50.0: None, 100.0: "valid", 299.0: "valid", 300.0: "missing", 499.0: "missing", 500.0: "valid", 900.0: "valid"}
    for at, state in expected.items():
        then = Moment(at, {"lake": 1})
        view = history.table(index, ("lake", "s", "t"), then)
        assert (view.dataset["state"] if view.dataset else None) == state
        nodes = {node.name: node.verified for node in history.children(index, ("lake", "s"), then).nodes}
        assert nodes == {"t": state, "new": None}
        known = history.dataset(index, place, Aliases(), then)
        since = None if state is None else max(began for began in (100.0, 300.0, 500.0) if began <= at)
        assert (known.state, known.since) == (state or "unverified", since)
    then = history.dataset(index, place, Aliases(), Moment(350.0, {"lake": 1}))
    assert (then.message, then.schema) == ("the same in other words", None)
    assert history.dataset(index, place, Aliases(), Moment(250.0, {"lake": 1})).schema == json.loads(COLUMNS)
    with index.read() as connection:
        assert datasets.states(connection, [place])[place]["since"] == 500.0


def test_a_comparison_shows_places_that_were_found_otherwise(index: Index) -> None:
    fill(index, "lake", namespace("lake", "s"), T, *(table("lake", "s", name) for name in ("a", "b", "c")))
    fill(index, "copy", table("copy", "a", location="s3://lake/s/a.lance"))
    for name in ("t", "a", "b"):
        look(index, f"s3://lake/s/{name}.lance", "valid", 100.0, COLUMNS)
    fill(index, "lake", table("lake", "s", "t", doc="new"))
    for name, state in (("a", "missing"), ("b", "corrupt"), ("c", "valid")):
        look(index, f"s3://lake/s/{name}.lance", state, 200.0)
    look(index, "s3://lake/s/b.lance", "valid", 300.0, COLUMNS)
    look(index, "s3://lake/s/t.lance", "valid", 300.0, COLUMNS.replace("id", "key"))
    begin, between, end = (Moment(at, {"lake": n, "copy": 1}) for at, n in ((150.0, 1), (250.0, 2), (350.0, 2)))
    lost, renamed = (
        FieldChange("state", "valid", "missing"),
        (FieldChange("column:id", "int64", None), FieldChange("column:key", None, "int64")),
    )
    assert [(seen.id, seen.kind, seen.fields, seen.at) for seen in differences.walk(index, begin, end) if seen.revision is None] == [
        ("s3://lake/s/a.lance", "dataset", (lost,), 200.0), ("s3://lake/s/t.lance", "dataset", renamed, 300.0),
    ]  # fmt: skip
    assert differences.totals(index, begin, end) == {"added": 0, "removed": 0, "changed": 3}
    assert differences.totals(index, begin, end, Wanted(how=How.ADDED)) == {"added": 0}
    back = [seen.fields for seen in differences.walk(index, between, begin) if seen.kind == "dataset"]
    assert back == [(FieldChange("state", "missing", "valid"),), (FieldChange("state", "corrupt", "valid"),)]
    pages, after = [], None
    for _ in range(3):
        page = differences.page(index, begin, end, after=after, limit=1)
        pages += [seen.id for seen in page.differences]
        after = page.next
    assert (pages, after) == (["lake$s$t", "s3://lake/s/a.lance", "s3://lake/s/t.lance"], None)
    for below, places in ((("copy",), ["a"]), (("lake", "s", "t"), ["t"]), (("other",), [])):
        wanted = Wanted(below)
        found = [seen.id for seen in differences.walk(index, begin, end, wanted) if seen.kind == "dataset"]
        assert found == [f"s3://lake/s/{name}.lance" for name in places]
    seen = differences.walk(index, begin, end, scopes=Scopes.parse(["copy"]))
    assert [(found.id, found.source) for found in seen] == [("s3://lake/s/a.lance", "copy")]


def test_old_looks_go_by_time_and_are_not_known_then(index: Index) -> None:
    place = "s3://lake/s/t.lance"
    fill(index, "lake", namespace("lake", "s"), T)
    for at, state in ((100.0, "valid"), (200.0, "missing"), (300.0, "valid")):
        look(index, place, state, at)
    run_handle = runs.start(index, "prune")
    assert retention.prune_looks(index, 250.0, run_handle) == 1
    assert retention.prune_looks(index, 150.0, run_handle) == 0
    states = {at: history.dataset(index, place, Aliases(), Moment(at, {"lake": 1})).state for at in (50.0, 150.0, 200.0, 300.0)}
    assert states == {50.0: None, 150.0: None, 200.0: "missing", 300.0: "valid"}
    with index.read() as connection:
        events = [json.loads(event) for _, event in audit_log.unsealed(connection)]
    assert [event["detail"] for event in events if event["kind"] == "history_pruned"] == [{"looks": 1, "since": 250.0}]
