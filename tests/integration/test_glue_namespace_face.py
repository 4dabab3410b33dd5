"""Glue through the official interface, as ``lance_namespace.connect`` opens it."""

from __future__ import annotations

from typing import Any

import lance_namespace as ln
import pytest
from lance_namespace import errors

from federator.demo.servers.glue import PARENT_PARAMETER
from federator.demo.servers.process import Server
from tests.fixtures.glue import GlueAccount, client_of, principals

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def face(glue_account: GlueAccount, s3_storage_options: dict[str, str]) -> Any:
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


def test_the_eight_operations_and_their_modes(face: Any, glue_account: GlueAccount) -> None:
    me = glue_account.account_id

    def create(*path: str, **more: Any) -> Any:
        return face.create_namespace(ln.CreateNamespaceRequest(id=list(path), **more))

    def names(*path: str, **more: Any) -> Any:
        return face.list_namespaces(ln.ListNamespacesRequest(id=list(path), **more))

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
    assert face.describe_namespace(ln.DescribeNamespaceRequest(id=["sales"])).properties == {"other": "b"}

    declared = face.declare_table(ln.DeclareTableRequest(id=["sales", "orders"]))
    assert declared.location == "s3://lance-data/sales/orders.lance"
    assert face.list_tables(ln.ListTablesRequest(id=[me, "sales"])).tables == ["orders"]
    assert face.list_all_tables(ln.ListTablesRequest()).tables == [f"{me}$sales$orders"]
    described = face.describe_table(ln.DescribeTableRequest(id=["sales", "orders"]))
    assert (described.location, described.version) == (declared.location, None)
    assert described.storage_options["aws_region"] == "us-east-1"
    with pytest.raises(errors.TableAlreadyExistsError):
        face.declare_table(ln.DeclareTableRequest(id=[me, "sales", "orders"]))
    with pytest.raises(errors.NamespaceNotEmptyError):
        create(me, "sales", mode="OVERWRITE")
    for id_ in (["sales"], [me, "sales"]):
        with pytest.raises(errors.NamespaceNotEmptyError):
            face.drop_namespace(ln.DropNamespaceRequest(id=id_))
        with pytest.raises(errors.UnsupportedOperationError):
            face.drop_namespace(ln.DropNamespaceRequest(id=id_, behavior="CASCADE"))
    assert face.deregister_table(ln.DeregisterTableRequest(id=["sales", "orders"])).location == declared.location
    face.drop_namespace(ln.DropNamespaceRequest(id=["sales"]))
    with pytest.raises(errors.NamespaceNotFoundError):
        face.drop_namespace(ln.DropNamespaceRequest(id=["sales"]))
    face.drop_namespace(ln.DropNamespaceRequest(id=["sales"], mode="SKIP"))


def test_a_catalog_never_overwrites_a_database_of_its_name(face: Any, glue_account: GlueAccount) -> None:
    me, client = glue_account.account_id, glue_account.client()
    client.create_database(DatabaseInput={"Name": "sales", "Parameters": {"team": "a"}})
    with pytest.raises(errors.NamespaceAlreadyExistsError, match=rf"sales is {me}\$sales"):
        face.create_namespace(ln.CreateNamespaceRequest(id=["sales"], mode="OVERWRITE"))
    assert client.get_database(Name="sales")["Database"]["Parameters"] == {"team": "a"}
    assert face.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == [me]


def test_errors_have_the_codes_of_the_spec(face: Any, glue_account: GlueAccount) -> None:
    client = glue_account.client()
    client.create_database(DatabaseInput={"Name": "db"})
    client.create_table(DatabaseName="db", TableInput={"Name": "hive", "TableType": "EXTERNAL_TABLE"})
    cases = [
        (errors.NamespaceNotFoundError, face.describe_namespace, ln.DescribeNamespaceRequest(id=["no"])),
        (errors.NamespaceNotFoundError, face.list_tables, ln.ListTablesRequest(id=["no"])),
        (errors.NamespaceNotFoundError, face.list_namespaces, ln.ListNamespacesRequest(id=["no", "db"])),
        (errors.NamespaceNotFoundError, face.create_namespace, ln.CreateNamespaceRequest(id=["no", "db"])),
        (errors.NamespaceNotFoundError, face.declare_table, ln.DeclareTableRequest(id=["no", "t"])),
        (errors.TableNotFoundError, face.describe_table, ln.DescribeTableRequest(id=["db", "no"])),
        (errors.TableNotFoundError, face.deregister_table, ln.DeregisterTableRequest(id=["db", "no"])),
        (errors.InvalidInputError, face.describe_table, ln.DescribeTableRequest(id=["db", "hive"])),
        (errors.InvalidInputError, face.deregister_table, ln.DeregisterTableRequest(id=["db", "hive"])),
        (errors.InvalidInputError, face.describe_table, ln.DescribeTableRequest(id=["db"])),
        (errors.UnsupportedOperationError, face.describe_table, ln.DescribeTableRequest(id=["db", "t"], load_detailed_metadata=True)),
    ]  # fmt: skip
    for expected, operation, request in cases:
        with pytest.raises(expected):
            operation(request)


def test_every_request_is_one_that_the_service_takes(face: Any, glue_account: GlueAccount) -> None:
    """GetCatalogs refuses IncludeRoot beside ParentCatalogId; the server here does so too, so that a walk proves it."""
    client, me = glue_account.client(), glue_account.account_id
    client.create_catalog(Name="a", CatalogInput={})
    client.create_catalog(Name="b", CatalogInput={"Parameters": {PARENT_PARAMETER: f"{me}:a"}})
    client.create_database(CatalogId=f"{me}:a/b", DatabaseInput={"Name": "db"})
    face.declare_table(ln.DeclareTableRequest(id=["a", "b", "db", "t"]))
    assert face.list_all_tables(ln.ListTablesRequest()).tables == ["a$b$db$t"]
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
