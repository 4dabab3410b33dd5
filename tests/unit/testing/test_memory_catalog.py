"""The memory catalog: faults, a store shared by processes, and synthetic tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from federator.connector import CatalogError, ConfigError, ServiceUnavailable, SourceSpec
from federator.model import ROOT, Coverage, Kind, Record, TableRecord, fold_digest
from federator.registry import open_catalog
from federator.testing import MemoryStore, get_memory_store
from federator.testing.contract import unique_name
from federator.testing.faults import Faults, error_of

IMPL = "federator.testing:CONNECTOR"


@pytest.fixture
def store_name() -> str:
    """The name of a store with four tables in ``sales`` and one in ``hr``."""
    name = unique_name("store")
    store = get_memory_store(name)
    for number in range(4):
        store.add_table(("sales", f"t{number}"))
    store.add_table(("hr", "people"))
    return name


@pytest.fixture
def store(store_name: str) -> MemoryStore:
    return get_memory_store(store_name)


def crawl(properties: dict[str, str]) -> tuple[list[Record], dict[str, Coverage]]:
    with open_catalog(SourceSpec("m", IMPL, properties)) as catalog:
        items = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    coverage = {item.key: item for item in items if isinstance(item, Coverage)}
    return [item for item in items if not isinstance(item, Coverage)], coverage


@pytest.mark.parametrize(("fault", "code"), [("fail:sales", 17), ("fail:sales=21", 21), ("deny:sales", 15)])
def test_a_failing_namespace_is_covered_as_failed(store_name: str, store: MemoryStore, fault: str, code: int) -> None:
    store.faults(fault)
    records, coverage = crawl({"store": store_name})
    assert (coverage["sales"].presence.code, coverage["sales"].records) == (code, 0)
    assert coverage["hr"].complete
    assert {record.path for record in records} == {("sales",), ("hr",), ("hr", "people")}


def test_a_short_listing_hands_over_half_and_fails(store_name: str) -> None:
    records, coverage = crawl({"store": store_name, "faults": "short:sales"})
    assert not coverage["sales"].complete
    assert coverage["sales"].records == 2 == sum(record.path[:-1] == ("sales",) for record in records)


def test_a_table_that_cannot_be_described_is_present(store_name: str) -> None:
    records, coverage = crawl({"store": store_name, "faults": "undescribed:sales$t1"})
    assert coverage["sales"].complete
    assert not coverage["sales"].detail.complete
    assert next(record for record in records if record.path == ("sales", "t1")).kind is Kind.UNDESCRIBED


def test_writes_are_refused_or_their_answers_lost(store_name: str, store: MemoryStore) -> None:
    with open_catalog(SourceSpec("m", IMPL, {"store": store_name})) as catalog:
        store.faults("refuse:sales$new=21; lose:sales$lost")
        with pytest.raises(CatalogError) as caught:
            catalog.declare_table(TableRecord("m", ("sales", "new"), "s3://b/new.lance"))
        assert caught.value.code == 21
        assert catalog.observe(("sales", "new")).is_absent
        with pytest.raises(ServiceUnavailable, match="lost"):
            catalog.declare_table(TableRecord("m", ("sales", "lost"), "s3://b/lost.lance"))
        assert catalog.observe(("sales", "lost")).record
        assert store.calls() == ["declare_table sales$lost"]


def test_faults_are_checked() -> None:
    for text in ("explode:sales", "fail", "fail:"):
        with pytest.raises(ConfigError, match="fail, deny, hang"):
            Faults.parse(text)
    assert Faults.parse(" deny:/ ;; fail:*=4 ").value("deny", ROOT) == ""
    assert Faults.parse("fail:*=4").value("fail", ("any", "path")) == "4"
    assert error_of(99, "what").code == 18


def test_a_file_is_shared_by_processes(tmp_path: Path) -> None:
    file = str(tmp_path / "store.json")
    MemoryStore(file).add_table(("sales", "orders"), "s3://b/orders.lance")
    code = (
        "import sys; from federator.connector import SourceSpec; from federator.registry import open_catalog\n"
        "from federator.testing import MemoryStore\n"
        f"c = open_catalog(SourceSpec('m', {IMPL!r}, {{'file': sys.argv[1]}}))\n"
        "c.deregister_table(c.describe_table(('sales', 'orders')))\n"
        "MemoryStore(sys.argv[1]).add_table(('sales', 'other'))\n"
    )
    subprocess.run([sys.executable, "-c", code, file], check=True)
    with open_catalog(SourceSpec("m", IMPL, {"file": file})) as catalog:
        assert catalog.list_tables(("sales",)) == ["other"]
    assert MemoryStore(file).calls() == ["deregister_table sales$orders"]


def test_synthetic_tables_are_the_same_in_every_run_but_for_those_asked_to_change() -> None:
    size = {"tables": "1003", "databases": "7"}
    first, second = crawl(size)[0], crawl(size)[0]
    changed, coverage = crawl({**size, "changed": "5"})
    tables = [record for record in first if isinstance(record, TableRecord)]
    assert len(tables) == 1003
    assert [record.digest for record in first] == [record.digest for record in second]
    before = {record.path: record.digest for record in first}
    assert sum(before[record.path] != record.digest for record in changed) == 5
    assert sum(each.records for each in coverage.values()) == 1003 + 7
    assert all(each.complete for each in coverage.values())
    root = [record.digest for record in changed if record.path[:-1] == ROOT]
    assert coverage[""].digest == fold_digest(root)
    with open_catalog(SourceSpec("m", IMPL, size)) as catalog:
        assert catalog.describe_table(tables[500].path) == tables[500]
        assert catalog.observe((tables[500].path[0], "table_9999999")).is_absent
        assert catalog.observe(("db_9999", "table_0000000")).is_absent
        assert catalog.list_tables(tables[500].path[:-1]) == sorted(
            t.path[1] for t in tables if t.path[0] == tables[500].path[0]
        )
