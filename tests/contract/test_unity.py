"""A schema of a catalog of the test's own, on whichever Unity server the tests run against."""

from __future__ import annotations

from typing import ClassVar

import lance_namespace as lance
import pytest

from federator.connector.namespace import CatalogNamespace
from federator.model import Path
from federator.testing.contract import ConnectorContract, fresh
from federator.testing.contract.base import Location
from federator_connectors.unity import CONNECTOR
from tests.fixtures.unity import UnityCatalogOfTest

pytestmark = pytest.mark.timeout(60)


class TestUnity(ConnectorContract):
    against = "Unity Catalog OSS 0.6.0 (by URL or Docker), else the stub held to its recording"
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

    def make_managed(self, namespace: Path, name: str) -> None:
        self.catalog_of_test.managed_table(namespace, name)

    def deny(self, namespace: Path) -> dict[str, str]:
        self.catalog_of_test.deny(namespace)
        return {}

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.catalog_of_test.table(namespace, name, properties={"table_type": "iceberg"})

    def test_a_namespace_needs_its_parent(self, face: CatalogNamespace, namespace: Path) -> None:
        """Unity's own spec: another catalog than the configured one is invalid (13), whether it exists or not."""
        with pytest.raises(lance.InvalidInputError):
            face.create_namespace(lance.CreateNamespaceRequest(id=[fresh("missing"), fresh("made")]))
