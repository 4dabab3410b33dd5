"""A schema of a catalog that belongs to the test, on the configured Unity server."""

from __future__ import annotations

from typing import ClassVar

import lance_namespace as lance
import pytest

from federator.lance.facade import CatalogNamespace
from federator.model import Path
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location
from federator_connectors.unity import CONNECTOR
from tests.fixtures.unity import UnityCatalogOfTest, unity_kind

pytestmark = pytest.mark.timeout(60)


SERVER = "Unity Catalog OSS 0.6.0 (by URL or Docker), else the stub held to its recording"


class _Unity(ConnectorContract):
    connector = CONNECTOR
    unreachable: ClassVar = {"endpoint": "http://127.0.0.1:9", "max_retries": "0"}
    native_page = 100
    write_requests = (b"DELETE ",)

    @pytest.fixture(autouse=True)
    def server(self, unity_catalog: UnityCatalogOfTest) -> None:
        self.catalog_of_test = unity_catalog

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return self.catalog_of_test.properties

    @pytest.fixture
    def namespace(self) -> Path:
        return self.catalog_of_test.schema()

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://lake/elsewhere/{name}.lance"

    if unity_kind() == "url":

        @pytest.mark.skip(reason="a fault here would leave a table that nobody can remove from that server")
        def test_of_eight_that_declare_one_name_one_wins(self) -> None: ...  # type: ignore[override]

    def make_managed(self, namespace: Path, name: str) -> None:
        self.catalog_of_test.managed_table(namespace, name)

    def deny(self, namespace: Path) -> dict[str, str]:
        self.catalog_of_test.deny(namespace)
        return {}

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.catalog_of_test.table(namespace, name, properties={"table_type": "iceberg"})


class TestEveryCatalog(_Unity):
    against = f"{SERVER}; all its catalogs"

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {key: value for key, value in self.catalog_of_test.properties.items() if key != "catalog"}


class TestUnity(_Unity):
    against = f"{SERVER}; the configured catalog"

    def test_a_namespace_needs_its_parent(self, facade: CatalogNamespace, namespace: Path) -> None:
        """Unity's own spec: another catalog than the configured one is invalid (13), whether it exists or not."""
        with pytest.raises(lance.InvalidInputError):
            facade.create_namespace(lance.CreateNamespaceRequest(id=[unique_name("missing"), unique_name("made")]))
