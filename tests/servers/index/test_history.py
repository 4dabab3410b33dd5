"""Snapshots and attributions, on both databases."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from federator.connector import InvalidInput, StateError
from federator.connector.options import MASKED
from federator.model import LocationAliases, Record, Scopes
from federator.model.differences import DifferenceKind
from federator.store import Index, audit_log, journal, retention, runs, stores, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.store.snapshots import HistoryExpired, Snapshot, latest_run_snapshots, resolve_snapshot
from federator.store.stores import SourceStore
from federator.views import diff, history
from federator.views.datasets import DatasetFilter
from federator.views.diff import DifferenceFilter, FieldChange
from tests.fixtures.index_content import fill, intent, namespace, table
from tests.fixtures.index_reads import iter_differences, iter_tree_at


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


def run(index: Index, *steps: Callable[[str], object], kind: str = "sync") -> str:
    """A run that does some things and ends."""
    handle = runs.insert_run(index, kind, actor="anna")
    for step in steps:
        step(handle.id)
    runs.finish_run(index, handle, "ok", summary={})
    return handle.id


def write(index: Index, run_id: str, source: str, path: str, action: str = "declare_table") -> None:
    """A write of ours, in the journal as apply leaves it."""
    op_id = f"op-{path}-{action}-{time.time_ns()}"
    with index.write() as connection:
        journal.insert_intent(connection, intent(op_id, action, run_id=run_id, seq=1, target_source=source, target_path=path))
        journal.record_outcome(connection, op_id, "done")


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
    one, other = resolve_snapshot(index, first), resolve_snapshot(index, second[:-2])
    assert (one.revisions, other.revisions) == ({"lake": 1}, {"lake": 2, "copy": 1})
    assert latest_run_snapshots(index) == (one, other)
    run(index, kind="report")
    assert latest_run_snapshots(index) == (one, other)
    assert resolve_snapshot(index, "-1d").revisions == resolve_snapshot(index, "1970-01-02").revisions == {}
    assert resolve_snapshot(index, "now").revisions == {"lake": 2, "copy": 1}
    views = [history.get_table_at(index, ("lake", "s", "t"), at) for at in (one, other, Snapshot(between, {"lake": 1}))]
    assert [view.owner for view in views] == ["anna", "ben", "anna"]
    assert [node.name for node in iter_tree_at(index, (), one)] == ["lake"]


def test_what_is_no_moment_says_what_is(index: Index) -> None:
    for text in ("yesterday", "2026-13-01", "2199-01-01", "0123", "%", "-2y", ""):
        with pytest.raises(InvalidInput) as refused:
            resolve_snapshot(index, text)
        assert refused.value.hint


def test_a_run_that_goes_on_is_no_moment_yet(index: Index) -> None:
    handle = runs.insert_run(index, "sync")
    with pytest.raises(StateError, match="has not finished yet"):
        resolve_snapshot(index, handle.id)
    with pytest.raises(StateError, match="fewer than two runs"):
        latest_run_snapshots(index)


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
    page = diff.list_differences(index, resolve_snapshot(index, one), resolve_snapshot(index, two))
    found = {difference.id.removeprefix("lake$s$"): difference for difference in page.differences}
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
    newest = diff.list_newest_differences(index, resolve_snapshot(index, one), resolve_snapshot(index, two))
    assert [seen.id for seen in newest] == [f"lake$s${name}" for name in ("both", "gone", "ours", "t", "theirs")]
    assert {seen.id: seen for seen in newest} == {difference.id: difference for difference in page.differences}
    two_newest = diff.list_newest_differences(index, resolve_snapshot(index, one), resolve_snapshot(index, two), limit=2)
    assert two_newest == newest[:2]
    # What the crawl of the same run saw before our write was not our doing.
    crawl = Snapshot(time.time(), {"lake": 2})
    seen = {
        d.id: d.by
        for d in iter_differences(index, resolve_snapshot(index, one), crawl, DifferenceFilter(("lake", "s", "both")))
    }
    assert seen == {"lake$s$both": None}
    assert set(found) == set(names) | {"t"}


def test_filters_and_pages_of_a_comparison(index: Index) -> None:
    fill(index, "a", namespace("a", "s"), *(table("a", "s", f"t{number}") for number in range(5)))
    fill(index, "b", table("b", "x"))
    fill(index, "a", table("a", "s", "t0", doc="new"), table("a", "r", "t9"), gone=[("s", "t1")])
    begin, end = Snapshot(0.0, {"a": 1}), Snapshot(1.0, {"a": 2, "b": 1})
    counts = {"added": 2, "removed": 1, "changed": 1}
    assert diff.count_differences(index, begin, end) == counts
    pages, after = [], None
    while True:
        page = diff.list_differences(index, begin, end, after=after, limit=1)
        pages += [(difference.id, difference.how) for difference in page.differences]
        after = page.next
        if after is None:
            break
    assert pages == [
        ("a$r$t9", DifferenceKind.ADDED),
        ("a$s$t0", DifferenceKind.CHANGED),
        ("a$s$t1", DifferenceKind.REMOVED),
        ("b$x", DifferenceKind.ADDED),
    ]
    for how, number in counts.items():
        assert len(list(iter_differences(index, begin, end, DifferenceFilter(kind=DifferenceKind(how))))) == number
    assert [d.id for d in iter_differences(index, begin, end, DifferenceFilter(("a", "s")))] == ["a$s$t0", "a$s$t1"]
    back = {d.id: d.how for d in iter_differences(index, end, begin)}
    assert back == {
        "a$r$t9": DifferenceKind.REMOVED,
        "a$s$t0": DifferenceKind.CHANGED,
        "a$s$t1": DifferenceKind.ADDED,
        "b$x": DifferenceKind.REMOVED,
    }


def test_datasets_of_then(index: Index) -> None:
    twice = table("lake", "s", "t", location="s3://b/one", doc="x"), table("lake", "s", "u", location="s3://b/one")
    fill(index, "lake", *twice)
    fill(index, "copy", table("copy", "t", location="s3://b/one", doc="y"))
    fill(index, "lake", table("lake", "s", "t", location="s3://b/two"), gone=[("s", "u")])
    then = Snapshot(1.0, {"lake": 1, "copy": 1})
    (view,) = history.list_datasets_at(index, then).datasets
    assert (view.location, [d.id for d in view.declarations]) == ("s3://b/one", ["copy$t", "lake$s$t", "lake$s$u"])
    assert view.duplicates == ["lake$s$t", "lake$s$u"]
    assert [disagreement.field for disagreement in view.disagreements] == ["doc"]
    later = history.list_datasets_at(index, Snapshot(2.0, {"lake": 2, "copy": 1}), limit=1)
    assert [dataset.location for dataset in later.datasets] == ["s3://b/one"]
    rest = history.list_datasets_at(index, Snapshot(2.0, {"lake": 2, "copy": 1}), after=later.next or "")
    assert ([dataset.location for dataset in rest.datasets], rest.next) == (["s3://b/two"], None)
    assert history.list_datasets_at(index, then, DatasetFilter(declared_in="other")).datasets == []


def test_what_a_policy_keeps(index: Index) -> None:
    first = run(index, lambda r: fill(index, "lake", T, run=r))
    second = run(index, lambda r: fill(index, "lake", replace(T, owner="ben"), run=r))
    third = run(index, lambda r: fill(index, "lake", replace(T, owner="carl"), run=r))
    now = time.time()
    assert retention.retention_cutoff(index, now, keep_seconds=None, keep_runs=0) is None
    assert retention.retention_cutoff(index, now, keep_seconds=60, keep_runs=4) is None
    began = {r.id: r.started_at for r in runs.list_recent_runs(index)}
    assert retention.retention_cutoff(index, now, keep_seconds=0, keep_runs=2) == began[second]
    assert retention.retention_cutoff(index, now, keep_seconds=0, keep_runs=0) == now
    handle = runs.insert_run(index, "prune")
    with acquire_lease(index, "source:lake") as lease:
        pruned = retention.prune_source(index, lease, "lake", began[third], handle)
        assert (pruned.horizon, pruned.records) == (2, 1)
        again = retention.prune_source(index, lease, "lake", began[second], handle)
        assert (again.horizon, again.records) == (2, 0)
    assert history.get_table_at(index, ("lake", "s", "t"), resolve_snapshot(index, second)).owner == "ben"
    with pytest.raises(HistoryExpired, match=r"lake is kept from .*Z on \(revision 2\)"):
        history.get_table_at(index, ("lake", "s", "t"), resolve_snapshot(index, first))


COLUMNS = '[{"name":"id","type":"int64","nullable":true}]'


def verify(
    index: Index,
    location: str,
    state: str,
    at: float,
    schema: str | None = None,
    message: str | None = None,
    *,
    access: str = "",
) -> None:
    """What verification found at a place, as a run saves it."""
    nothing = dict.fromkeys(("version", "rows", "fragments", "size", "indices", "format", "changed_at"))
    row = {
        "canonical": location,
        "location": location,
        "state": state,
        "checked_at": at,
        "checked_through": "lake",
        "access": access,
        "message": message,
    }
    with index.write() as connection:
        verifications.save_verifications(
            connection, [{**nothing, **row, "schema": schema, "fingerprint": schema and str(hash(schema))}]
        )


def past_rows(index: Index) -> int:
    with index.read() as connection:
        return connection.execute(select(func.count()).select_from(t.dataset_past)).scalar_one()


def test_past_states_of_a_location(index: Index) -> None:
    location = "s3://lake/s/t.lance"
    fill(index, "lake", namespace("lake", "s"), T, table("lake", "s", "new"))
    for at in (100.0, 200.0):
        verify(index, location, "valid", at, COLUMNS)
    assert past_rows(index) == 0, "found as before: nothing is written"
    verify(index, location, "missing", 300.0, message="nothing is there")
    verify(index, location, "missing", 400.0, message="the same in other words")
    verify(index, location, "valid", 500.0, COLUMNS.replace("int64", "int32"))
    assert past_rows(index) == 2
    expected = {50.0: None, 100.0: "valid", 299.0: "valid", 300.0: "missing", 499.0: "missing", 500.0: "valid", 900.0: "valid"}
    for at, state in expected.items():
        then = Snapshot(at, {"lake": 1})
        view = history.get_table_at(index, ("lake", "s", "t"), then)
        assert (view.dataset.state if view.dataset else None) == state
        nodes = {node.name: node.verified for node in history.list_children_at(index, ("lake", "s"), then).nodes}
        assert nodes == {"t": state, "new": None}
        known = history.get_dataset_at(index, location, LocationAliases(), then)
        since = None if state is None else max(began for began in (100.0, 300.0, 500.0) if began <= at)
        assert (known.state, known.since) == (state or "unverified", since)
    dataset = history.get_dataset_at(index, location, LocationAliases(), Snapshot(350.0, {"lake": 1}))
    assert (dataset.message, dataset.schema) == ("the same in other words", None)
    assert history.get_dataset_at(index, location, LocationAliases(), Snapshot(250.0, {"lake": 1})).schema == json.loads(
        COLUMNS
    )
    with index.read() as connection:
        assert verifications.list_verifications(connection, [("lake", location)])["lake", location].since == 500.0


def test_a_comparison_shows_locations_whose_state_differs(index: Index) -> None:
    fill(index, "lake", namespace("lake", "s"), T, *(table("lake", "s", name) for name in ("a", "b", "c")))
    fill(index, "copy", table("copy", "a", location="s3://lake/s/a.lance"))
    for name in ("t", "a", "b"):
        verify(index, f"s3://lake/s/{name}.lance", "valid", 100.0, COLUMNS)
    fill(index, "lake", table("lake", "s", "t", doc="new"))
    for name, state in (("a", "missing"), ("b", "corrupt"), ("c", "valid")):
        verify(index, f"s3://lake/s/{name}.lance", state, 200.0)
    verify(index, "s3://lake/s/b.lance", "valid", 300.0, COLUMNS)
    verify(index, "s3://lake/s/t.lance", "valid", 300.0, COLUMNS.replace("id", "key"))
    begin, between, end = (Snapshot(at, {"lake": n, "copy": 1}) for at, n in ((150.0, 1), (250.0, 2), (350.0, 2)))
    lost, renamed = (
        FieldChange("state", "valid", "missing"),
        (FieldChange("column:id", "int64", None), FieldChange("column:key", None, "int64")),
    )
    differences = [difference for difference in iter_differences(index, begin, end) if difference.revision is None]
    assert [(difference.id, difference.kind, difference.fields, difference.at) for difference in differences] == [
        ("s3://lake/s/a.lance", "dataset", (lost,), 200.0), ("s3://lake/s/t.lance", "dataset", renamed, 300.0),
    ]  # fmt: skip
    assert diff.count_differences(index, begin, end) == {"added": 0, "removed": 0, "changed": 3}
    assert diff.count_differences(index, begin, end, DifferenceFilter(kind=DifferenceKind.ADDED)) == {"added": 0}
    back = [difference.fields for difference in iter_differences(index, between, begin) if difference.kind == "dataset"]
    assert back == [(FieldChange("state", "missing", "valid"),), (FieldChange("state", "corrupt", "valid"),)]
    pages, after = [], None
    for _ in range(3):
        page = diff.list_differences(index, begin, end, after=after, limit=1)
        pages += [difference.id for difference in page.differences]
        after = page.next
    assert (pages, after) == (["lake$s$t", "s3://lake/s/a.lance", "s3://lake/s/t.lance"], None)
    for below, changed in ((("copy",), ["a"]), (("lake", "s", "t"), ["t"]), (("other",), [])):
        wanted = DifferenceFilter(below)
        found = [difference.id for difference in iter_differences(index, begin, end, wanted) if difference.kind == "dataset"]
        assert found == [f"s3://lake/s/{name}.lance" for name in changed]
    seen = iter_differences(index, begin, end, scopes=Scopes.parse(["copy"]))
    assert [(found.id, found.source) for found in seen] == [("s3://lake/s/a.lance", "copy")]


def test_old_looks_go_by_time_and_are_not_known_then(index: Index) -> None:
    location = "s3://lake/s/t.lance"
    fill(index, "lake", namespace("lake", "s"), T)
    for at, state in ((100.0, "valid"), (200.0, "missing"), (300.0, "valid")):
        verify(index, location, state, at)
    run_handle = runs.insert_run(index, "prune")
    assert retention.prune_verification_history(index, 250.0, run_handle) == 1
    assert retention.prune_verification_history(index, 150.0, run_handle) == 0
    states = {
        at: history.get_dataset_at(index, location, LocationAliases(), Snapshot(at, {"lake": 1})).state
        for at in (50.0, 150.0, 200.0, 300.0)
    }
    assert states == {50.0: None, 150.0: None, 200.0: "missing", 300.0: "valid"}
    with index.read() as connection:
        events = [json.loads(event) for _, event in audit_log.list_unsealed(connection)]
    assert [event["detail"] for event in events if event["kind"] == "history_pruned"] == [{"looks": 1, "since": 250.0}]


def test_states_that_no_source_shows_go_and_all_others_stay(index: Index) -> None:
    """Of a location that nobody declares any more, and of an access that no source has any more."""
    first, second = SourceStore("", "a" * 32), SourceStore("", "b" * 32)
    with index.write() as connection:
        stores.save_stores(connection, {"lake": first})
    old = table("lake", "s", "dropped", location="s3://lake/s/dropped.lance")
    fill(index, "lake", namespace("lake", "s"), T, old, table("lake", "s", "path", location="/data/p.lance"))
    kept, dropped, path = "s3://lake/s/t.lance", "s3://lake/s/dropped.lance", "file:///data/p.lance"
    for canonical in (kept, dropped):
        verify(index, canonical, "valid", 100.0, access="a" * 32)
    verify(index, path, "valid", 100.0)
    fill(index, "lake", gone=[("s", "dropped")])
    handle = runs.insert_run(index, "prune")

    def remaining() -> set[tuple[str, str]]:
        query = select(t.dataset.c.canonical, func.substr(t.dataset.c.access, 1, 1))
        with index.read() as connection:
            return set(connection.execute(query).tuples())

    # A kept row, closed by the second crawl, still declares it: an earlier snapshot shows its state.
    assert retention.prune_unused_verifications(index, time.time(), handle) == 0
    with acquire_lease(index, "source:lake") as lease:
        retention.prune_source(index, lease, "lake", time.time(), handle)
    # It is younger than what is kept.
    assert retention.prune_unused_verifications(index, 50.0, handle) == 0
    assert retention.prune_unused_verifications(index, time.time(), handle) == 1
    assert remaining() == {(kept, "a"), (path, "")}
    # New storage options: the facts of the old ones are shown nowhere.
    with index.write() as connection:
        stores.save_stores(connection, {"lake": second})
    verify(index, kept, "denied", 200.0, access="b" * 32)
    assert retention.prune_unused_verifications(index, time.time(), handle) == 1
    assert remaining() == {(kept, "b"), (path, "")}
    with index.read() as connection:
        events = [json.loads(event) for _, event in audit_log.list_unsealed(connection)]
    assert [event["detail"]["unused"] for event in events if "unused" in event.get("detail", {})] == [1, 1]
