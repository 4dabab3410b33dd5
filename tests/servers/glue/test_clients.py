"""Glue with Lance's own clients: pylance and lancedb write, append, overwrite, read and list real tables on S3."""

from __future__ import annotations

from typing import Any

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest

from tests.fixtures.glue import GlueAccount

pytestmark = pytest.mark.timeout(120)

ROWS = pa.table({"id": [1, 2, 3]})
IMPL = "federator_connectors.glue.GlueNamespace"


@pytest.fixture
def properties(glue_account: GlueAccount, s3_storage_options: dict[str, str]) -> dict[str, str]:
    """An account with the database ``sales`` and the database ``db`` of the catalog ``lake``, on storage of the account's own."""
    client, me = glue_account.client(), glue_account.account_id
    client.create_database(DatabaseInput={"Name": "sales"})
    client.create_catalog(Name="lake", CatalogInput={})
    client.create_database(CatalogId=f"{me}:lake", DatabaseInput={"Name": "db"})
    storage = {f"storage.{key}": value for key, value in s3_storage_options.items()}
    given = {**glue_account.properties, **storage, "root": f"s3://lance-data/{me}"}
    return {f"glue.{key}": value for key, value in given.items()}


@pytest.fixture
def facade(properties: dict[str, str]) -> ln.LanceNamespace:
    return ln.connect(IMPL, properties)


@pytest.mark.parametrize("database", [["sales"], ["ACCOUNT", "sales"], ["lake", "db"]], ids="$".join)
def test_pylance_writes_appends_overwrites_and_reads(
    facade: ln.LanceNamespace, glue_account: GlueAccount, database: list[str]
) -> None:
    me = glue_account.account_id
    path = [*(me if level == "ACCOUNT" else level for level in database), "orders"]
    lance.write_dataset(ROWS, namespace_client=facade, table_id=path)
    lance.write_dataset(ROWS, namespace_client=facade, table_id=path, mode="append")
    assert lance.dataset(namespace_client=facade, table_id=path).count_rows() == 6
    lance.write_dataset(ROWS, namespace_client=facade, table_id=path, mode="overwrite")
    assert lance.dataset(namespace_client=facade, table_id=path).count_rows() == 3
    assert facade.list_tables(ln.ListTablesRequest(id=path[:-1])).tables == ["orders"]
    described = facade.describe_table(ln.DescribeTableRequest(id=path, with_table_uri=True))
    opened = lance.dataset(described.table_uri, storage_options=described.storage_options)
    assert opened.count_rows() == 3
    scope = {"CatalogId": f"{me}:lake"} if path[0] == "lake" else {}
    native = glue_account.client().get_table(DatabaseName=path[-2], Name="orders", **scope)["Table"]
    assert (native["TableType"], native["Parameters"]) == ("EXTERNAL_TABLE", {"table_type": "lance"})
    assert native["StorageDescriptor"]["Location"] == described.location


def test_a_deregistered_table_keeps_its_data_and_can_come_back(facade: ln.LanceNamespace) -> None:
    path = ["sales", "orders"]
    lance.write_dataset(ROWS, namespace_client=facade, table_id=path)
    described = facade.describe_table(ln.DescribeTableRequest(id=path))
    facade.deregister_table(ln.DeregisterTableRequest(id=path))
    with pytest.raises(ln.TableNotFoundError):
        facade.describe_table(ln.DescribeTableRequest(id=path))
    assert lance.dataset(described.location, storage_options=described.storage_options).count_rows() == 3
    facade.register_table(ln.RegisterTableRequest(id=path, location=described.location))
    assert lance.dataset(namespace_client=facade, table_id=path).count_rows() == 3


def test_lancedb_creates_opens_appends_and_lists(properties: dict[str, str], glue_account: GlueAccount) -> None:
    me = glue_account.account_id
    connection = lancedb.connect_namespace(IMPL, {**properties, "drop_cascades": "confirmed"})
    assert sorted(connection.list_namespaces().namespaces) == sorted([me, "lake"])
    for path in (["sales"], ["lake", "db"]):
        connection.create_table("orders", ROWS, namespace_path=path)
        table = connection.open_table("orders", namespace_path=path)
        table.add(ROWS)
        assert connection.open_table("orders", namespace_path=path).count_rows() == 6
        connection.create_table("people", ROWS, namespace_path=path)
        assert list(connection.list_tables(namespace_path=path).tables) == ["orders", "people"]
        connection.create_table("people", ROWS.slice(0, 1), mode="overwrite", namespace_path=path)
        assert connection.open_table("people", namespace_path=path).count_rows() == 1
    assert connection.list_namespaces(namespace_path=["lake"]).namespaces == ["db"]
    connection.create_namespace(["lake", "made"])
    assert connection.list_namespaces(namespace_path=["lake"]).namespaces == ["db", "made"]
    connection.drop_namespace(["lake", "made"])
    with pytest.raises(RuntimeError, match="is never deleted"):
        connection.drop_table("orders", namespace_path=["sales"])
    assert connection.open_table("orders", namespace_path=["sales"]).count_rows() == 6
    with pytest.raises(Exception, match="not found"):
        connection.open_table("missing", namespace_path=["sales"])


def test_lancedb_sees_no_table_that_is_not_lance(properties: dict[str, str], glue_account: GlueAccount) -> None:
    client: Any = glue_account.client()
    for name, kind, parameters in (
        ("hive", "EXTERNAL_TABLE", {}),
        ("iceberg", "EXTERNAL_TABLE", {"table_type": "ICEBERG"}),
        ("managed", "MANAGED_TABLE", {"table_type": "lance"}),
    ):
        client.create_table(DatabaseName="sales", TableInput={"Name": name, "TableType": kind, "Parameters": parameters})
    connection = lancedb.connect_namespace(IMPL, properties)
    assert list(connection.list_tables(namespace_path=["sales"]).tables) == []
    for name in ("hive", "iceberg", "managed"):
        with pytest.raises(Exception, match=r"not a Lance table|managed"):
            connection.open_table(name, namespace_path=["sales"])
