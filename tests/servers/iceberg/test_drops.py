"""Deregistering a companion keeps the data of its table, or is refused: drop tests, their leftovers, and misplaced companions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import lance
import pytest

from federator.connector import CatalogError, ConcurrentModification, Internal, NamespaceNotEmpty, Unsupported
from federator.connector.storage_use import StoreListing
from federator.model import Path, TableRecord
from federator_connectors._iceberg.catalog import IcebergCatalog
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Edit, Lie, Lose, Op, Send
from tests.fixtures.iceberg import IcebergServer
from tests.servers.iceberg.iceberg_support import PurgingProxy, opened, record, written

pytestmark = pytest.mark.timeout(120)

TEST = "federator_drop_test"


@pytest.fixture
def proxy(iceberg_server: IcebergServer) -> Iterator[HttpProxy]:
    """A proxy before the server, which lies as the test sets it."""
    with HttpProxy(iceberg_server.url) as proxy:
        yield proxy


@pytest.fixture
def catalog(iceberg_server: IcebergServer) -> Iterator[IcebergCatalog]:
    with opened(iceberg_server.url) as catalog:
        yield catalog


def tables(server: IcebergServer, namespace: Path) -> list[str]:
    """The names that the server lists."""
    listed: list[dict[str, Any]] = server.call("GET", f"/namespaces/{namespace[1]}/tables")["identifiers"]
    return sorted(each["name"] for each in listed)


def test_a_server_that_purges_is_found_before_data_is_lost(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    table = written(tmp_path)
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        proxy.purges = "."
        orders, empty = (
            catalog.declare_table(record((*iceberg_namespace, name), tmp_path / f"{name}.lance"))
            for name in ("orders", "empty")
        )
        for _ in range(2):
            with pytest.raises(Unsupported, match="deletes the files"):
                catalog.deregister_table(orders)
        assert lance.dataset(str(table)).count_rows() == 3
        assert catalog.observe(orders.path).record == orders
        assert proxy.dropped == [f"{TEST}?purgeRequested=false"]
        proxy.purges = ""
        catalog.deregister_table(empty)
        assert tables(iceberg_server, iceberg_namespace) == ["orders"]


def test_data_that_a_server_deletes_nevertheless_is_missed(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        proxy.purges = "/lost"
        lost, kept = (
            catalog.declare_table(record((*iceberg_namespace, name), written(tmp_path, name))) for name in ("lost", "kept")
        )
        with pytest.raises(Internal, match="deleted the data"):
            catalog.deregister_table(lost)
        with pytest.raises(Unsupported, match="deletes the files"):
            catalog.deregister_table(kept)
        assert catalog.observe(kept.path).record == kept
        assert proxy.dropped[1:] == ["lost?purgeRequested=false"]


def test_a_server_is_tested_once(iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath) -> None:
    with PurgingProxy(iceberg_server.url) as proxy:
        for name in ("first", "second"):
            with opened(proxy.url) as catalog:
                declared = catalog.declare_table(record((*iceberg_namespace, name), written(tmp_path, name)))
                catalog.deregister_table(declared)
                assert lance.dataset(str(tmp_path / f"{name}.lance")).count_rows() == 3
        assert proxy.dropped == [f"{name}?purgeRequested=false" for name in (TEST, "first", "second")]


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        (Edit(("metadata", "location"), Op.SET, "file:///elsewhere/t"), "assigned the location"),
        (Edit(("metadata-location",), Op.SET, "file:{table}/metadata/0.json"), "inside the Lance table"),
    ],
)
def test_a_server_with_locations_of_its_own_is_refused(
    proxy: HttpProxy, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, lie: Edit, problem: str
) -> None:
    location = tmp_path / "t.lance"
    with opened(proxy.url) as catalog:
        proxy.script.set([Lie("POST .*/tables", replace(lie, value=lie.value.format(table=location)))])
        with pytest.raises(Unsupported, match=problem):
            catalog.declare_table(record((*iceberg_namespace, "t"), location))
        assert proxy.script.met == 1
        assert catalog.observe((*iceberg_namespace, "t")).is_absent
    assert tables(iceberg_server, iceberg_namespace) == []


def test_a_misplaced_companion_stays_if_removing_it_could_delete_the_table(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """A server that keeps its metadata inside the Lance table and purges: the companion cannot be taken back."""
    table = written(tmp_path)
    path = (*iceberg_namespace, "orders")
    inside = Edit(("metadata-location",), Op.SET, f"file:{table}/metadata/0.json")
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        proxy.purges = "."
        proxy.script.set([Lie("POST .*/tables", inside, times=1)])
        with pytest.raises(Unsupported, match=r"inside the Lance table.*stays, because this server deletes the files"):
            catalog.declare_table(record(path, table))
        assert lance.dataset(str(table)).count_rows() == 3
        assert tables(iceberg_server, iceberg_namespace) == ["orders"]
        proxy.purges = ""
        with opened(iceberg_server.url) as honest:
            honest.deregister_table(honest.describe_table(path))


def test_a_store_that_cannot_be_listed_is_no_evidence(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """It would hide that the server purges, also from the tables of other stores."""
    hidden = TableRecord("x", (*iceberg_namespace, "hidden"), f"s3://{iceberg_namespace[1]}/hidden.lance")
    table = written(tmp_path)
    with PurgingProxy(iceberg_server.url) as proxy:
        proxy.purges = "."
        # The server itself cannot reach this bucket: another client has declared the table.
        companion = Edit(("metadata", "location"), Op.SET, hidden.location)
        with opened(proxy.url) as catalog:
            kept = catalog.declare_table(record(hidden.path, tmp_path / "hidden.lance"))
            orders = catalog.declare_table(record((*iceberg_namespace, "orders"), table))
            proxy.script.set([Lie("GET .*/tables/hidden", companion)])
            with pytest.raises(Unsupported, match="cannot be listed"):
                catalog.deregister_table(catalog.describe_table(hidden.path))
            assert proxy.dropped == []
            with pytest.raises(Unsupported, match="deletes the files"):
                catalog.deregister_table(orders)
            assert lance.dataset(str(table)).count_rows() == 3
        proxy.script.set([])
        proxy.purges = ""
        with opened(proxy.url, keeps_files="true") as catalog:
            # This process has seen that the server purges, whatever its documentation says.
            with pytest.raises(Unsupported, match="deletes the files"):
                catalog.deregister_table(orders)
            catalog.deregister_table(kept)


@pytest.mark.parametrize("keeps_files", [True, False])
def test_a_server_whose_documentation_is_known_is_not_tested(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, keeps_files: bool
) -> None:
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url, keeps_files=str(keeps_files).lower()) as catalog:
        orders = catalog.declare_table(record((*iceberg_namespace, "orders"), written(tmp_path)))
        if keeps_files:
            catalog.deregister_table(orders)
        else:
            with pytest.raises(Unsupported, match="deletes the files"):
                catalog.deregister_table(orders)
        assert proxy.dropped == ["orders?purgeRequested=false"] * keeps_files


def test_the_table_of_an_interrupted_test_is_removed_by_the_next_one(
    proxy: HttpProxy, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    path = (*iceberg_namespace, "orders")
    with opened(proxy.url) as catalog:
        orders = catalog.declare_table(record(path, written(tmp_path)))
        for refusal in (Send(b"{}", 403), Send(b"{}", 500), Lose()):
            proxy.script.set([Lie("DELETE .*", refusal, times=1)])
            with pytest.raises(CatalogError, match=TEST):
                catalog.deregister_table(orders)
            assert set(tables(iceberg_server, iceberg_namespace)) - {TEST} == {"orders"}
        # The last answer was lost: the table is gone. It is there again, as after a kill.
        iceberg_server.table((*iceberg_namespace, TEST), **{"federator.drop-test": "true"})
        proxy.script.set([])
        catalog.deregister_table(orders)
    assert tables(iceberg_server, iceberg_namespace) == []
    assert lance.dataset(str(tmp_path / "orders.lance")).count_rows() == 3


def test_a_namespace_is_empty_but_for_the_table_of_an_interrupted_test(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path
) -> None:
    iceberg_server.table((*iceberg_namespace, TEST), **{"federator.drop-test": "true"})
    iceberg_server.table((*iceberg_namespace, "other"))
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(iceberg_namespace)
    assert tables(iceberg_server, iceberg_namespace) == ["other"]
    iceberg_server.call("DELETE", f"/namespaces/{iceberg_namespace[1]}/tables/other")
    # A user's table of this name is not removed.
    iceberg_server.table((*iceberg_namespace, TEST))
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(iceberg_namespace)
    iceberg_server.call("DELETE", f"/namespaces/{iceberg_namespace[1]}/tables/{TEST}")
    iceberg_server.table((*iceberg_namespace, TEST), **{"federator.drop-test": "true"})
    catalog.drop_namespace(iceberg_namespace)
    assert catalog.find_namespace(iceberg_namespace) is None


def test_a_stale_deregistration_tests_nothing(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        orders = catalog.declare_table(record((*iceberg_namespace, "orders"), written(tmp_path)))
        catalog.update_table(orders, replace(orders, doc="changed"))
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(orders)
        assert [request.method for request in proxy.requests].count("DELETE") == 0
        assert tables(iceberg_server, iceberg_namespace) == ["orders"]


def test_a_change_during_the_listing_of_the_store_is_seen(
    proxy: HttpProxy,
    iceberg_server: IcebergServer,
    iceberg_namespace: Path,
    tmp_path: FilePath,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Listing a store takes seconds. The table is read after it, so that the time without a check is that of one call."""
    with opened(proxy.url, keeps_files="true") as catalog, opened(iceberg_server.url) as other:
        orders = catalog.declare_table(record((*iceberg_namespace, "orders"), written(tmp_path)))
        real = StoreListing.find_data

        def slow(listing: StoreListing, location: str, storage: Mapping[str, str]) -> bool | None:
            if other.describe_table(orders.path).doc is None:
                other.update_table(orders, replace(orders, doc="changed"))
            return real(listing, location, storage)

        monkeypatch.setattr(StoreListing, "find_data", slow)
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(orders)
        assert other.describe_table(orders.path).doc == "changed"


def test_a_companion_with_rows_of_its_own_stays(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """Its record is as it was, but dropping it would lose the only way to what an Iceberg client has written."""
    orders = catalog.declare_table(record((*iceberg_namespace, "orders"), tmp_path / "orders.lance"))
    uuid = {"type": "assert-table-uuid", "uuid": orders.native_id}
    snapshot = {
        "snapshot-id": 7, "sequence-number": 1, "timestamp-ms": int(time.time() * 1000), "schema-id": 0,
        "manifest-list": f"file:{tmp_path}/manifests.avro", "summary": {"operation": "append"},
    }  # fmt: skip
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    ]
    path = f"/namespaces/{iceberg_namespace[1]}/tables/orders"
    iceberg_server.call("POST", path, {"requirements": [uuid], "updates": updates})
    assert catalog.describe_table(orders.path) == orders
    with pytest.raises(Unsupported, match="has written rows to its companion"):
        catalog.deregister_table(orders)
    assert tables(iceberg_server, iceberg_namespace) == ["orders"]
