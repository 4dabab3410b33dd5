"""The connections of one configured namespace: at most ``client.pool-size``, however many callers it has."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.model import Path
from tests.adversary.http_proxy import HttpProxy
from tests.fixtures.iceberg import WAREHOUSE

pytestmark = pytest.mark.timeout(120)

_CALLERS = 12


class CountingProxy(HttpProxy):
    """Forwards everything, and counts the connections: those that are open, and the most that were open at once."""

    def __init__(self, target: str) -> None:
        self._counting = threading.Lock()
        self._open = self.most = 0
        super().__init__(target)

    def serve(self, connection: socket.socket) -> None:
        with self._counting:
            self._open += 1
            self.most = max(self.most, self._open)
        try:
            super().serve(connection)
        finally:
            with self._counting:
                self._open -= 1


def _glue(request: pytest.FixtureRequest) -> tuple[Mapping[str, str], Path]:
    account = request.getfixturevalue("glue_account")
    return account.properties, (account.account_id, "pool")


def _unity(request: pytest.FixtureRequest) -> tuple[Mapping[str, str], Path]:
    catalog = request.getfixturevalue("unity_catalog")
    return catalog.properties, (catalog.name, "pool")


def _polaris(request: pytest.FixtureRequest) -> tuple[Mapping[str, str], Path]:
    server, catalog = (request.getfixturevalue(name) for name in ("polaris_server", "polaris_catalog"))
    return server.properties, (catalog, "pool")


def _iceberg(request: pytest.FixtureRequest) -> tuple[Mapping[str, str], Path]:
    return request.getfixturevalue("iceberg_server").properties, (WAREHOUSE, "pool")


_CASES = {
    "glue.GlueNamespace": _glue,
    "unity.UnityNamespace": _unity,
    "polaris.PolarisNamespace": _polaris,
    "iceberg.IcebergNamespace": _iceberg,
}


@pytest.mark.parametrize("name", _CASES)
def test_the_pool_size_is_the_number_of_connections_of_one_namespace(
    request: pytest.FixtureRequest, tmp_path: Any, name: str
) -> None:
    properties, namespace = _CASES[name](request)
    implementation = f"federator_connectors.{name}"
    root = {"root": f"file://{tmp_path}"}
    direct: Any = ln.connect(implementation, {**properties, **root})
    direct.create_namespace(ln.CreateNamespaceRequest(id=list(namespace)))
    tables = [f"t{number}" for number in range(3)]
    for table in tables:
        direct.declare_table(ln.DeclareTableRequest(id=[*namespace, table]))
    with CountingProxy(properties["endpoint"]) as proxy:
        pooled: Any = ln.connect(implementation, {**properties, **root, "endpoint": proxy.url, "client.pool-size": "3"})
        with ThreadPoolExecutor(_CALLERS) as threads:
            listed = threads.map(lambda _: pooled.list_tables(ln.ListTablesRequest(id=list(namespace))).tables, range(48))
            assert [sorted(names) for names in listed] == [tables] * 48
        assert 1 < proxy.most <= 3
        # A namespace that was closed connects again.
        pooled.close()
        assert sorted(pooled.list_tables(ln.ListTablesRequest(id=list(namespace))).tables) == tables
        pooled.close()
    for table in tables:
        direct.deregister_table(ln.DeregisterTableRequest(id=[*namespace, table]))
    context = {"header.x-federator-confirm": "cascades"}
    direct.drop_namespace(ln.DropNamespaceRequest(id=list(namespace), context=context))
    direct.close()


@pytest.mark.parametrize("name", _CASES)
def test_a_namespace_that_one_caller_closes_stays_usable_for_the_others(
    request: pytest.FixtureRequest, tmp_path: Any, name: str
) -> None:
    properties, namespace = _CASES[name](request)
    shared: Any = ln.connect(f"federator_connectors.{name}", {**properties, "root": f"file://{tmp_path}"})
    namespace = (*namespace[:-1], "closed")
    shared.create_namespace(ln.CreateNamespaceRequest(id=list(namespace)))
    for number in range(3):
        shared.declare_table(ln.DeclareTableRequest(id=[*namespace, f"t{number}"]))
    ended = threading.Event()

    def close_often() -> None:
        while not ended.wait(0.002):
            shared.close()

    closing = threading.Thread(target=close_often)
    closing.start()
    try:
        with ThreadPoolExecutor(6) as threads:
            listed = threads.map(lambda _: shared.list_tables(ln.ListTablesRequest(id=list(namespace))).tables, range(60))
            assert [sorted(names) for names in listed] == [["t0", "t1", "t2"]] * 60
    finally:
        ended.set()
        closing.join()
        shared.close()


@pytest.mark.parametrize(
    ("name", "location"), [("glue.GlueNamespace", "database.location-uri"), ("iceberg.IcebergNamespace", "location")]
)
def test_odd_names_below_the_location_of_a_namespace_are_tables_of_their_own(
    request: pytest.FixtureRequest, tmp_path: Any, name: str, location: str
) -> None:
    """A default location is a URI, and pylance ends a path at `#` and `?`."""
    properties, namespace = _CASES[name](request)
    namespace = (*namespace[:-1], "odd")
    catalog: Any = ln.connect(f"federator_connectors.{name}", properties)
    create_namespace_request = ln.CreateNamespaceRequest(id=list(namespace), properties={location: f"file://{tmp_path}/odd"})
    catalog.create_namespace(create_namespace_request)
    names = ["k#one", "k#two", "m?one", "100%a2", "q%20w", "q w"]
    for table in names:
        declared = catalog.declare_table(ln.DeclareTableRequest(id=[*namespace, table]))
        lance.write_dataset(pa.table({"name": [table]}), declared.location, mode="append")
    for table in names:
        described = catalog.describe_table(ln.DescribeTableRequest(id=[*namespace, table]))
        assert lance.dataset(described.location).to_table().to_pydict() == {"name": [table]}
    assert sorted(path.name for path in (tmp_path / "odd").glob("*.lance")) == sorted(f"{table}.lance" for table in names)
    catalog.close()
