"""The ``rest`` connector reads and writes the service over both protocols and passes the contract suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from federator.model import Path
from federator.testing.contract import (
    ODD_NAMES,
    ConnectorContract,
    FailureContract,
    WriteContract,
    namespaces,
    tables,
)
from federator.testing.contract.base import Contract, Location
from federator_connectors._rest.settings import RestSettings
from federator_connectors.rest import CONNECTOR, RestConnector
from tests.unit.api.lance.conftest import Service, served

_CLOSED = "http://127.0.0.1:9"
#: of the suite's odd names those that a URL, a delimiter or a header could trip over; each is some ten durable transactions
_ODD = [name for name in ODD_NAMES if set(name) & set("/%$?#&.\0\n") or len(name) > 255 or not name.isascii()]


class _Lance(RestConnector):
    capabilities = CONNECTOR.capabilities_for(RestSettings(uri=_CLOSED))


class _General(RestConnector):
    capabilities = CONNECTOR.capabilities_for(RestSettings(uri=_CLOSED, protocol="general"))


@pytest.fixture(scope="class")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("contract"), {}) as service:
        yield service


class _Service(Contract):
    """Each class has a service of its own: a crawl reads all that is there."""

    unreachable: ClassVar[Mapping[str, str] | None] = {"uri": _CLOSED}
    native_page = 3
    service: Service

    @pytest.fixture(autouse=True)
    def server(self, running: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = running
        for module in (namespaces, tables):
            monkeypatch.setattr(module, "ODD_NAMES", _ODD)

    @pytest.fixture
    def namespace(self) -> Path:
        return self.service.namespace()

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://lake/elsewhere/{name}.lance"


class TestLanceProtocol(_Service, ConnectorContract):
    """The whole suite."""

    against = "the service's /v1 over a catalog in memory"
    connector = _Lance()

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {"uri": self.service.url, "page_size": "3"}


class TestGeneralProtocol(_Service, WriteContract, FailureContract):
    """What writes and fails; the official facade over it is the connector's own, and tested with its stub."""

    against = "the service's general spec over a catalog in memory"
    connector = _General()

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {"uri": self.service.url, "protocol": "general", "page_size": "3", "root": "s3://lake"}
