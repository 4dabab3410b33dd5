"""Orphans declared in catalogs through the journal, and the export of the index. Needs no Spark."""

from __future__ import annotations

import time
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from federator.connector import ConfigError
from federator.lance.inspection import Inspection
from federator.model import LocationAliases
from federator.pipeline.verify import InspectorProcess
from federator.runtime.child_process import ChildProcess
from federator.service import Federator
from federator.settings import parse_settings
from federator.stages.declare import DeclareSpec
from federator.stages.export import export_index
from federator.store import drift_detection, roots
from federator.store.leases import TABLE_PREFIX, list_lapsed_leases
from federator.store.roots import ScanResult
from federator.testing import MemoryStore
from federator.views import drift
from tests.fixtures.index_content import fill, table


@pytest.fixture
def federator(tmp_path: Path) -> Federator:
    """Two catalogs in memory, one root, and two orphans below it, of which one is torn."""
    for name in ("one", "two"):
        MemoryStore(str(tmp_path / f"{name}.json")).add_namespace(("sales",))
    for name in ("orders", "torn"):
        lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "lake" / "sales" / f"{name}.lance"))
    for manifest in (tmp_path / "lake" / "sales" / "torn.lance" / "_versions").iterdir():
        manifest.unlink()
    sources = {name: {"impl": "federator.testing:CONNECTOR", "file": str(tmp_path / f"{name}.json")} for name in ("one", "two")}
    raw = {"instance": {"id": "i"}, "sources": sources, "roots": {"lake": {"location": f"{tmp_path}/lake"}}}
    made = Federator.open(parse_settings(raw, tmp_path / "federator.toml"))
    for name in sources:
        fill(made.index, name, table(name, "sales", "old"))
    location = f"file://{tmp_path}/lake/sales/orders.lance"
    with made.index.write() as connection:
        roots.save_scan(
            connection, ScanResult("lake", location, "complete", None, time.time(), 2, 1, 0), [location], [], LocationAliases()
        )
    drift_detection.refresh_drift(made.index, {}, ["lake"])
    return made


def test_an_orphan_is_declared_and_is_none_any_more(federator: Federator, tmp_path: Path) -> None:
    location = f"{tmp_path}/lake/sales/orders.lance"
    (orphan,) = drift.list_drift(federator.index, kind="orphan")
    assert (orphan.subject, orphan.other) == (f"file://{location}", "lake")
    planned = federator.declare(
        DeclareSpec([location, f"{tmp_path}/lake/sales/torn.lance"], ["one", "two"], "sales${1}_{table}")
    )
    assert [
        (plan.mirror, [c.target_path for c in plan.changes], [r.reason.value for r in plan.refusals]) for plan in planned.plans
    ] == [(f"declare:{name}", ["sales$sales_orders"], ["not_valid"]) for name in ("one", "two")]
    result = federator.apply([(plan, plan.digest) for plan in planned.plans])
    assert (result.state, [outcome.state.value for outcome in result.outcomes]) == ("ok", ["done", "done"])
    taken = list_lapsed_leases(federator.index, TABLE_PREFIX)
    assert taken == [], "a catalog that refuses the second of two declarations needs no lock of the table"
    with MemoryStore(str(tmp_path / "one.json")).locked_state() as state:
        made = next(value for key, value in state["tables"].items() if "sales_orders" in key)
    assert "federator." not in str(made), "a person's declaration carries no mark"
    assert drift.list_drift(federator.index, kind="orphan") == []
    again = federator.declare(DeclareSpec([location], ["one"], "sales$other"))
    assert [refusal.reason.value for refusal in again.plans[0].refusals] == ["location_declared"]
    federator.index.close()


def test_one_process_inspects_all_locations_but_those_of_a_silent_store(
    federator: Federator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ChildProcess] = []
    begin = ChildProcess.__init__

    def count(process: ChildProcess, module: str) -> None:
        started.append(process)
        begin(process, module)

    monkeypatch.setattr(ChildProcess, "__init__", count)
    federator.declare(DeclareSpec([f"{tmp_path}/lake/sales/{name}.lance" for name in ("orders", "torn", "none")], ["one"]))
    assert len(started) == 1
    # Its store has not responded to the requests before.
    monkeypatch.setattr(InspectorProcess, "is_silent", lambda process, location: "orders" in location)
    locations = [f"{tmp_path}/lake/sales/{name}.lance" for name in ("orders", "torn")]
    planned = federator.declare(DeclareSpec(locations, ["one"]))
    details = [refusal.detail for refusal in planned.plans[0].refusals]
    assert [("did not respond" in detail) for detail in details] == [True, False], details
    federator.index.close()


def test_a_stopped_run_inspects_no_further_location(
    federator: Federator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspected: list[str] = []
    honest = InspectorProcess.inspect

    def inspect(process: InspectorProcess, location: str) -> Inspection:
        inspected.append(location)
        federator.stop.set()
        return honest(process, location)

    monkeypatch.setattr(InspectorProcess, "inspect", inspect)
    spec = DeclareSpec([f"{tmp_path}/lake/sales/{name}.lance" for name in ("orders", "torn")], ["one", "two"])
    assert (federator.declare(spec).state, len(inspected)) == ("interrupted", 1)
    federator.index.close()


def test_an_export_is_the_same_in_both_forms_and_replaced_whole(federator: Federator, tmp_path: Path) -> None:
    for _ in range(2):
        for written in export_index(federator.index, tmp_path / "out"):
            stored = pq.read_table(tmp_path / "out" / written.parquet)
            assert lance.dataset(str(tmp_path / "out" / written.lance)).to_table().equals(stored)
            assert stored.num_rows == written.rows
    found = pq.read_table(tmp_path / "out" / "datasets.parquet").to_pylist()
    assert [(row["location"], row["sources"], row["state"]) for row in found] == [
        ("s3://lake/sales/old.lance", ["one", "two"], "unverified")
    ]
    link = tmp_path / "link"
    link.symlink_to("out")
    (tmp_path / "out" / "datasets.parquet").unlink()
    export_index(federator.index, link)
    assert link.is_symlink()
    assert (tmp_path / "out" / "datasets.parquet").is_file(), "the export behind a link is replaced, not the link"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".draft")] == []
    with pytest.raises(ConfigError, match="not an export"):
        export_index(federator.index, tmp_path / "lake")
    federator.index.close()
