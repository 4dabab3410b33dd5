"""Nessie: an Iceberg REST catalog that another project wrote, over S3. What it does otherwise than Iceberg's own server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path as FilePath

import lance
import pyarrow as pa
import pytest

from federator.connector import (
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableNotFound,
    Unsupported,
)
from federator.model import NamespaceRecord, Path, TableRecord, path_key
from federator.store.coverage import read_coverage
from federator.store.records import published_revision
from federator.testing.conformance.report import Verdict
from federator.testing.conformance.run import run_conformance
from federator.testing.conformance.target import Target
from federator.testing.contract.base import run_concurrently
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors.iceberg import CONNECTOR
from tests.fixtures.iceberg import WAREHOUSE
from tests.fixtures.nessie import NessieServer
from tests.fixtures.nessie_server import BUCKET
from tests.fixtures.product import MEMORY, Product

pytestmark = pytest.mark.timeout(300)


def opened(server: NessieServer, **properties: str) -> IcebergCatalog:
    return CONNECTOR.open("nessie", CONNECTOR.parse_settings({**server.properties, "max_retries": "0", **properties}))


@pytest.fixture
def catalog(nessie_server: NessieServer) -> Iterator[IcebergCatalog]:
    with opened(nessie_server) as catalog:
        yield catalog


def test_a_table_is_the_same_after_a_commit_to_another_one(
    nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog
) -> None:
    """Nessie shows the branch's newest commit in the properties of each table."""
    path = (*nessie_namespace, "orders")
    nessie_server.companion(path, f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance", owner="anna")
    before = catalog.describe_table(path)
    nessie_server.companion((*nessie_namespace, "other"), f"s3://{BUCKET}/{nessie_namespace[-1]}/other.lance")
    assert catalog.describe_table(path) == before
    assert before.location == f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance"
    assert before.properties == {"owner": "anna", "gc.enabled": "false"}


def test_the_listing_of_a_namespace_that_does_not_exist_is_not_empty(nessie_namespace: Path, catalog: IcebergCatalog) -> None:
    """Nessie answers 200 with nothing in it, where Iceberg's specification has 404."""
    missing = (*nessie_namespace, "none")
    for listing in (catalog.list_tables, catalog.list_namespaces):
        assert listing(nessie_namespace) == []
        with pytest.raises(NamespaceNotFound):
            listing(missing)
    with pytest.raises(NamespaceNotFound):
        catalog.list_tables((WAREHOUSE, f"{nessie_namespace[-1]}-none"))


def test_a_missing_warehouse_is_an_error(catalog: IcebergCatalog) -> None:
    """Nessie answers 500, which proves nothing."""
    with pytest.raises(Internal, match="'none' is not known") as caught:
        catalog.describe_namespace(("none",))
    assert "iceberg.warehouses" in str(caught.value.hint)


def test_a_view_holds_its_name(nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog) -> None:
    """Nessie does not list its endpoints, and has views."""
    nessie_server.view((*nessie_namespace, "view"))
    assert catalog.observe((*nessie_namespace, "view")).foreign == f"nessie: {WAREHOUSE}${nessie_namespace[-1]}$view is a view"
    with pytest.raises(TableNotFound):
        catalog.describe_table((*nessie_namespace, "none"))


def test_a_namespace_with_content_is_not_dropped(
    nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog
) -> None:
    """Nessie's error has no type."""
    nessie_server.namespace((*nessie_namespace, "inner"))
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(nessie_namespace)
    catalog.drop_namespace((*nessie_namespace, "inner"))
    catalog.drop_namespace(nessie_namespace)
    with pytest.raises(NamespaceNotFound):
        catalog.drop_namespace(nessie_namespace)


def test_no_table_is_declared_where_nessie_would_put_it(
    nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog
) -> None:
    path, location = (*nessie_namespace, "orders"), f"s3://{BUCKET}/declared/orders.lance"
    with pytest.raises(Unsupported, match="orders was not declared, because the server is Nessie, which assigns the locations"):
        catalog.declare_table(TableRecord("nessie", path, location))
    assert catalog.list_all_tables(nessie_namespace) == []
    assert nessie_server.keys("declared/") == []


def test_a_new_location_is_not_taken_for_stored(
    nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog
) -> None:
    """Nessie answers a change of the location with success and ignores it."""
    path = (*nessie_namespace, "orders")
    nessie_server.companion(path, f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance")
    before = catalog.describe_table(path)
    with pytest.raises(Unsupported, match="keeps its location"):
        catalog.update_table(before, replace(before, location=f"s3://{BUCKET}/elsewhere.lance"))
    changed = catalog.update_table(before, replace(before, properties={"owner": "anna"}))
    assert (changed.location, changed.properties["owner"]) == (before.location, "anna")


def test_a_commit_to_a_table_that_was_replaced_is_a_conflict(
    nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog
) -> None:
    """Nessie's error has no type."""
    path = (*nessie_namespace, "orders")
    nessie_server.companion(path, f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance")
    with pytest.raises(ConcurrentModification):
        catalog._client.commit(path, str(uuid.uuid4()), [{"action": "set-properties", "updates": {"owner": "anna"}}])


def test_a_deregistered_table_leaves_its_data(nessie_server: NessieServer, nessie_namespace: Path) -> None:
    location = f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance"
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), location, storage_options=dict(nessie_server.storage))
    path = (*nessie_namespace, "orders")
    nessie_server.companion(path, location)
    with opened(nessie_server) as catalog:
        # Nessie puts the table of the drop test elsewhere.
        with pytest.raises(Unsupported, match="whether this server keeps the files of dropped tables is unknown") as caught:
            catalog.deregister_table(catalog.describe_table(path))
        assert "iceberg.keeps_files = true" in str(caught.value.hint)
        assert catalog.list_all_tables(nessie_namespace) == ["orders"]
    with opened(nessie_server, keeps_files="true") as catalog:
        catalog.deregister_table(catalog.describe_table(path))
        assert catalog.list_all_tables(nessie_namespace) == []
    assert lance.dataset(location, storage_options=dict(nessie_server.storage)).to_table()["id"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["orders@main", "orders#2026-11-27T00:00:00Z", "'orders'", "`orders`"])
def test_no_name_is_taken_for_another_table(
    nessie_server: NessieServer, nessie_namespace: Path, catalog: IcebergCatalog, name: str
) -> None:
    """Nessie takes each of these for the table ``orders``, also in a request that drops it."""
    nessie_server.companion((*nessie_namespace, "orders"), f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance")
    path = (*nessie_namespace, name)
    record = replace(catalog.describe_table((*nessie_namespace, "orders")), path=path)
    for call in (catalog.describe_table, catalog.observe):
        with pytest.raises(InvalidInput, match="for another table"):
            call(path)
    with pytest.raises(InvalidInput, match="for another table"):
        catalog.deregister_table(record)
    assert catalog.list_tables(nessie_namespace) == ["orders"]


def test_of_eight_that_create_a_namespace_one_wins(nessie_namespace: Path, catalog: IcebergCatalog) -> None:
    """The others get an error without a type."""
    record = NamespaceRecord("nessie", (*nessie_namespace, "raced"))
    results = run_concurrently([lambda: catalog.create_namespace(record)] * 8)
    created = [result for result in results if isinstance(result, NamespaceRecord)]
    assert created == [catalog.describe_namespace(record.path)]
    assert [type(result) for result in results if result not in created] == [NamespaceAlreadyExists] * 7


def test_a_conformance_run_has_no_failed_check(nessie_server: NessieServer, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = dict(nessie_server.properties)
    for key in ("aws_access_key_id", "aws_secret_access_key"):
        monkeypatch.setenv(f"NESSIE_{key}", properties[f"storage.{key}"])
        properties[f"storage.{key}"] = f"${{NESSIE_{key}}}"
    target = Target(CONNECTOR, properties, parent=(WAREHOUSE,), location=f"s3://{BUCKET}/conformance")
    report = run_conformance(target, lambda check: None)
    assert report.remaining == []
    assert [check.detail for check in report.checks if check.verdict is Verdict.FAILED] == []
    verdicts = {operation.operation: operation.verdict for operation in report.operations}
    assert verdicts["CreateNamespace"] is verdicts["altering a namespace"] is Verdict.PASSED
    assert verdicts["DeclareTable"] is Verdict.UNSUPPORTED


@pytest.mark.usefixtures("spark")
def test_tables_of_nessie_are_crawled_and_declared_elsewhere(
    nessie_server: NessieServer, nessie_namespace: Path, tmp_path: FilePath
) -> None:
    product = Product(tmp_path)
    location = f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance"
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), location, storage_options=dict(nessie_server.storage))
    nessie_server.companion((*nessie_namespace, "orders"), location)
    nessie_server.companion((*nessie_namespace, "kept"), f"s3://{BUCKET}/kept.lance")
    nessie_server.table((*nessie_namespace, "plain"))
    product.configure(
        {"impl": "iceberg", **nessie_server.properties}, namespace="sales", include=[f"{path_key(nessie_namespace)}$*"]
    )
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"] * 3
    assert product.copies() == {"orders": location, "kept": f"s3://{BUCKET}/kept.lance"}
    with closing(product.index) as index, index.read() as connection:
        covered = read_coverage(connection, "origin", published_revision(connection, "origin"))
    assert covered[path_key(nessie_namespace)].complete
    # Another commit to the branch is no change of this table.
    nessie_server.table((*nessie_namespace, "other"))
    (plan,) = product.sync()["plans"]
    assert (plan["changes"], plan["refusals"]) == ([], [])
    nessie_server.drop((*nessie_namespace, "orders"), "tables")
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"]
    assert list(product.copies()) == ["kept"]


@pytest.mark.usefixtures("spark")
def test_a_mirror_into_nessie_is_refused_in_its_plan(
    nessie_server: NessieServer, nessie_namespace: Path, tmp_path: FilePath
) -> None:
    product = Product(tmp_path)
    product.store("origin").add_table(("sales", "orders"), f"s3://{BUCKET}/sales/orders.lance")
    product.configure(
        {"impl": MEMORY, "file": str(tmp_path / "origin.json")}, {"impl": "iceberg", **nessie_server.properties},
        namespace=path_key(nessie_namespace),
    )  # fmt: skip
    (plan,) = product.sync()["plans"]
    assert plan["changes"] == []
    (refusal,) = plan["refusals"]
    assert refusal["reason"] == "no_location"
    assert "the server is Nessie" in refusal["detail"]
    assert "choose a catalog that stores locations" in refusal["detail"]
    declared = product.run("declare", f"s3://{BUCKET}/sales/orders.lance", "--into", "target", "--yes")
    assert declared.exit_code != 0
    assert "choose a catalog that stores locations" in declared.output
