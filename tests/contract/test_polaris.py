"""Apache Polaris: a namespace of one level, and a deep one whose names contain separators."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest

from federator.lance import facade
from federator.model import Path
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location
from federator_connectors.polaris import CONNECTOR
from tests.fixtures.polaris import PolarisServer, polaris_kind

pytestmark = pytest.mark.timeout(120)


SERVER = "Apache Polaris 1.4.1 (by URL or Docker), else the stub held to its recording"


class _Polaris(ConnectorContract):
    connector = CONNECTOR
    write_requests = (b"DELETE ",)
    unreachable: ClassVar = {"endpoint": "http://127.0.0.1:9"}
    inside: ClassVar[Path] = ()

    @pytest.fixture(autouse=True)
    def server(self, polaris_server: PolarisServer, polaris_catalog: str, monkeypatch: pytest.MonkeyPatch) -> None:
        # The catalog's storage is in S3, where no test has anything: nothing is at the location of a new table.
        monkeypatch.setattr(facade, "is_unused", lambda *_: True)
        self.polaris, self.catalog_name = polaris_server, polaris_catalog

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {**self.polaris.properties, "root": "file:///nonexistent/lake"}

    @pytest.fixture
    def namespace(self) -> Path:
        path: Path = (self.catalog_name,)
        for name in (*self.inside, unique_name("ns")):
            path = self.polaris.namespace((*path, name))
        return path

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://lake/elsewhere/{name}.lance"

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.polaris.table((*namespace, name), format="delta")

    if polaris_kind() == "stub":

        def deny(self, namespace: Path) -> dict[str, str]:
            stub = self.polaris.stub
            assert stub is not None
            inside = re.escape("\x1f".join(namespace[1:]))
            stub.forbid("GET", f"/{namespace[0]}/namespaces/{inside}/generic-tables$", "LIST_TABLES")
            return {}


class TestTop(_Polaris):
    against = f"{SERVER}; a namespace of one level"


class TestDeep(_Polaris):
    against = f"{SERVER}; a deep namespace with odd names"
    inside = ("with.dots", "with/slash", "per%cent %2F", "dollar$ünï😀", "UPPER")


class TestPaged(TestDeep):
    """Pages of one namespace each, where the server has paging on."""

    against = f"{SERVER}; pages of one"

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {**self.polaris.properties, "page_size": "1"}
