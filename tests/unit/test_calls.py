"""Calls to catalogs, counted around any connector, carried as text, and added up."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from federator.connector import ServiceUnavailable, Shard, SourceSpec, TableNotFound
from federator.connector.calls import BOUNDS, BUCKETS, Counted, Counts, Meter
from federator.connector.port import Catalog
from federator.model import ROOT, Coverage, failed
from federator.pipeline.reading import Slot, read_slot, slots
from federator.registry import open_catalog
from federator.testing import memory_store

SPEC = SourceSpec("lake", "federator.testing:CONNECTOR", {"store": "counted"})


@pytest.fixture(autouse=True)
def store() -> None:
    made = memory_store("counted")
    with made.state(write=True) as state:
        for part in ("namespaces", "tables", "foreign"):
            state[part].clear()
        state["faults"] = ""
    made.add_table(("sales", "orders"))


def test_every_operation_of_the_port_is_its_own() -> None:
    """Whoever adds an operation to the port says here whether it is a call."""
    uncounted = {"default_location", "canonical_path", "lost_by_recreation", "close"}
    port = {name for name in vars(Catalog) if not name.startswith("_")} - {"source"}
    assert port - set(vars(Counted)) == set()
    meter = Meter()
    with open_catalog(SPEC, meter) as catalog:
        record = catalog.describe_table(("sales", "orders"))
        assert catalog.observe(("sales", "orders")).record == record
        assert catalog.list_tables(("sales",)) == ["orders"]
        assert catalog.list_namespaces(ROOT) == ["sales"]
        assert catalog.describe_namespace(("sales",)).path == ("sales",)
        with pytest.raises(TableNotFound):
            catalog.describe_table(("sales", "gone"))
        assert catalog.default_location(("sales", "x")).endswith("/x.lance")  # type: ignore[union-attr]
    counts = meter.take()
    assert {operation for _, operation, _ in counts.calls}.isdisjoint(uncounted)
    by_operation = {
        operation: sum(n for (_, o, _), n in counts.calls.items() if o == operation) for _, operation, _ in counts.calls
    }
    assert by_operation == {"describe_table": 2, "observe": 1, "list_tables": 1, "list_namespaces": 1, "describe_namespace": 1}
    assert counts.errors == {("lake", "describe_table", "4"): 1}


def test_a_slot_counts_its_shards_and_what_failed_in_them() -> None:
    memory_store("counted").add_namespace(("hr",))
    memory_store("counted").faults("deny:hr")
    meter = Meter()
    for slot in slots(SPEC, 2, 30.0, meter):
        list(read_slot(SPEC, slot, 30.0, meter))
    counts = meter.take()
    assert sum(n for (_, operation, _), n in counts.calls.items() if operation == "shards") == 1
    assert sum(n for (_, operation, _), n in counts.calls.items() if operation == "read") == 3
    assert counts.errors == {("lake", "read", "15"): 1}
    assert sorted((name, code) for name, _, _, code in counts.shards) == [("/", None), ("hr", "15"), ("sales", None)]


def test_a_shard_that_hangs_is_a_call_that_failed() -> None:
    memory_store("counted").faults("hang:sales=60")
    meter = Meter()
    list(read_slot(SPEC, Slot(0, (Shard((("sales",),)),)), 0.2, meter))
    counts = meter.take()
    assert counts.errors == {("lake", "read", "17"): 1}
    assert {key: n for key, n in counts.calls.items() if key[1] == "read"} == {("lake", "read", "0.25"): 1}


def test_counts_travel_and_add_up() -> None:
    meter = Meter()
    meter.count("a", "read", 0.001)
    meter.count("a", "read", 0.5, {"17": 2})
    meter.shard("sales", 1.0, 0.5, "17")
    first = meter.take()
    assert not meter.take()
    copy = Counts.from_json(first.to_json())
    assert copy == first
    copy.add(first)
    assert copy.calls == {("a", "read", "0.005"): 2, ("a", "read", "1"): 2}
    assert copy.seconds["a", "read", "1"] == pytest.approx(1.0)
    assert copy.errors == {("a", "read", "17"): 4}
    meter.put_back(first)
    assert meter.take() == first


@pytest.mark.parametrize("number", range(len(BOUNDS)))
def test_a_bound_belongs_to_its_bucket(number: int) -> None:
    meter = Meter()
    meter.count("a", "x", BOUNDS[number])
    meter.count("a", "x", BOUNDS[number] * 1.0001)
    assert set(meter.take().calls) == {("a", "x", BUCKETS[number]), ("a", "x", BUCKETS[number + 1])}


def test_threads_lose_none() -> None:
    meter = Meter()

    def work() -> None:
        for _ in range(500):
            meter.count("a", "x", 0.01)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.take().calls == {("a", "x", "0.025"): 2000}


def test_only_what_the_catalog_fails_at_is_its_error() -> None:
    class Gone(Catalog):
        source = "a"

        def read(self, shard: Shard) -> Iterator[Coverage]:
            gone = failed(1, "not there")
            yield Coverage("a", ("x",), gone, gone, found=False)
            raise ServiceUnavailable("a: away")

    Gone.__abstractmethods__ = frozenset()
    meter = Meter()
    items = Counted(Gone(), meter).read(Shard((("x",),)))  # type: ignore[abstract]
    assert len([next(items)]) == 1
    with pytest.raises(ServiceUnavailable):
        next(items)
    assert meter.take().errors == {("a", "read", "17"): 1}
