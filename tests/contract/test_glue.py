"""AWS Glue, in a database of the account's own catalog and in one of a child catalog."""

from __future__ import annotations

from typing import ClassVar

import pytest

from federator.model import Path
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import GlueAccount

pytestmark = pytest.mark.timeout(60)


class _Glue(ConnectorContract):
    connector = CONNECTOR
    native_page = 100
    catalog_id: str
    write_requests = (b"AWSGlue.DeleteTable", b"AWSGlue.UpdateTable")
    unreachable: ClassVar = {"endpoint": "http://127.0.0.1:9", "sts_endpoint": "http://127.0.0.1:9"}

    @pytest.fixture(autouse=True)
    def server(self, glue_account: GlueAccount) -> None:
        self.account = glue_account

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {**self.account.properties, "root": "file:///nonexistent/lake", "drop_cascades": "confirmed"}

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://lake/elsewhere/{name}.lance"

    def make_managed(self, namespace: Path, name: str) -> None:
        self._make(namespace, name, "MANAGED_TABLE", {"table_type": "lance"})

    def make_foreign(self, namespace: Path, name: str) -> None:
        self._make(namespace, name, "EXTERNAL_TABLE", {"table_type": "iceberg"})

    def _make(self, namespace: Path, name: str, kind: str, parameters: dict[str, str]) -> None:
        table = {"Name": name, "TableType": kind, "Parameters": parameters}
        self.account.client().create_table(CatalogId=self.catalog_id, DatabaseName=namespace[-1], TableInput=table)


class TestAccount(_Glue):
    against = "moto's Glue over HTTP, the account's own catalog"

    @pytest.fixture
    def namespace(self) -> Path:
        database = unique_name("db")
        self.catalog_id = self.account.account_id
        self.account.client().create_database(DatabaseInput={"Name": database})
        return (self.account.account_id, database)


class TestChildCatalog(_Glue):
    against = "moto's Glue over HTTP, a child catalog"

    @pytest.fixture
    def namespace(self) -> Path:
        catalog, database = unique_name("catalog"), unique_name("db")
        client = self.account.client()
        client.create_catalog(Name=catalog, CatalogInput={})
        made = client.get_catalogs()["CatalogList"]
        self.catalog_id = next(each["CatalogId"] for each in made if each["Name"] == catalog)
        client.create_database(CatalogId=self.catalog_id, DatabaseInput={"Name": database})
        return (catalog, database)
