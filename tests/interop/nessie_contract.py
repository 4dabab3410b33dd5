"""Nessie, with declarations as a client with transactions makes them: the connector itself refuses to declare there.

A declaration of this class is one commit that creates the companion, because Nessie takes the location from no other request. Its
metadata is then inside the Lance table. Everything else is the connector's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from lance_namespace import UnsupportedOperationError

from federator.connector import Catalog, NamespaceNotFound, Unsupported
from federator.lance.facade import CatalogNamespace
from federator.model import Path, TableRecord
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors._iceberg.settings import IcebergSettings
from federator_connectors._polaris.errors import translate_table_errors
from federator_connectors.iceberg import IcebergConnector
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Lie, Send
from tests.fixtures.iceberg import WAREHOUSE
from tests.fixtures.nessie import NessieServer, companion_request
from tests.fixtures.nessie_server import BUCKET

pytestmark = pytest.mark.timeout(120)


class _Committing(IcebergCatalog):
    def declare_table(self, record: TableRecord) -> TableRecord:
        location = record.location or self.default_location(record.path)
        properties = {**record.properties, **({"comment": record.doc} if record.doc else {})}
        self.describe_namespace(record.path[:-1])
        client = self._client
        self._check_name(record.path, client.get_table)
        with translate_table_errors(missing=NamespaceNotFound):
            url, body = client._table_url(record.path), companion_request(location, properties)
            client._http.send("POST", url, body=body, about=f"declaring the table {record.key}")
        return self.describe_table(record.path)


class _Connector(IcebergConnector):
    def open(self, source: str, settings: IcebergSettings) -> IcebergCatalog:
        return _Committing(source, settings)


class TestNessie(ConnectorContract):
    against = "Nessie 0.99.0, with declarations by a commit"
    connector = _Connector()
    # Nessie refuses names that other servers allow.
    has_complete_name_rules = False
    write_requests = (b"DELETE ", b"POST ")
    unreachable: ClassVar = {"endpoint": "http://127.0.0.1:9"}

    @pytest.fixture(autouse=True)
    def server(self, nessie_server: NessieServer) -> Iterator[None]:
        self.nessie = nessie_server
        with HttpProxy(nessie_server.url.removesuffix("/iceberg")) as self.proxy:
            yield

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {**self.nessie.properties, "keeps_files": "true"}

    @pytest.fixture
    def namespace(self) -> Path:
        return self.nessie.namespace((WAREHOUSE, unique_name("ns")))

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://{BUCKET}/contract/{name}.lance"

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.nessie.table((*namespace, name))

    def deny(self, namespace: Path) -> dict[str, str]:
        answer = b'{"error":{"message":"not allowed","type":"ForbiddenException","code":403}}'
        self.proxy.script.set([Lie(f"GET .*{namespace[-1]}/tables", Send(answer, 403))])
        return {"endpoint": f"{self.proxy.url}/iceberg"}

    # Nessie keeps the location of a table.

    def test_an_update_changes_what_it_is_given(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        with pytest.raises(Unsupported, match="keeps its location"):
            super().test_an_update_changes_what_it_is_given(catalog, namespace, location)

    def test_a_table_is_registered_and_registered_again(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        with pytest.raises(UnsupportedOperationError, match="keeps its location"):
            super().test_a_table_is_registered_and_registered_again(facade, namespace, location)
