"""Glue through the official interface, as ``lance_namespace.connect`` opens it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance_namespace as ln
import pytest
from lance_namespace import errors

from federator.demo.servers.glue import PARENT_PARAMETER
from federator.demo.servers.process import Server
from tests.fixtures.glue import GlueAccount, account, client_of, principals

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def facade(glue_account: GlueAccount, s3_storage_options: dict[str, str]) -> Any:
    storage = {f"storage.{key}": value for key, value in s3_storage_options.items()}
    prefixed = {
        f"glue.{key}": value
        for key, value in {
            **glue_account.properties,
            **storage,
            "root": "s3://lance-data",
            "drop_cascades": "confirmed",
        }.items()
    }
    return ln.connect("federator_connectors.glue.GlueNamespace", prefixed)


def test_the_owner_of_a_namespace_is_kept(facade: Any, glue_account: GlueAccount) -> None:
    owned = {"database.owner": "ann", "database.owner-type": "GROUP", "team": "a"}
    for path in (["lake"], ["lake", "db"], [glue_account.account_id, "sales"]):
        facade.create_namespace(ln.CreateNamespaceRequest(id=path, properties=owned))
        assert facade.describe_namespace(ln.DescribeNamespaceRequest(id=path)).properties == owned
    with facade.borrow_catalog() as catalog:
        record = catalog.describe_namespace(("lake", "db"))
        assert record.owner == "ann"
        assert catalog.update_namespace(record, replace(record, doc="new")).owner == "ann"


def test_another_accounts_catalog_is_the_root(glue_url: str, glue_account: GlueAccount, tmp_path: Path) -> None:
    owner = account(glue_url)
    native, other = owner.client(), owner.account_id
    native.create_database(DatabaseInput={"Name": "theirs"})
    glue_account.client().create_database(DatabaseInput={"Name": "own"})
    properties = {**glue_account.properties, "catalog_id": other}
    facade: Any = ln.connect("federator_connectors.glue.GlueNamespace", properties)
    assert facade.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == [other]
    assert facade.list_namespaces(ln.ListNamespacesRequest(id=[other])).namespaces == ["theirs"]
    location = f"file://{tmp_path}/orders.lance"
    facade.declare_table(ln.DeclareTableRequest(id=[other, "theirs", "orders"], location=location))
    stored = native.get_table(DatabaseName="theirs", Name="orders")["Table"]
    assert stored["StorageDescriptor"]["Location"] == location
    assert [database["Name"] for database in glue_account.client().get_databases()["DatabaseList"]] == ["own"]
    facade.deregister_table(ln.DeregisterTableRequest(id=[other, "theirs", "orders"]))
    assert facade.list_tables(ln.ListTablesRequest(id=[other, "theirs"])).tables == []


def test_a_default_location_is_a_uri(glue_account: GlueAccount, tmp_path: Path) -> None:
    facade: Any = ln.connect("federator_connectors.glue.GlueNamespace", {**glue_account.properties, "root": str(tmp_path)})
    for name, spelled in (("sales", "sales"), ("a b", "a%20b")):
        facade.create_namespace(ln.CreateNamespaceRequest(id=[glue_account.account_id, name]))
        declared = facade.declare_table(ln.DeclareTableRequest(id=[name, "orders"]))
        assert declared.location == f"file://{tmp_path}/{spelled}/orders.lance"


def test_the_eight_operations_and_their_modes(facade: Any, glue_account: GlueAccount) -> None:
    me = glue_account.account_id

    def create(*path: str, **more: Any) -> Any:
        return facade.create_namespace(ln.CreateNamespaceRequest(id=list(path), **more))

    def names(*path: str, **more: Any) -> Any:
        return facade.list_namespaces(ln.ListNamespacesRequest(id=list(path), **more))

    assert create("lake", properties={"tier": "1"}).properties == {"tier": "1"}
    assert create(me, "sales", properties={"team": "a"}).properties == {"team": "a"}
    create("lake", "db")
    assert names().namespaces == sorted([me, "lake"])
    page = names(limit=1)
    assert names(page_token=page.page_token).namespaces == [sorted([me, "lake"])[1]]
    assert names(me).namespaces == ["sales"]
    with pytest.raises(errors.NamespaceAlreadyExistsError):
        create(me, "sales")
    assert create(me, "sales", mode="EXIST_OK", properties={"other": "b"}).properties == {"team": "a"}
    assert create(me, "sales", mode="OVERWRITE", properties={"other": "b"}).properties == {"other": "b"}
    assert facade.describe_namespace(ln.DescribeNamespaceRequest(id=["sales"])).properties == {"other": "b"}

    declared = facade.declare_table(ln.DeclareTableRequest(id=["sales", "orders"]))
    assert declared.location == "s3://lance-data/sales/orders.lance"
    assert facade.list_tables(ln.ListTablesRequest(id=[me, "sales"])).tables == ["orders"]
    for above in ([], [me], ["lake"]):
        assert facade.list_tables(ln.ListTablesRequest(id=above)).tables == []
    assert facade.list_all_tables(ln.ListTablesRequest()).tables == [f"{me}$sales$orders"]
    described = facade.describe_table(ln.DescribeTableRequest(id=["sales", "orders"]))
    assert (described.location, described.version) == (declared.location, None)
    assert described.storage_options["aws_region"] == "us-east-1"
    with pytest.raises(errors.TableAlreadyExistsError):
        facade.declare_table(ln.DeclareTableRequest(id=[me, "sales", "orders"]))
    with pytest.raises(errors.NamespaceNotEmptyError):
        create(me, "sales", mode="OVERWRITE")
    for id_ in (["sales"], [me, "sales"]):
        with pytest.raises(errors.NamespaceNotEmptyError):
            facade.drop_namespace(ln.DropNamespaceRequest(id=id_))
        with pytest.raises(errors.UnsupportedOperationError):
            facade.drop_namespace(ln.DropNamespaceRequest(id=id_, behavior="CASCADE"))
    assert facade.deregister_table(ln.DeregisterTableRequest(id=["sales", "orders"])).location == declared.location
    facade.drop_namespace(ln.DropNamespaceRequest(id=["sales"]))
    with pytest.raises(errors.NamespaceNotFoundError):
        facade.drop_namespace(ln.DropNamespaceRequest(id=["sales"]))
    facade.drop_namespace(ln.DropNamespaceRequest(id=["sales"], mode="SKIP"))


def test_a_catalog_never_overwrites_a_database_of_its_name(facade: Any, glue_account: GlueAccount) -> None:
    me, client = glue_account.account_id, glue_account.client()
    client.create_database(DatabaseInput={"Name": "sales", "Parameters": {"team": "a"}})
    with pytest.raises(errors.NamespaceAlreadyExistsError, match=rf"sales is {me}\$sales"):
        facade.create_namespace(ln.CreateNamespaceRequest(id=["sales"], mode="OVERWRITE"))
    assert client.get_database(Name="sales")["Database"]["Parameters"] == {"team": "a"}
    assert facade.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == [me]


def test_errors_have_the_codes_of_the_spec(facade: Any, glue_account: GlueAccount) -> None:
    client = glue_account.client()
    client.create_database(DatabaseInput={"Name": "db"})
    client.create_table(DatabaseName="db", TableInput={"Name": "hive", "TableType": "EXTERNAL_TABLE"})
    cases = [
        (errors.NamespaceNotFoundError, facade.describe_namespace, ln.DescribeNamespaceRequest(id=["no"])),
        (errors.NamespaceNotFoundError, facade.list_tables, ln.ListTablesRequest(id=["no"])),
        (errors.NamespaceNotFoundError, facade.list_namespaces, ln.ListNamespacesRequest(id=["no", "db"])),
        (errors.NamespaceNotFoundError, facade.create_namespace, ln.CreateNamespaceRequest(id=["no", "db"])),
        (errors.NamespaceNotFoundError, facade.declare_table, ln.DeclareTableRequest(id=["no", "t"])),
        (errors.TableNotFoundError, facade.describe_table, ln.DescribeTableRequest(id=["db", "no"])),
        (errors.TableNotFoundError, facade.deregister_table, ln.DeregisterTableRequest(id=["db", "no"])),
        (errors.InvalidInputError, facade.describe_table, ln.DescribeTableRequest(id=["db", "hive"])),
        (errors.InvalidInputError, facade.deregister_table, ln.DeregisterTableRequest(id=["db", "hive"])),
        (errors.InvalidInputError, facade.describe_table, ln.DescribeTableRequest(id=["db"])),
        (errors.UnsupportedOperationError, facade.describe_table, ln.DescribeTableRequest(id=["db", "t"], load_detailed_metadata=True)),
    ]  # fmt: skip
    for expected, operation, request in cases:
        with pytest.raises(expected):
            operation(request)


def test_every_request_is_one_that_the_service_takes(facade: Any, glue_account: GlueAccount) -> None:
    """GetCatalogs refuses IncludeRoot beside ParentCatalogId; the server here does so too, so that a walk proves it."""
    client, me = glue_account.client(), glue_account.account_id
    client.create_catalog(Name="a", CatalogInput={})
    client.create_catalog(Name="b", CatalogInput={"Parameters": {PARENT_PARAMETER: f"{me}:a"}})
    client.create_database(CatalogId=f"{me}:a/b", DatabaseInput={"Name": "db"})
    facade.declare_table(ln.DeclareTableRequest(id=["a", "b", "db", "t"]))
    assert facade.list_all_tables(ln.ListTablesRequest()).tables == ["a$b$db$t"]
    with pytest.raises(client.exceptions.InvalidInputException):
        client.get_catalogs(IncludeRoot=True, ParentCatalogId=me)


def test_denied_access_is_16_in_every_operation(glue_throwaway: Server) -> None:
    url = glue_throwaway.uri
    client = client_of(url)
    client.create_database(DatabaseInput={"Name": "db"})
    lance = {"TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "lance"}}
    client.create_table(DatabaseName="db", TableInput={"Name": "t", **lance, "StorageDescriptor": {"Location": "s3://l/t"}})
    # One may see the catalogs and nothing in them, one everything and change nothing.
    nobody, reader = principals(url, "glue:GetCatalog*", "glue:Get*")
    database, table = ["123456789012", "db"], ["123456789012", "db", "t"]
    reads: list[tuple[str, Any]] = [
        ("list_namespaces", ln.ListNamespacesRequest(id=database[:1])),
        ("describe_namespace", ln.DescribeNamespaceRequest(id=database)),
        ("namespace_exists", ln.NamespaceExistsRequest(id=database)),
        ("list_tables", ln.ListTablesRequest(id=database)),
        ("list_all_tables", ln.ListTablesRequest()),
        ("describe_table", ln.DescribeTableRequest(id=table)),
        ("table_exists", ln.TableExistsRequest(id=table)),
    ]
    writes: list[tuple[str, Any]] = [
        ("create_namespace", ln.CreateNamespaceRequest(id=["123456789012", "new"])),
        ("create_namespace", ln.CreateNamespaceRequest(id=["lake"])),
        ("declare_table", ln.DeclareTableRequest(id=[*database, "new"], location="s3://l/new")),
        ("register_table", ln.RegisterTableRequest(id=table, location="s3://l/new", mode="Overwrite")),
        ("deregister_table", ln.DeregisterTableRequest(id=table)),
    ]
    for properties, requests in ((nobody, reads + writes), (reader, writes)):
        denied: Any = ln.connect("federator_connectors.glue.GlueNamespace", properties)
        for operation, request in requests:
            with pytest.raises(errors.UnauthenticatedError, match="access denied"):
                getattr(denied, operation)(request)
    readable: Any = ln.connect("federator_connectors.glue.GlueNamespace", reader)
    for operation, request in reads:
        getattr(readable, operation)(request)
