"""Deregistering a companion keeps the data of its table, or is refused: drop tests, their leftovers, and misplaced companions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import lance
import pytest

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceNotEmpty,
    ServiceUnavailable,
    Unsupported,
)
from federator.connector.storage_use import StoreListing
from federator.model import Path, TableRecord
from federator_connectors._iceberg.catalog import IcebergCatalog
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Edit, Lie, Lose, Op, Send
from tests.fixtures.iceberg import IcebergServer
from tests.servers.iceberg.iceberg_support import PurgingProxy, SelfWilledProxy, opened, record, written

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


@pytest.mark.parametrize("keeps_directories", [False, True])
def test_a_server_that_purges_is_found_before_data_is_lost(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, keeps_directories: bool
) -> None:
    table = written(tmp_path)
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        proxy.purges, proxy.keeps_directories = ".", keeps_directories
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


@pytest.mark.parametrize("keeps_directories", [False, True])
def test_data_that_a_server_deletes_nevertheless_is_missed(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, keeps_directories: bool
) -> None:
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        proxy.purges, proxy.keeps_directories = "/lost", keeps_directories
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


def test_concurrent_deregistrations_make_one_test(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    names = [f"t{number}" for number in range(8)]
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog, ThreadPoolExecutor(len(names)) as threads:
        declared = [catalog.declare_table(record((*iceberg_namespace, name), written(tmp_path, name))) for name in names]
        list(threads.map(catalog.deregister_table, declared))
        assert sorted(proxy.dropped) == sorted(f"{name}?purgeRequested=false" for name in (TEST, *names))
    assert tables(iceberg_server, iceberg_namespace) == []


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
        # The server was tested, and its answers were as requested.
        catalog.deregister_table(catalog.declare_table(record((*iceberg_namespace, "first"), tmp_path / "first.lance")))
        proxy.script.set([Lie("POST .*/tables", replace(lie, value=lie.value.format(table=location)))])
        with pytest.raises(Unsupported, match=problem):
            catalog.declare_table(record((*iceberg_namespace, "t"), location))
        assert proxy.script.met == 1
        assert catalog.observe((*iceberg_namespace, "t")).is_absent
    assert tables(iceberg_server, iceberg_namespace) == []


def _ignore_metadata_path(body: dict[str, Any]) -> None:
    body["properties"].pop("write.metadata.path")


@pytest.mark.parametrize("is_written", [True, False])
def test_a_server_that_ignores_the_metadata_path_writes_nothing_into_the_lance_directory(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, is_written: bool
) -> None:
    table = written(tmp_path) if is_written else tmp_path / "orders.lance"
    before = sorted(tmp_path.rglob("*"))
    with SelfWilledProxy(iceberg_server.url, _ignore_metadata_path) as proxy, opened(proxy.url) as catalog:
        for _ in range(2):
            with pytest.raises(Unsupported, match=r"inside the Lance table: it ignores write\.metadata\.path"):
                catalog.declare_table(record((*iceberg_namespace, "orders"), table))
    left = [path for path in tmp_path.rglob("*") if path not in before]
    assert [path for path in left if path.is_file()] == []
    # Iceberg's own server does not remove the directories of a local path.
    assert all(path.relative_to(tmp_path).parts[0] == "_iceberg" for path in left)
    assert tables(iceberg_server, iceberg_namespace) == []


def test_a_server_with_locations_of_its_own_purges_nothing(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """The location that it assigns may have data."""
    table, assigned = written(tmp_path), written(tmp_path, "assigned")
    change = {"location": f"file://{assigned}"}
    with (
        SelfWilledProxy(iceberg_server.url, lambda body: body.update(change)) as own,
        PurgingProxy(own.url) as proxy,
        opened(proxy.url) as catalog,
    ):
        with pytest.raises(Unsupported, match="assigns locations of its own"):
            catalog.declare_table(record((*iceberg_namespace, "orders"), table))
        assert proxy.dropped == [f"{TEST}?purgeRequested=false"]
    assert lance.dataset(str(assigned)).count_rows() == 3
    assert tables(iceberg_server, iceberg_namespace) == []


@pytest.mark.parametrize("name", ["t.lance/.", "t.lance/x/..", "_iceberg/t", "_iceberg/t.lance", "t.lance/%2E", "%5Ficeberg/t"])
def test_a_location_whose_metadata_could_be_inside_a_lance_table_is_refused(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, name: str
) -> None:
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        with pytest.raises(InvalidInput, match="cannot declare a location with a level named"):
            catalog.declare_table(record((*iceberg_namespace, "t"), f"{tmp_path}/{name}"))
        assert [request.method for request in proxy.requests if request.method != "GET"] == []
    assert list(tmp_path.iterdir()) == []


def test_a_misplaced_companion_stays_if_removing_it_could_delete_the_table(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """A server that keeps its metadata inside the Lance table and purges: the companion cannot be taken back."""
    table = written(tmp_path)
    path = (*iceberg_namespace, "orders")
    inside = Edit(("metadata-location",), Op.SET, f"file:{table}/metadata/0.json")
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        # The server was tested, and its answers were as requested.
        catalog.deregister_table(catalog.declare_table(record((*iceberg_namespace, "first"), tmp_path / "first.lance")))
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
            declared = catalog.declare_table(record(hidden.path, tmp_path / "hidden.lance"))
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
            catalog.deregister_table(declared)


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
            # Twice: the second call removes what the first one left, before it tests the server.
            proxy.script.set([Lie("DELETE .*", refusal, times=2)])
            with pytest.raises(CatalogError, match=TEST):
                catalog.deregister_table(orders)
            assert set(tables(iceberg_server, iceberg_namespace)) - {TEST} == {"orders"}
        # The last answer was lost: the table is gone. It is there again, as after a kill.
        iceberg_server.table((*iceberg_namespace, TEST), **{"federator.drop-test": "true"})
        proxy.script.set([])
        catalog.deregister_table(orders)
    assert tables(iceberg_server, iceberg_namespace) == []
    assert lance.dataset(str(tmp_path / "orders.lance")).count_rows() == 3


def test_a_table_of_a_test_that_another_process_left_goes_with_the_next_write(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """Also if this process knows the server already, so that it makes no test in this namespace."""
    other = iceberg_server.namespace((*iceberg_namespace[:-1], f"{iceberg_namespace[-1]}_other"))
    catalog.declare_table(record((*other, "first"), tmp_path / "first.lance"))
    iceberg_server.table((*iceberg_namespace, TEST), **{"federator.drop-test": "true"})
    orders = catalog.declare_table(record((*iceberg_namespace, "orders"), tmp_path / "orders.lance"))
    assert tables(iceberg_server, iceberg_namespace) == ["orders"]
    # A user's table of this name stays.
    iceberg_server.table((*other, TEST))
    catalog.declare_table(record((*other, "second"), tmp_path / "second.lance"))
    assert tables(iceberg_server, other) == [TEST, "first", "second"]
    catalog.deregister_table(orders)


def test_a_lost_response_leaves_no_table_of_a_test(
    proxy: HttpProxy, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    other = iceberg_server.namespace((*iceberg_namespace[:-1], f"{iceberg_namespace[-1]}_other"))
    with opened(proxy.url) as catalog:
        proxy.script.set([Lie("POST .*/tables", Lose(), times=1)])
        with pytest.raises(ServiceUnavailable):
            catalog.declare_table(record((*iceberg_namespace, "orders"), tmp_path / "orders.lance"))
        assert tables(iceberg_server, iceberg_namespace) == [TEST]
        # The server is tested in another namespace.
        catalog.declare_table(record((*other, "first"), tmp_path / "first.lance"))
        catalog.declare_table(record((*iceberg_namespace, "orders"), tmp_path / "orders.lance"))
    assert tables(iceberg_server, iceberg_namespace) == ["orders"]


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
    # The server makes a namespace of a table in none, and it ends with its table.
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
        assert proxy.dropped == []
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
