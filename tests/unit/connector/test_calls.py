"""Catalog calls: counted for every connector, serialised as text, and summed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from federator.connector import ServiceUnavailable, Shard, SourceSpec, TableNotFound, Unsupported
from federator.connector.call_metrics import BUCKET_BOUNDS_SECONDS, BUCKET_LABELS, CallCounts, CallMeter
from federator.connector.opened_catalog import OpenedCatalog
from federator.connector.port import Catalog
from federator.model import ROOT, Coverage, failed_evidence
from federator.pipeline.shard_reader import CrawlTask, plan_crawl_tasks, read_crawl_task
from federator.registry import crawl_concurrency, get_connector, open_catalog
from federator.testing import get_memory_store

SPEC = SourceSpec("lake", "federator.testing:CONNECTOR", {"store": "counted"})


@pytest.fixture(autouse=True)
def store() -> None:
    memory = get_memory_store("counted")
    with memory.locked_state(write=True) as state:
        for part in ("namespaces", "tables", "foreign"):
            state[part].clear()
        state["faults"] = ""
    memory.add_table(("sales", "orders"))


def test_every_operation_of_the_port_is_its_own() -> None:
    """A new operation of the port is added here, with whether it is a call."""
    uncounted = {
        "default_location",
        "canonical_path",
        "describe_recreate_loss",
        "find_declaration_obstacle",
        "json_schema",
        "close",
    }
    port = {name for name in vars(Catalog) if not name.startswith("_")} - {"source", "thread_safe"}
    # It is a call of describe_namespace, which counts.
    assert port - set(vars(OpenedCatalog)) == {"find_namespace"}
    meter = CallMeter()
    with open_catalog(SPEC, meter) as catalog:
        record = catalog.describe_table(("sales", "orders"))
        assert catalog.observe(("sales", "orders")).record == record
        assert catalog.list_tables(("sales",)) == ["orders"]
        assert catalog.list_namespaces(ROOT) == ["sales"]
        assert catalog.describe_namespace(("sales",)).path == ("sales",)
        with pytest.raises(TableNotFound):
            catalog.describe_table(("sales", "gone"))
        assert catalog.default_location(("sales", "x")).endswith("/x.lance")  # type: ignore[union-attr]
        assert catalog.json_schema(record) is None
        assert catalog.list_foreign_objects(("sales",)) == []
        with pytest.raises(Unsupported):
            catalog.is_only_declared(record)
    counts = meter.drain()
    assert {operation for _, operation, _ in counts.calls}.isdisjoint(uncounted)
    by_operation = {
        operation: sum(n for (_, o, _), n in counts.calls.items() if o == operation) for _, operation, _ in counts.calls
    }
    assert by_operation == {
        "describe_table": 2, "observe": 1, "list_tables": 1, "list_namespaces": 1, "describe_namespace": 1,
        "list_foreign_objects": 1, "is_only_declared": 1,
    }  # fmt: skip
    assert counts.errors == {("lake", "describe_table", "4"): 1, ("lake", "is_only_declared", "0"): 1}


def test_a_crawl_task_counts_its_shards_and_their_failures() -> None:
    get_memory_store("counted").add_namespace(("hr",))
    get_memory_store("counted").faults("deny:hr")
    meter = CallMeter()
    for slot in plan_crawl_tasks(SPEC, 2, 30.0, meter):
        list(read_crawl_task(SPEC, slot, 30.0, meter))
    counts = meter.drain()
    assert sum(n for (_, operation, _), n in counts.calls.items() if operation == "shards") == 1
    assert sum(n for (_, operation, _), n in counts.calls.items() if operation == "read") == 3
    assert counts.errors == {("lake", "read", "15"): 1}
    assert sorted((name, code) for name, _, _, code in counts.shards) == [("/", None), ("hr", "15"), ("sales", None)]


def test_a_shard_that_hangs_is_a_call_that_failed() -> None:
    get_memory_store("counted").faults("hang:sales=60")
    meter = CallMeter()
    list(read_crawl_task(SPEC, CrawlTask(0, (Shard((("sales",),)),)), 0.2, meter))
    counts = meter.drain()
    assert counts.errors == {("lake", "read", "17"): 1}
    assert {key: n for key, n in counts.calls.items() if key[1] == "read"} == {("lake", "read", "0.25"): 1}


def test_counts_travel_and_add_up() -> None:
    meter = CallMeter()
    meter.record_call("a", "read", 0.001)
    meter.record_call("a", "read", 0.5, {"17": 2})
    meter.record_shard("sales", 1.0, 0.5, "17")
    first = meter.drain()
    assert not meter.drain()
    copy = CallCounts.from_json(first.to_json())
    assert copy == first
    copy.merge(first)
    assert copy.calls == {("a", "read", "0.005"): 2, ("a", "read", "1"): 2}
    assert copy.seconds["a", "read", "1"] == pytest.approx(1.0)
    assert copy.errors == {("a", "read", "17"): 4}
    meter.restore(first)
    assert meter.drain() == first


@pytest.mark.parametrize("number", range(len(BUCKET_BOUNDS_SECONDS)))
def test_a_bound_belongs_to_its_bucket(number: int) -> None:
    meter = CallMeter()
    meter.record_call("a", "x", BUCKET_BOUNDS_SECONDS[number])
    meter.record_call("a", "x", BUCKET_BOUNDS_SECONDS[number] * 1.0001)
    assert set(meter.drain().calls) == {("a", "x", BUCKET_LABELS[number]), ("a", "x", BUCKET_LABELS[number + 1])}


def test_threads_lose_none() -> None:
    meter = CallMeter()

    def work() -> None:
        for _ in range(500):
            meter.record_call("a", "x", 0.01)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.drain().calls == {("a", "x", "0.025"): 2000}


def test_only_what_the_catalog_fails_at_is_its_error() -> None:
    class Gone(Catalog):
        source = "a"

        def read_shard(self, shard: Shard) -> Iterator[Coverage]:
            gone = failed_evidence(1, "not there")
            yield Coverage("a", ("x",), gone, gone, found=False)
            raise ServiceUnavailable("a: away")

    Gone.__abstractmethods__ = frozenset()
    meter = CallMeter()
    items = OpenedCatalog(Gone(), meter).read_shard(Shard((("x",),)))  # type: ignore[abstract]
    assert len([next(items)]) == 1
    with pytest.raises(ServiceUnavailable):
        next(items)
    assert meter.drain().errors == {("a", "read", "17"): 1}


@pytest.mark.parametrize(
    ("properties", "tasks", "limits"),
    [
        ({}, 2, (None, None)),
        ({"limit.requests-per-second": "20"}, 2, (10.0, None)),
        ({"limit.concurrent-requests": "5"}, 2, (None, 2)),
        ({"limit.concurrent-requests": "1", "limit.requests-per-second": "20"}, 1, (20.0, 1)),
    ],
)
def test_the_tasks_of_a_crawl_have_the_limits_of_a_source_together(
    properties: dict[str, str], tasks: int, limits: tuple[float | None, int | None]
) -> None:
    spec = SourceSpec("lake", SPEC.impl, properties)
    assert crawl_concurrency(spec) == tasks
    shared = get_connector(spec.impl).parse_settings(properties).share_limits(tasks).limits
    assert (shared.requests_per_second, shared.concurrency) == limits
