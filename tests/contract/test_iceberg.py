"""Apache Iceberg's own REST catalog: a namespace of one level, and a deep one whose names contain separators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import ClassVar

import pytest

from federator.model import Path
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location
from federator_connectors.iceberg import CONNECTOR
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Lie, Send
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer

pytestmark = pytest.mark.timeout(120)

SERVER = "Apache Iceberg's RESTCatalogServlet 1.11.0 over a JdbcCatalog"


class _Iceberg(ConnectorContract):
    connector = CONNECTOR
    write_requests = (b"DELETE ", b"POST ")
    unreachable: ClassVar = {"endpoint": "http://127.0.0.1:9"}
    inside: ClassVar[Path] = ()

    @pytest.fixture(autouse=True)
    def server(self, iceberg_server: IcebergServer, tmp_path: FilePath) -> Iterator[None]:
        self.iceberg, self.directory = iceberg_server, tmp_path
        with HttpProxy(iceberg_server.url) as self.proxy:
            yield

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return self.iceberg.properties

    @pytest.fixture
    def namespace(self) -> Path:
        path: Path = (WAREHOUSE,)
        for name in (*self.inside, unique_name("ns")):
            path = (*path, name)
            if name not in self.inside or path not in _MADE:
                self.iceberg.namespace(path, {"location": f"file://{self.directory}/{path[-1]}"})
                _MADE.add(path)
        return path

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"file://{self.directory}/elsewhere/{name}.lance"

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.iceberg.table((*namespace, name))

    def deny(self, namespace: Path) -> dict[str, str]:
        # The server has no permissions, so a proxy answers in its place.
        answer = b'{"error":{"message":"not allowed","type":"ForbiddenException","code":403}}'
        self.proxy.script.set([Lie(f"GET .*{namespace[-1]}/tables", Send(answer, 403))])
        return {"endpoint": self.proxy.url}


#: namespaces that all tests of the session share
_MADE: set[Path] = set()


class TestTop(_Iceberg):
    against = f"{SERVER}; a namespace of one level"


class TestDeep(_Iceberg):
    against = f"{SERVER}; a deep namespace with odd names"
    inside = ("with space", "with/slash", "per%cent %2F", "dollar$ünï😀", "UPPER")

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.iceberg.view((*namespace, name))
