"""Polaris with Lance's own clients: names that the specs allow work end to end."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import lance_namespace
import pytest

from federator.model import Path
from tests.fixtures.polaris import PolarisServer

pytestmark = pytest.mark.timeout(120)

CLASS = "federator_connectors.polaris.PolarisNamespace"


@pytest.fixture
def namespace(polaris_server: PolarisServer, polaris_catalog: str) -> Path:
    return polaris_server.namespace((*polaris_server.namespace((polaris_catalog, "sales.eu")), "2026"))


@pytest.mark.parametrize("prefix", ["", "polaris."])
def test_connect_by_class_path_with_bare_and_prefixed_keys(polaris_server: PolarisServer, namespace: Path, prefix: str) -> None:
    facade = lance_namespace.connect(CLASS, {f"{prefix}{key}": value for key, value in polaris_server.properties.items()})
    request = lance_namespace.ListNamespacesRequest(id=list(namespace[:2]))
    assert facade.list_namespaces(request).namespaces == ["2026"]


def test_write_and_open_a_dataset_by_its_name(polaris_server: PolarisServer, namespace: Path, tmp_path: FilePath) -> None:
    import lance
    import pyarrow as pa

    root = f"file://{tmp_path}"
    facade = lance_namespace.connect(CLASS, {**polaris_server.properties, "root": root})
    table_id = [*namespace, "orders"]
    location = f"{root}/orders.lance"
    facade.declare_table(lance_namespace.DeclareTableRequest(id=table_id, location=location, properties={"team": "sales"}))
    rows = pa.table({"id": [1, 2, 3]})
    lance.write_dataset(rows, namespace_client=facade, table_id=table_id, mode="append")
    lance.write_dataset(rows, namespace_client=facade, table_id=table_id, mode="append")
    opened = lance.dataset(namespace_client=facade, table_id=table_id)
    assert opened.count_rows() == 6
    assert (tmp_path / "orders.lance" / "_versions").is_dir()


def test_a_dataset_is_created_where_the_namespace_lies(polaris_stub: PolarisServer, tmp_path: FilePath) -> None:
    import lance
    import pyarrow as pa

    polaris_stub.namespace(("main", "local"), {"location": f"file://{tmp_path}/local"})
    facade: Any = lance_namespace.connect(CLASS, polaris_stub.properties)
    lance.write_dataset(pa.table({"id": [1]}), namespace_client=facade, table_id=["main", "local", "made"])
    described = facade.describe_table(lance_namespace.DescribeTableRequest(id=["main", "local", "made"]))
    assert described.location == f"file://{tmp_path}/local/made.lance"
    assert lance.dataset(namespace_client=facade, table_id=["main", "local", "made"]).count_rows() == 1
    assert facade.list_tables(lance_namespace.ListTablesRequest(id=["main", "local"])).tables == ["made"]
    facade.deregister_table(lance_namespace.DeregisterTableRequest(id=["main", "local", "made"]))
    assert lance.dataset(described.location).count_rows() == 1, "the data stays"


def test_what_a_declared_table_is_to_polaris(polaris_server: PolarisServer, namespace: Path) -> None:
    """Format, base location, description and ``table_type`` as the spec has them; and what DescribeTable answers."""
    from tests.fixtures.polaris import tables_path

    facade: Any = lance_namespace.connect(CLASS, {**polaris_server.properties, "storage.region": "eu-west-1"})
    location = "s3://lake/orders.lance"
    given = {"doc": "All orders.", "team": "sales", "federator.op": "1", "aws_secret_access_key": "x"}
    declared = facade.declare_table(
        lance_namespace.DeclareTableRequest(id=[*namespace, "orders"], location=location, properties=given)
    )
    native = polaris_server.call("GET", f"{tables_path(namespace)}/orders").json()["table"]
    assert native == {
        "name": "orders", "format": "lance", "base-location": location, "doc": "All orders.",
        "properties": {**given, "table_type": "lance"},
    }  # fmt: skip
    described = facade.describe_table(lance_namespace.DescribeTableRequest(id=[*namespace, "orders"]))
    assert (declared.location, declared.properties) == (described.location, described.properties)
    assert (described.location, described.properties) == (location, {**given, "table_type": "lance"})
    assert described.storage_options == {"region": "eu-west-1", "team": "sales", "doc": "All orders."}
    assert (described.version, described.table_uri, described.var_schema, described.stats) == (None,) * 4


def test_what_a_created_namespace_is_to_polaris(polaris_server: PolarisServer, namespace: Path) -> None:
    facade: Any = lance_namespace.connect(CLASS, polaris_server.properties)
    path = [*namespace, "made"]
    created = facade.create_namespace(lance_namespace.CreateNamespaceRequest(id=path, properties={"owner": "me"}))
    described = facade.describe_namespace(lance_namespace.DescribeNamespaceRequest(id=path))
    assert created.properties == described.properties
    assert described.properties["owner"] == "me"
    assert described.properties["database.location-uri"].endswith("/sales.eu/2026/made/")
    catalog = facade.describe_namespace(lance_namespace.DescribeNamespaceRequest(id=path[:1]))
    assert catalog.properties["database.location-uri"].endswith(f"/{path[0]}")


def test_properties_of_a_namespace_come_back_under_the_names_they_were_given(
    polaris_server: PolarisServer, namespace: Path
) -> None:
    facade: Any = lance_namespace.connect(CLASS, polaris_server.properties)
    here = facade.describe_namespace(lance_namespace.DescribeNamespaceRequest(id=list(namespace)))
    below = f"{here.properties['database.location-uri'].rstrip('/')}/elsewhere/"
    for number, given in enumerate(
        (
            {"location": below, "database.description": "All sales.", "database.owner": "ann"},
            {"database.location-uri": below, "comment": "All sales.", "owner": "ann"},
        )
    ):
        path = [*namespace, f"made{number}"]
        created = facade.create_namespace(lance_namespace.CreateNamespaceRequest(id=path, properties=given))
        described = facade.describe_namespace(lance_namespace.DescribeNamespaceRequest(id=path))
        assert created.properties == described.properties
        assert given.items() <= described.properties.items()
        assert described.properties["location"] == described.properties["database.location-uri"] == below
        facade.drop_namespace(lance_namespace.DropNamespaceRequest(id=path))
