"""The counts behind the metrics, on both databases."""

from __future__ import annotations

from federator.store import Index, audit_log, plans, requests, runs
from federator.store.leases import acquire_lease, is_lease_held
from federator.views import metrics
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.audit.conftest import Log


def test_counts_what_is_there(index: Index, log: Log) -> None:
    empty = metrics.read_metrics(index)
    assert (empty.sources, empty.plans, empty.queued, empty.leading, empty.sealed, empty.unanchored) == ([], [], 0, False, 0, 0)
    fill(index, "lake", namespace("lake", "s"), table("lake", "s", "a"), table("lake", "s", "b"))
    fill(index, "lake", table("lake", "s", "c"), gone=[("s", "a")])
    run = runs.insert_run(index, "crawl", actor="ann")
    body = '{"changes":[{"action":"adopt"}],"refusals":[{"reason":"moved"}],"held":[]}'
    with index.write() as connection:
        plans.save_plan(connection, digest="telemetry", mirror="m", run_id=run.id, state="ready", body=body)
        requests.queue_request(connection, "crawl", {}, actor="ann")
    log.add("x")
    found = metrics.read_metrics(index)
    (source,) = found.sources
    assert (source.name, source.state, source.tables) == ("lake", "ok", 2)
    assert source.age is not None
    assert found.plans == [metrics.PendingPlan("m", {"adopt": 1}, {"moved": 1}, held=False)]
    assert found.runs == {("crawl", "running"): 1}
    assert found.queued == 1
    assert (found.sealed, found.unsealed, found.unanchored) == (2, 0, 0)


def test_a_lease_that_was_let_go_is_not_held(index: Index) -> None:
    assert not is_lease_held(index, "scheduler")
    with acquire_lease(index, "scheduler"):
        assert is_lease_held(index, "scheduler")
        assert not is_lease_held(index, "other")
    assert not is_lease_held(index, "scheduler")


def test_pages_by_number_and_filter(index: Index, log: Log) -> None:
    log.add("a", "b", "c")
    wanted = audit_log.AuditFilter(kind="write", run="r", since=1.0)
    assert [row.subject for row in audit_log.list_recent_events(index, wanted, limit=2)] == ["c", "b"]
    assert [row.subject for row in audit_log.list_recent_events(index, wanted, before=2)] == ["a"]
    assert audit_log.list_recent_events(index, audit_log.AuditFilter(subject="z")) == []
