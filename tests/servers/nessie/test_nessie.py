"""Nessie: an Iceberg REST catalog that another project wrote, over S3. What it does otherwise than Iceberg's own server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import lance
import pyarrow as pa
import pytest

from federator.connector import (
    ConcurrentModification,
    Internal,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableNotFound,
    Unsupported,
)
from federator.model import Path, TableRecord
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors.iceberg import CONNECTOR
from tests.fixtures.iceberg import WAREHOUSE
from tests.fixtures.nessie import NessieServer
from tests.fixtures.nessie_server import BUCKET

pytestmark = pytest.mark.timeout(120)


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
    with opened(nessie_server, keeps_files="true") as catalog:
        catalog.deregister_table(catalog.describe_table(path))
        assert catalog.list_all_tables(nessie_namespace) == []
    assert lance.dataset(location, storage_options=dict(nessie_server.storage)).to_table()["id"].to_pylist() == [1, 2, 3]
