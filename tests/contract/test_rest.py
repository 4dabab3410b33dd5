"""Lance REST: the official protocol against pylance's own reference server, the general one against its stub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import lance_namespace as lance
import pytest
import requests

from federator.connector import Catalog, Unsupported
from federator.lance.facade import CatalogNamespace
from federator.model import Path
from federator.testing.contract import ODD_NAMES, ConnectorContract, namespaces, unique_name
from federator.testing.contract.base import Location
from federator_connectors._rest.settings import RestSettings
from federator_connectors.rest import CONNECTOR, RestConnector
from tests.fixtures.rest import RestServer
from tests.stubs.general_rest import GeneralRestStub

_CLOSED = "http://127.0.0.1:9"


class _General(RestConnector):
    """The connector with the capabilities that the suite's choice of tests is to see: those of its settings."""

    capabilities = CONNECTOR.capabilities_for(RestSettings(uri=_CLOSED, protocol="general", drop_keeps_data=True))


class _Lance(RestConnector):
    capabilities = CONNECTOR.capabilities_for(RestSettings(uri=_CLOSED))


class TestLance(ConnectorContract):
    """pylance's RestAdapter over a directory with a manifest, in a namespace inside it."""

    against = "pylance's RestAdapter over a directory with a manifest (`lance`)"
    connector = _Lance()
    write_requests = (b"/deregister",)
    unreachable: ClassVar = {"uri": _CLOSED}
    native_page = 3

    @pytest.fixture(autouse=True)
    def use_server(self, rest_server: RestServer) -> None:
        self.server = rest_server

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {**self.server.properties, "page_size": "3"}

    @pytest.fixture
    def namespace(self) -> Path:
        name = unique_name("ns")
        requests.post(f"{self.server.url}/v1/namespace/{name}/create", json={}, timeout=30).raise_for_status()
        return (name,)

    @pytest.fixture
    def location(self, namespace: Path) -> Location:
        return lambda name: f"{self.server.root}/{namespace[0]}/{name}.lance"

    def test_every_namespace_name_is_kept_or_refused(
        self, facade: CatalogNamespace, new_namespace_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The reference server puts names into its queries as they are: tests/servers/rest/test_servers.py shows what it says.
        monkeypatch.setattr(namespaces, "ODD_NAMES", [name for name in ODD_NAMES if "'" not in name])
        super().test_every_namespace_name_is_kept_or_refused(facade, new_namespace_path)


class TestGeneral(ConnectorContract):
    """The general protocol, two levels deep."""

    against = "the contract stub (`general`)"
    connector = _General()
    write_requests = (b"/DropTable", b"/AlterTable")
    unreachable: ClassVar = {"uri": _CLOSED}
    native_page = 3

    @pytest.fixture(autouse=True)
    def use_server(self, general_stub: GeneralRestStub) -> Iterator[None]:
        self.stub = general_stub
        general_stub.world.page_size = 3

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {"uri": self.stub.url, "protocol": "general", "root": "file:///nonexistent/lake", "drop_keeps_data": "true"}

    @pytest.fixture
    def namespace(self) -> Path:
        path = (unique_name("upper"), unique_name("lower"))
        self.stub.world.namespaces |= {path[:1]: {}, path: {}}
        return path

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://lake/elsewhere/{name}.lance"

    def make_no_lance_table(self, namespace: Path, name: str) -> None:
        path = (*namespace, name)
        self.stub.world.tables[path] = {"location": f"s3://lake/{name}", "properties": {}}
        self.stub.world.not_lance.add(path)

    def deny(self, namespace: Path) -> dict[str, str]:
        self.stub.world.denied.add(namespace)
        return {"auth_token": "limited"}

    # The spec's AlterTable changes properties only, and what a server lists are tables whether they can be loaded or not.

    def test_an_update_changes_what_it_is_given(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declare_new_table(catalog, namespace, location, properties={"team": "sales", "old": "1"})
        updated = catalog.update_table(made, replace(made, properties={"team": "ops", "new": "2"}))
        assert updated.properties == {"team": "ops", "new": "2"}
        assert catalog.describe_table(made.path).digest == updated.digest
        for change in ({"location": location("moved")}, {"doc": "told"}):
            with pytest.raises(Unsupported):
                catalog.update_table(updated, replace(updated, **change))

    def test_a_table_is_registered_and_registered_again(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        path = [*namespace, unique_name("t")]
        request: Any = {"id": path, "location": location("one")}
        facade.register_table(lance.RegisterTableRequest(**request))
        with pytest.raises(lance.TableAlreadyExistsError):
            facade.register_table(lance.RegisterTableRequest(**request))
        again = facade.register_table(lance.RegisterTableRequest(**request, mode="Overwrite", properties={"team": "ops"}))
        assert again.properties == {"team": "ops", "table_type": "lance"}
        with pytest.raises(lance.UnsupportedOperationError):
            facade.register_table(lance.RegisterTableRequest(id=path, location=location("moved"), mode="Overwrite"))

    def test_what_is_no_lance_table_is_listed_and_cannot_be_loaded(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path
    ) -> None:
        self.make_no_lance_table(namespace, "odd")
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == ["odd"]
        with pytest.raises(lance.InvalidInputError, match="does not follow the Lance table format"):
            facade.describe_table(lance.DescribeTableRequest(id=[*namespace, "odd"]))
        assert catalog.observe((*namespace, "odd")).foreign
        with pytest.raises(lance.TableAlreadyExistsError):
            facade.declare_table(lance.DeclareTableRequest(id=[*namespace, "odd"]))
