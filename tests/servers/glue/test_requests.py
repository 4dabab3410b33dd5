"""Every request that Glue is sent, and every answer that is read, against the published model of the service.

botocore's Stubber refuses a parameter or an answer that the model does not have; what the requests must hold is stated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from federator.connector import ConcurrentModification, NamespaceAlreadyExists, NamespaceNotFound, TableNotFound
from federator.model import ROOT, Coverage, NamespaceRecord, TableRecord
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import REGION, STATIC

ME = "111122223333"
MADE = datetime(2026, 1, 1, tzinfo=UTC)
ROOT_CATALOG = {"CatalogId": ME, "Name": ME, "ResourceArn": f"arn:aws:glue:{REGION}:{ME}:catalog", "CreateTime": MADE}
FED = {
    "CatalogId": f"{ME}:fed", "Name": "fed", "ResourceArn": f"arn:aws:glue:{REGION}:{ME}:catalog/fed", "CreateTime": MADE,
    "Description": "federated", "Parameters": {"tier": "1"},
    "FederatedCatalog": {"Identifier": "share", "ConnectionName": "c"}, "CatalogProperties": {"CustomProperties": {"a": "b"}},
}  # fmt: skip
DEEP = {"CatalogId": f"{ME}:fed/deep", "Name": "deep", "ResourceArn": f"arn:aws:glue:{REGION}:{ME}:catalog/fed/deep"}
SCOPE = {"CatalogId": f"{ME}:fed/deep"}
DATABASE = {
    "Name": "db", "Description": "d", "LocationUri": "s3://l/db", "Parameters": {"team": "a"}, "CreateTime": MADE,
    "CatalogId": f"{ME}:fed/deep", "CreateTableDefaultPermissions": [],
}  # fmt: skip
TABLE = {
    "Name": "t",
    "DatabaseName": "db",
    "Description": "d",
    "Owner": "ann",
    "TableType": "EXTERNAL_TABLE",
    "Parameters": {"table_type": "lance", "k": "v"},
    "StorageDescriptor": {"Location": "s3://l/t", "Columns": [{"Name": "id", "Type": "bigint"}]},
    "CreateTime": MADE,
    "VersionId": "7",
    # What GetTable answers and UpdateTable refuses.
    "UpdateTime": datetime(2026, 1, 2, tzinfo=UTC),
    "CatalogId": f"{ME}:fed/deep",
    "CreatedBy": "arn:x",
    "IsRegisteredWithLakeFormation": True,
    "IsMaterializedView": False,
}
PATH = ("fed", "deep", "db", "t")
GOT = {**SCOPE, "DatabaseName": "db", "Name": "t"}
CHILDREN = {"Recursive": False}


class Stubbed:
    """A catalog whose clients answer what they are told to, in that order, and nothing else."""

    def __init__(self, catalog: GlueCatalog, reads: Stubber, writes: Stubber) -> None:
        self.catalog = catalog
        self._reads = reads
        self._writes = writes

    def says(self, operation: str, answer: dict[str, Any], **request: Any) -> None:
        self._stub(operation).add_response(operation, answer, request)

    def refuses(self, operation: str, code: str, **request: Any) -> None:
        self._stub(operation).add_client_error(operation, code, "why", 400, expected_params=request)

    def _stub(self, operation: str) -> Stubber:
        return self._reads if operation.startswith("get_") else self._writes

    def all_asked(self) -> None:
        self._reads.assert_no_pending_responses()
        self._writes.assert_no_pending_responses()


@pytest.fixture
def glue() -> Iterator[Stubbed]:
    keys = {"access_key_id": STATIC["aws_access_key_id"], "secret_access_key": STATIC["aws_secret_access_key"]}
    catalog = CONNECTOR.open("aws", CONNECTOR.parse_settings({"region": REGION, **keys}))
    with Stubber(catalog._clients.reads) as reads, Stubber(catalog._clients.writes) as writes:
        yield Stubbed(catalog, reads, writes)


@pytest.fixture
def deep(glue: Stubbed) -> Stubbed:
    """After the catalogs were listed: ``fed`` in the account, ``deep`` in ``fed``."""
    # IncludeRoot is an InvalidInputException beside ParentCatalogId, and an answer may take several pages.
    glue.says("get_catalogs", {"CatalogList": [FED], "NextToken": "n"}, IncludeRoot=True)
    glue.says("get_catalogs", {"CatalogList": [ROOT_CATALOG]}, IncludeRoot=True, NextToken="n")
    glue.says("get_catalogs", {"CatalogList": [], "NextToken": "n"}, ParentCatalogId=ME, **CHILDREN)
    glue.says("get_catalogs", {"CatalogList": [FED]}, ParentCatalogId=ME, **CHILDREN, NextToken="n")
    assert glue.catalog.list_namespaces(ROOT) == [ME, "fed"]
    glue.says("get_catalogs", {"CatalogList": [DEEP]}, ParentCatalogId=FED["CatalogId"], **CHILDREN)
    glue.says("get_catalogs", {"CatalogList": []}, ParentCatalogId=DEEP["CatalogId"], **CHILDREN)
    assert glue.catalog.canonical_path(PATH) == PATH
    glue.all_asked()
    return glue


def test_the_limits_that_planning_keeps_are_those_of_the_service(glue: Stubbed) -> None:
    shapes: Any = glue.catalog._clients.reads.meta.service_model
    claimed, parameters = CONNECTOR.capabilities, shapes.shape_for("ParametersMap")
    assert claimed.property_key_length == parameters.key.metadata["max"]
    assert claimed.property_value_length == parameters.value.metadata["max"]
    assert claimed.names.max_length == shapes.shape_for("NameString").metadata["max"]


def test_catalogs_are_created_described_and_dropped(glue: Stubbed) -> None:
    listed = {"ParentCatalogId": ME, **CHILDREN}
    glue.says("get_catalogs", {"CatalogList": [ROOT_CATALOG]}, IncludeRoot=True)
    glue.says("get_catalogs", {"CatalogList": []}, **listed)
    # Is it a database of the account? A new catalog would take over its short path.
    glue.refuses("get_database", "EntityNotFoundException", Name="fed")
    glue.says("create_catalog", {}, Name="fed", CatalogInput={"Parameters": {"tier": "1"}, "Description": "federated"})
    glue.says("get_catalogs", {"CatalogList": [FED]}, **listed)
    glue.says("get_catalog", {"Catalog": FED}, CatalogId=FED["CatalogId"])
    created = glue.catalog.create_namespace(NamespaceRecord("aws", ("fed",), {"tier": "1"}, doc="federated"))
    assert (created.path, created.properties, created.doc) == (("fed",), {"tier": "1"}, "federated")
    assert created.native_id == "2026-01-01T00:00:00+00:00"
    for _ in range(2):
        glue.says("get_databases", {"DatabaseList": [], "NextToken": "n"}, CatalogId=FED["CatalogId"], MaxResults=100)
        glue.says("get_databases", {"DatabaseList": []}, CatalogId=FED["CatalogId"], MaxResults=100, NextToken="n")
        glue.says("get_catalogs", {"CatalogList": []}, ParentCatalogId=FED["CatalogId"], **CHILDREN)
    glue.says("delete_catalog", {}, CatalogId=FED["CatalogId"])
    glue.catalog.drop_namespace(("fed",))
    glue.all_asked()


def test_a_catalog_that_exists_is_refused_by_glue_too(glue: Stubbed) -> None:
    glue.says("get_catalogs", {"CatalogList": [ROOT_CATALOG]}, IncludeRoot=True)
    glue.says("get_catalogs", {"CatalogList": []}, ParentCatalogId=ME, **CHILDREN)
    glue.refuses("get_database", "EntityNotFoundException", Name="fed")
    glue.refuses("create_catalog", "AlreadyExistsException", Name="fed", CatalogInput={"Parameters": {}})
    with pytest.raises(NamespaceAlreadyExists):
        glue.catalog.create_namespace(NamespaceRecord("aws", ("fed",)))


def test_databases_in_a_nested_catalog(deep: Stubbed) -> None:
    wanted = {"Name": "db", "Parameters": {"team": "a"}, "Description": "d", "LocationUri": "s3://l/db"}
    # Is it a catalog, made meanwhile?
    deep.says("get_catalogs", {"CatalogList": []}, ParentCatalogId=DEEP["CatalogId"], **CHILDREN)
    deep.says("create_database", {}, **SCOPE, DatabaseInput=wanted)
    deep.says("get_database", {"Database": DATABASE}, **SCOPE, Name="db")
    created = deep.catalog.create_namespace(NamespaceRecord("aws", PATH[:-1], {"team": "a"}, "s3://l/db", "d"))
    assert (created.path, created.location, created.doc, created.properties) == (PATH[:-1], "s3://l/db", "d", {"team": "a"})
    deep.says("get_database", {"Database": DATABASE}, **SCOPE, Name="db")
    for _ in range(2):
        deep.says("get_tables", {"TableList": [], "NextToken": "n"}, **SCOPE, DatabaseName="db", MaxResults=100)
        deep.says("get_tables", {"TableList": []}, **SCOPE, DatabaseName="db", MaxResults=100, NextToken="n")
    deep.says("delete_database", {}, **SCOPE, Name="db")
    deep.catalog.drop_namespace(PATH[:-1])
    deep.all_asked()


def test_a_database_of_the_account_is_named_without_a_catalog(glue: Stubbed) -> None:
    """The caller's own root catalog needs no CatalogId, and policies that know none go on working."""
    glue.says("get_catalogs", {"CatalogList": [ROOT_CATALOG]}, IncludeRoot=True)
    glue.says("get_catalogs", {"CatalogList": []}, ParentCatalogId=ME, **CHILDREN)
    glue.says("get_database", {"Database": {"Name": "db"}}, Name="db")
    assert glue.catalog.describe_namespace(("db",)) == NamespaceRecord("aws", (ME, "db"))
    glue.says("get_table", {"Table": TABLE}, DatabaseName="db", Name="t")
    assert glue.catalog.describe_table((ME, "DB", "T")).path == (ME, "db", "t")
    glue.all_asked()


def test_a_table_is_declared_updated_and_deregistered(deep: Stubbed) -> None:
    catalog = deep.catalog
    wanted = {
        "Name": "t",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"k": "v", "table_type": "lance"},
        "StorageDescriptor": {"Location": "s3://l/t", "Columns": []},
        "Description": "d",
        "Owner": "ann",
    }
    deep.says("get_database", {"Database": DATABASE}, **SCOPE, Name="db")
    deep.says("create_table", {}, **SCOPE, DatabaseName="db", TableInput=wanted)
    deep.says("get_table", {"Table": TABLE}, **GOT)
    declared = catalog.declare_table(TableRecord("aws", PATH, "s3://l/t", {"k": "v"}, doc="d", owner="ann"))
    assert (declared.path, declared.native_id, declared.version) == (PATH, "2026-01-01T00:00:00+00:00", "7")

    changed = {
        "Name": "t",
        "Owner": "ann",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "lance", "k": "w"},
        "StorageDescriptor": {"Location": "s3://l/t2", "Columns": [{"Name": "id", "Type": "bigint"}]},
        "Description": "e",
    }
    update = {**SCOPE, "DatabaseName": "db", "TableInput": changed, "VersionId": "7", "SkipArchive": True}
    after = replace(declared, location="s3://l/t2", properties={"k": "w"}, doc="e")
    deep.says("get_table", {"Table": TABLE}, **GOT)
    deep.says("update_table", {}, **update)
    deep.says("get_table", {"Table": {**TABLE, **changed, "VersionId": "8"}}, **GOT)
    updated = catalog.update_table(declared, after)
    assert (updated.location, updated.version) == ("s3://l/t2", "8")

    deep.says("get_table", {"Table": TABLE}, **GOT)
    deep.refuses("update_table", "ConcurrentModificationException", **update)
    with pytest.raises(ConcurrentModification):
        catalog.update_table(declared, after)

    deep.says("get_table", {"Table": TABLE}, **GOT)
    deep.says("delete_table", {}, **GOT)
    # An empty response proves nothing: the removal is read back.
    deep.refuses("get_table", "EntityNotFoundException", **GOT)
    catalog.deregister_table(declared)
    deep.refuses("get_table", "EntityNotFoundException", **GOT)
    with pytest.raises(TableNotFound):
        catalog.deregister_table(declared)
    deep.says("get_table", {"Table": {**TABLE, "StorageDescriptor": {"Location": "s3://l/other"}}}, **GOT)
    with pytest.raises(ConcurrentModification):
        catalog.deregister_table(declared)
    deep.all_asked()


def test_a_table_is_not_declared_in_a_database_that_is_missing(deep: Stubbed) -> None:
    deep.refuses("get_database", "EntityNotFoundException", **SCOPE, Name="db")
    with pytest.raises(NamespaceNotFound):
        deep.catalog.declare_table(TableRecord("aws", PATH, "s3://l/t"))
    deep.all_asked()


def test_the_crawl_of_a_nested_catalog(glue: Stubbed) -> None:
    glue.says("get_catalogs", {"CatalogList": [ROOT_CATALOG, FED]}, IncludeRoot=True)
    glue.says("get_catalog", {"Catalog": ROOT_CATALOG}, CatalogId=ME)
    glue.says("get_catalogs", {"CatalogList": [FED]}, ParentCatalogId=ME, **CHILDREN)
    glue.says("get_databases", {"DatabaseList": []}, MaxResults=100)
    glue.says("get_databases", {"DatabaseList": []}, CatalogId=FED["CatalogId"], MaxResults=100)
    glue.says("get_catalogs", {"CatalogList": [DEEP]}, ParentCatalogId=FED["CatalogId"], **CHILDREN)
    glue.says("get_databases", {"DatabaseList": [DATABASE]}, **SCOPE, MaxResults=100)
    glue.says("get_catalogs", {"CatalogList": []}, ParentCatalogId=DEEP["CatalogId"], **CHILDREN)
    shards = glue.catalog.plan_shards()
    glue.says("get_tables", {"TableList": [TABLE], "NextToken": "n"}, **SCOPE, DatabaseName="db", MaxResults=100)
    glue.says("get_tables", {"TableList": []}, **SCOPE, DatabaseName="db", MaxResults=100, NextToken="n")
    rows = [row for shard in shards for row in glue.catalog.read_shard(shard)]
    covered = {row.namespace for row in rows if isinstance(row, Coverage) and row.complete}
    assert covered == {ROOT, (ME,), ("fed",), ("fed", "deep"), ("fed", "deep", "db")}
    assert [row.path for row in rows if isinstance(row, TableRecord)] == [PATH]
    glue.all_asked()
