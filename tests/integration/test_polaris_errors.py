"""Every error code of the Polaris connector as the official exception, from what a server really says, one by one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import lance_namespace as lance
import pytest
import requests

from federator.connector import (
    ConcurrentModification,
    Internal,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Unsupported,
)
from federator.connector.namespace import CatalogNamespace
from federator.model import ROOT, NamespaceRecord, Path, TableRecord
from federator_connectors._polaris.catalog import PolarisCatalog
from federator_connectors.polaris import CONNECTOR, PolarisNamespace
from tests.fixtures.polaris import PolarisServer, tables_path
from tests.stubs.polaris import PolarisStub
from tests.stubs.polaris.server import CLIENT

pytestmark = pytest.mark.timeout(60)

PLACE = "s3://lake/t.lance"


@pytest.fixture
def face(polaris_server: PolarisServer) -> Iterator[CatalogNamespace]:
    made = PolarisNamespace(**polaris_server.properties)
    yield made
    made.close()


@pytest.fixture
def ns(polaris_server: PolarisServer, polaris_catalog: str) -> Path:
    return polaris_server.namespace((polaris_catalog, "ns"))


# What the spec names, by a server that keeps state (the real one, where there is one).


def test_1_a_namespace_whose_parent_is_missing(face: CatalogNamespace, ns: Path) -> None:
    with pytest.raises(lance.NamespaceNotFoundError, match="missing"):
        face.create_namespace(lance.CreateNamespaceRequest(id=[ns[0], "missing", "x"]))


@pytest.mark.parametrize("below", [("missing",), ("ns", "missing"), ("ns.missing",)])
def test_1_a_missing_namespace(face: CatalogNamespace, ns: Path, below: Path) -> None:
    missing = [ns[0], *below]
    for ask in (
        lambda: face.list_namespaces(lance.ListNamespacesRequest(id=missing)),
        lambda: face.describe_namespace(lance.DescribeNamespaceRequest(id=missing)),
        lambda: face.namespace_exists(lance.NamespaceExistsRequest(id=missing)),
        lambda: face.drop_namespace(lance.DropNamespaceRequest(id=missing)),
        lambda: face.list_tables(lance.ListTablesRequest(id=missing)),
        lambda: face.declare_table(lance.DeclareTableRequest(id=[*missing, "t"], location=PLACE)),
    ):
        with pytest.raises(lance.NamespaceNotFoundError):
            ask()
    face.drop_namespace(lance.DropNamespaceRequest(id=missing, mode="Skip"))


def test_1_a_missing_catalog_is_a_missing_namespace(face: CatalogNamespace) -> None:
    catalog = f"no_{secrets.token_hex(4)}"
    for ask in (
        lambda: face.list_namespaces(lance.ListNamespacesRequest(id=[catalog])),
        lambda: face.list_namespaces(lance.ListNamespacesRequest(id=[catalog, "ns"])),
        lambda: face.describe_namespace(lance.DescribeNamespaceRequest(id=[catalog])),
        lambda: face.describe_namespace(lance.DescribeNamespaceRequest(id=[catalog, "ns"])),
        lambda: face.create_namespace(lance.CreateNamespaceRequest(id=[catalog, "ns"])),
        lambda: face.drop_namespace(lance.DropNamespaceRequest(id=[catalog, "ns"])),
        lambda: face.list_tables(lance.ListTablesRequest(id=[catalog, "ns"])),
        lambda: face.declare_table(lance.DeclareTableRequest(id=[catalog, "ns", "t"], location=PLACE)),
    ):
        with pytest.raises(lance.NamespaceNotFoundError, match=catalog):
            ask()


def test_2_a_namespace_that_exists(face: CatalogNamespace, ns: Path) -> None:
    with pytest.raises(lance.NamespaceAlreadyExistsError):
        face.create_namespace(lance.CreateNamespaceRequest(id=list(ns)))


def test_3_a_namespace_that_is_not_empty(polaris_server: PolarisServer, face: CatalogNamespace, ns: Path) -> None:
    inside = polaris_server.namespace((*ns, "inside"))
    polaris_server.table((*inside, "t"))
    for path in (ns, inside):
        with pytest.raises(lance.NamespaceNotEmptyError):
            face.drop_namespace(lance.DropNamespaceRequest(id=list(path)))
        with pytest.raises(lance.NamespaceNotEmptyError):
            face.create_namespace(lance.CreateNamespaceRequest(id=list(path), mode="Overwrite"))


@pytest.mark.parametrize("below", [("ns", "t"), ("missing", "t"), ("ns", "missing", "t")])
def test_4_a_missing_table_also_where_its_namespace_is_missing(face: CatalogNamespace, ns: Path, below: Path) -> None:
    path = [ns[0], *below]
    for ask in (
        lambda: face.describe_table(lance.DescribeTableRequest(id=path)),
        lambda: face.table_exists(lance.TableExistsRequest(id=path)),
        lambda: face.deregister_table(lance.DeregisterTableRequest(id=path)),
    ):
        with pytest.raises(lance.TableNotFoundError):
            ask()


@pytest.mark.parametrize("with_namespace", [False, True])
def test_4_a_table_that_goes_between_the_look_and_the_removal(polaris_stub: PolarisServer, with_namespace: bool) -> None:
    """Who removes a table is told by Polaris that its namespace is missing, which is a missing table to the spec."""
    stub = _stub(polaris_stub)
    polaris_stub.namespace(("main", "ns"))
    polaris_stub.table(("main", "ns", "t"))

    def drop() -> None:
        stub.state.drop_table("main", ("ns",), "t")
        if with_namespace:
            stub.state.drop_namespace("main", ("ns",))

    with _opened(stub) as catalog:
        found = catalog.describe_table(("main", "ns", "t"))
        stub.before("DELETE", "/generic-tables/t$", drop)
        with pytest.raises(TableNotFound, match="does not exist"):
            catalog.deregister_table(found)


def test_5_a_table_that_exists(polaris_server: PolarisServer, face: CatalogNamespace, ns: Path) -> None:
    polaris_server.table((*ns, "t"))
    with pytest.raises(lance.TableAlreadyExistsError):
        face.declare_table(lance.DeclareTableRequest(id=[*ns, "t"], location=PLACE))
    with pytest.raises(lance.TableAlreadyExistsError):
        face.register_table(lance.RegisterTableRequest(id=[*ns, "t"], location=PLACE))


def test_13_a_table_of_another_format(polaris_server: PolarisServer, face: CatalogNamespace, ns: Path) -> None:
    polaris_server.table((*ns, "t"), format="delta")
    with pytest.raises(lance.InvalidInputError, match="delta"):
        face.describe_table(lance.DescribeTableRequest(id=[*ns, "t"]))


def test_13_identifiers_with_too_few_levels(face: CatalogNamespace, polaris_catalog: str) -> None:
    with pytest.raises(lance.InvalidInputError):
        face.describe_table(lance.DescribeTableRequest(id=[polaris_catalog, "t"]))
    with pytest.raises(lance.InvalidInputError):
        face.declare_table(lance.DeclareTableRequest(id=[polaris_catalog, "t"]))
    with pytest.raises(lance.InvalidInputError):
        face.deregister_table(lance.DeregisterTableRequest(id=[polaris_catalog, "t"]))


def test_13_a_property_that_polaris_reserves(face: CatalogNamespace, ns: Path) -> None:
    with pytest.raises(lance.InvalidInputError, match="reserved"):
        face.declare_table(lance.DeclareTableRequest(id=[*ns, "t"], location=PLACE, properties={"polaris.x": "y"}))


def test_13_names_that_no_address_holds(face: CatalogNamespace, ns: Path) -> None:
    """A separator inside a name would lead to a table of a deeper namespace."""
    for path in ([ns[0], "ns\x1fdeep", "t"], [*ns, ".."], [*ns, "\ud800"], ["..", "ns", "t"]):
        with pytest.raises(lance.InvalidInputError):
            face.describe_table(lance.DescribeTableRequest(id=path))
    with pytest.raises(lance.InvalidInputError):
        face.list_namespaces(lance.ListNamespacesRequest(id=[ns[0], "a\x1fb"]))
    with pytest.raises(lance.InvalidInputError):
        face.describe_namespace(lance.DescribeNamespaceRequest(id=["\udfff"]))
    with pytest.raises(lance.InvalidInputError, match="slash needs a location"):
        face.declare_table(lance.DeclareTableRequest(id=[*ns, "a/b"]))


def test_0_what_the_spec_rules_out(face: CatalogNamespace, ns: Path) -> None:
    for ask in (
        lambda: face.drop_namespace(lance.DropNamespaceRequest(id=list(ns), behavior="Cascade")),
        lambda: face.describe_table(lance.DescribeTableRequest(id=[*ns, "t"], load_detailed_metadata=True)),
        lambda: face.create_namespace(lance.CreateNamespaceRequest(id=["new_catalog"])),
        lambda: face.drop_namespace(lance.DropNamespaceRequest(id=[ns[0]])),
        lambda: face.drop_table(lance.DropTableRequest(id=[*ns, "t"])),
    ):
        with pytest.raises(lance.UnsupportedOperationError):
            ask()


def test_0_catalogs_are_left_to_administrators_by_the_port_too(polaris_stub: PolarisServer) -> None:
    with _opened(_stub(polaris_stub)) as catalog:
        with pytest.raises(Unsupported, match="administrators"):
            catalog.create_namespace(NamespaceRecord("lake", ("new",)))
        with pytest.raises(Unsupported, match="administrators"):
            catalog.drop_namespace(("main",))


def test_14_a_table_that_was_made_anew_is_not_removed(polaris_server: PolarisServer, ns: Path) -> None:
    polaris_server.table((*ns, "t"))
    settings = CONNECTOR.configure(polaris_server.properties)
    with CONNECTOR.open("lake", settings) as catalog:
        before = catalog.describe_table((*ns, "t"))
        polaris_server.call("DELETE", f"{tables_path(ns)}/t")
        polaris_server.table((*ns, "t"), **{"base-location": "s3://elsewhere/t.lance"})
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(before)
        assert catalog.describe_table((*ns, "t")).location == "s3://elsewhere/t.lance"


# What only a failing server says.

RECORDED_500 = '{"error":{"message":"com.fasterxml.jackson.core.JsonParseException","type":"RuntimeException","code":500}}'
ICEBERG = '{"error":{"message":"why","type":"%s","code":%d}}'


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (500, RECORDED_500, lance.InternalError),
        (500, "", lance.InternalError),
        (401, "", lance.UnauthenticatedError),
        (403, ICEBERG % ("ForbiddenException", 403), lance.PermissionDeniedError),
        (400, "", lance.InvalidInputError),
        (400, ICEBERG % ("BadRequestException", 400), lance.InvalidInputError),
        (404, ICEBERG % ("NotFoundException", 404), lance.InternalError),
        (404, "<html>not here</html>", lance.InternalError),
        (404, "", lance.InternalError),
        (406, ICEBERG % ("UnsupportedOperationException", 406), lance.UnsupportedOperationError),
        (408, ICEBERG % ("TimeoutException", 408), lance.ServiceUnavailableError),
        (409, ICEBERG % ("CommitFailedException", 409), lance.ConcurrentModificationError),
        (409, ICEBERG % ("SomethingNewException", 409), lance.InternalError),
        (429, "", lance.ThrottlingError),
        (502, "<html>", lance.ServiceUnavailableError),
        (503, ICEBERG % ("ServiceFailureException", 503), lance.ServiceUnavailableError),
        (504, "", lance.ServiceUnavailableError),
        (302, "", lance.InvalidInputError),
    ],
)  # fmt: skip
def test_every_operation_tells_what_the_server_said(
    polaris_stub: PolarisServer, status: int, text: str, expected: type[Exception]
) -> None:
    stub = _stub(polaris_stub)
    path = ["main", "ns", "t"]
    operations: dict[str, Callable[[CatalogNamespace], Any]] = {
        "create_namespace": lambda face: face.create_namespace(lance.CreateNamespaceRequest(id=path[:2])),
        "list_namespaces": lambda face: face.list_namespaces(lance.ListNamespacesRequest(id=path[:1])),
        "list_root": lambda face: face.list_namespaces(lance.ListNamespacesRequest(id=[])),
        "describe_namespace": lambda face: face.describe_namespace(lance.DescribeNamespaceRequest(id=path[:2])),
        "describe_catalog": lambda face: face.describe_namespace(lance.DescribeNamespaceRequest(id=path[:1])),
        "drop_namespace": lambda face: face.drop_namespace(lance.DropNamespaceRequest(id=path[:2], mode="Skip")),
        "declare_table": lambda face: face.declare_table(lance.DeclareTableRequest(id=path, location=PLACE)),
        "list_tables": lambda face: face.list_tables(lance.ListTablesRequest(id=path[:2])),
        "describe_table": lambda face: face.describe_table(lance.DescribeTableRequest(id=path)),
        "table_exists": lambda face: face.table_exists(lance.TableExistsRequest(id=path)),
        "deregister_table": lambda face: face.deregister_table(lance.DeregisterTableRequest(id=path)),
    }  # fmt: skip
    for name, ask in operations.items():
        # A source of its own for each, so that no breaker opens; nothing is sent again, so that it is quick.
        settings = CONNECTOR.configure({**polaris_stub.properties, "max_retries": "0"})
        face = PolarisNamespace.of(f"{name}{secrets.token_hex(4)}", settings)
        for method in ("GET", "POST", "DELETE"):
            stub.answer(method, "/v1/(?!oauth)", status, text)
        with pytest.raises(expected) as caught:
            ask(face)
        assert type(caught.value) is expected, name
        assert "s3cr3t" not in str(caught.value)
        stub.faults.clear()
        face.close()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"namespaces": null}', '{"namespaces": [["other", "x"]]}', '{"namespaces": [[]]}']
)
def test_a_listing_that_is_none_is_never_an_empty_one(polaris_stub: PolarisServer, text: str) -> None:
    stub = _stub(polaris_stub)
    stub.answer("GET", "/namespaces$", 200, text)
    with _opened(stub) as catalog, pytest.raises(Internal):
        catalog.list_namespaces(("main",))


@pytest.mark.parametrize(
    "text", ["{}", '{"identifiers": {}}', '{"identifiers": [{"namespace": ["ns"]}]}', '{"identifiers": ["t"]}']
)
def test_a_listing_of_tables_that_is_none_is_never_an_empty_one(polaris_stub: PolarisServer, text: str) -> None:
    stub = _stub(polaris_stub)
    stub.answer("GET", "/generic-tables$", 200, text)
    with _opened(stub) as catalog, pytest.raises(Internal):
        catalog.list_tables(("main", "ns"))


def test_a_list_of_catalogs_that_is_none_is_never_an_empty_one(polaris_stub: PolarisServer) -> None:
    stub = _stub(polaris_stub)
    stub.answer("GET", "/management/v1/catalogs$", 200, "{}")
    with _opened(stub) as catalog, pytest.raises(Internal):
        catalog.list_namespaces(ROOT)


def test_a_table_that_is_none_is_an_error(polaris_stub: PolarisServer) -> None:
    stub = _stub(polaris_stub)
    stub.answer("GET", "/generic-tables/t$", 200, "{}")
    with _opened(stub) as catalog, pytest.raises(Internal):
        catalog.observe(("main", "ns", "t"))


def test_who_may_not_list_catalogs_is_told_what_to_do(polaris_stub: PolarisServer) -> None:
    stub = _stub(polaris_stub)
    stub.forbid("GET", "/management/", "LIST_CATALOGS")
    with _opened(stub) as catalog:
        for ask in (lambda: catalog.list_namespaces(ROOT), catalog.shards, catalog.ping):
            with pytest.raises(PermissionDenied, match=r"polaris\.catalogs"):
                ask()
    with _opened(stub, catalogs="main") as catalog:
        assert catalog.list_namespaces(ROOT) == ["main"]
        assert catalog.ping() == ""


def test_a_table_that_may_not_be_read_is_listed_and_any_other_failure_fails_the_listing(polaris_stub: PolarisServer) -> None:
    stub = _stub(polaris_stub)
    polaris_stub.namespace(("main", "ns"))
    for name in ("a", "denied", "z"):
        polaris_stub.table(("main", "ns", name))
    stub.forbid("GET", "/generic-tables/denied$", "LOAD_TABLE")
    with _opened(stub) as catalog:
        assert catalog.list_tables(("main", "ns")) == ["a", "denied", "z"]
        with pytest.raises(PermissionDenied):
            catalog.observe(("main", "ns", "denied"))
        stub.answer("GET", "/generic-tables/z$", 500)
        with pytest.raises(Internal, match=r"main\$ns\$z"):
            catalog.list_tables(("main", "ns"))


def test_writes_are_sent_once_and_reads_again(polaris_stub: PolarisServer) -> None:
    stub = _stub(polaris_stub)
    polaris_stub.namespace(("main", "ns"))
    stub.requests.clear()
    stub.answer("POST", "/generic-tables$", 503)
    with _opened(stub, max_retries="1") as catalog:
        with pytest.raises(ServiceUnavailable):
            catalog.declare_table(TableRecord("lake", ("main", "ns", "t"), PLACE))
        assert _sent(stub, "POST", "generic-tables") == 1
        stub.answer("GET", "/generic-tables$", 503, times=1)
        assert catalog.list_tables(("main", "ns")) == []
        assert _sent(stub, "GET", "generic-tables") == 2


def test_a_read_timeout_is_milliseconds(polaris_stub: PolarisServer) -> None:
    import time

    stub = _stub(polaris_stub)
    stub.before("GET", "/config$", lambda: time.sleep(0.6))
    with _opened(stub, read_timeout="300", max_retries="0") as catalog, pytest.raises(ServiceUnavailable, match="in time"):
        catalog.describe_namespace(("main",))
    stub.before("GET", "/config$", lambda: time.sleep(0.6))
    with _opened(stub, read_timeout="30000", max_retries="0") as catalog:
        assert catalog.describe_namespace(("main",)).location == "file:///data/wh/main"


def test_the_dot_of_the_spec_is_not_what_a_server_understands(polaris_server: PolarisServer, ns: Path) -> None:
    """Why levels are joined by the unit separator."""
    polaris_server.namespace((*ns, "inside"))
    headers = {"Authorization": f"Bearer {polaris_server.token()}"}
    base = f"{polaris_server.url}/api/catalog/v1/{ns[0]}/namespaces"
    assert requests.get(f"{base}/ns.inside", headers=headers, timeout=30).status_code == 404
    assert requests.get(f"{base}/ns%1Finside", headers=headers, timeout=30).status_code == 200
    assert "ns%1Finside" in tables_path((*ns, "inside"))


def _stub(server: PolarisServer) -> PolarisStub:
    assert server.stub is not None
    return server.stub


def _sent(stub: PolarisStub, method: str, path: str) -> int:
    return sum(request.method == method and re.search(path, request.path) is not None for request in stub.requests)


def _opened(stub: PolarisStub, **more: str) -> PolarisCatalog:
    keys = {"endpoint": stub.url, "client_id": CLIENT[0], "client_secret": CLIENT[1], **more}
    return CONNECTOR.open("lake", CONNECTOR.configure(keys))
