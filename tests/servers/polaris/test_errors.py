"""Each error code of the Polaris connector as the official exception, from the server's response."""

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
    InvalidInput,
    NameNotAllowed,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.lance.facade import CatalogNamespace
from federator.model import ROOT, NamespaceRecord, Path, TableRecord
from federator_connectors._polaris.catalog import PolarisCatalog
from federator_connectors.polaris import CONNECTOR, PolarisNamespace
from tests.fixtures.polaris import PolarisServer, tables_path
from tests.stubs.polaris import PolarisStub
from tests.stubs.polaris.server import CLIENT

pytestmark = pytest.mark.timeout(60)

LOCATION = "s3://lake/t.lance"


@pytest.fixture
def facade(polaris_server: PolarisServer) -> Iterator[CatalogNamespace]:
    polaris_namespace = PolarisNamespace(**polaris_server.properties)
    yield polaris_namespace
    polaris_namespace.close()


@pytest.fixture
def ns(polaris_server: PolarisServer, polaris_catalog: str) -> Path:
    return polaris_server.namespace((polaris_catalog, "ns"))


# What the spec names, by a server that keeps state (the real one, where there is one).


def test_1_a_namespace_whose_parent_is_missing(facade: CatalogNamespace, ns: Path) -> None:
    with pytest.raises(lance.NamespaceNotFoundError, match="missing"):
        facade.create_namespace(lance.CreateNamespaceRequest(id=[ns[0], "missing", "x"]))


@pytest.mark.parametrize("below", [("missing",), ("ns", "missing"), ("ns.missing",)])
def test_1_a_missing_namespace(facade: CatalogNamespace, ns: Path, below: Path) -> None:
    missing = [ns[0], *below]
    for ask in (
        lambda: facade.list_namespaces(lance.ListNamespacesRequest(id=missing)),
        lambda: facade.describe_namespace(lance.DescribeNamespaceRequest(id=missing)),
        lambda: facade.namespace_exists(lance.NamespaceExistsRequest(id=missing)),
        lambda: facade.drop_namespace(lance.DropNamespaceRequest(id=missing)),
        lambda: facade.list_tables(lance.ListTablesRequest(id=missing)),
        lambda: facade.declare_table(lance.DeclareTableRequest(id=[*missing, "t"], location=LOCATION)),
    ):
        with pytest.raises(lance.NamespaceNotFoundError):
            ask()
    facade.drop_namespace(lance.DropNamespaceRequest(id=missing, mode="Skip"))


def test_1_a_missing_catalog_is_a_missing_namespace(facade: CatalogNamespace) -> None:
    catalog = f"no_{secrets.token_hex(4)}"
    for ask in (
        lambda: facade.list_namespaces(lance.ListNamespacesRequest(id=[catalog])),
        lambda: facade.list_namespaces(lance.ListNamespacesRequest(id=[catalog, "ns"])),
        lambda: facade.describe_namespace(lance.DescribeNamespaceRequest(id=[catalog])),
        lambda: facade.describe_namespace(lance.DescribeNamespaceRequest(id=[catalog, "ns"])),
        lambda: facade.create_namespace(lance.CreateNamespaceRequest(id=[catalog, "ns"])),
        lambda: facade.drop_namespace(lance.DropNamespaceRequest(id=[catalog, "ns"])),
        lambda: facade.list_tables(lance.ListTablesRequest(id=[catalog, "ns"])),
        lambda: facade.declare_table(lance.DeclareTableRequest(id=[catalog, "ns", "t"], location=LOCATION)),
    ):
        with pytest.raises(lance.NamespaceNotFoundError, match=catalog):
            ask()


def test_2_a_namespace_that_exists(facade: CatalogNamespace, ns: Path) -> None:
    with pytest.raises(lance.NamespaceAlreadyExistsError):
        facade.create_namespace(lance.CreateNamespaceRequest(id=list(ns)))


def test_3_a_namespace_that_is_not_empty(polaris_server: PolarisServer, facade: CatalogNamespace, ns: Path) -> None:
    inside = polaris_server.namespace((*ns, "inside"))
    polaris_server.table((*inside, "t"))
    for path in (ns, inside):
        with pytest.raises(lance.NamespaceNotEmptyError):
            facade.drop_namespace(lance.DropNamespaceRequest(id=list(path)))
        with pytest.raises(lance.NamespaceNotEmptyError):
            facade.create_namespace(lance.CreateNamespaceRequest(id=list(path), mode="Overwrite"))


@pytest.mark.parametrize("below", [("ns", "t"), ("missing", "t"), ("ns", "missing", "t")])
def test_4_a_missing_table_also_where_its_namespace_is_missing(facade: CatalogNamespace, ns: Path, below: Path) -> None:
    path = [ns[0], *below]
    for ask in (
        lambda: facade.describe_table(lance.DescribeTableRequest(id=path)),
        lambda: facade.table_exists(lance.TableExistsRequest(id=path)),
        lambda: facade.deregister_table(lance.DeregisterTableRequest(id=path)),
    ):
        with pytest.raises(lance.TableNotFoundError):
            ask()


@pytest.mark.parametrize("with_namespace", [False, True])
def test_4_a_table_that_goes_between_the_look_and_the_removal(polaris_stub: PolarisServer, with_namespace: bool) -> None:
    """Polaris answers the removal of a table with a missing namespace, which the spec calls a missing table."""
    stub = _stub(polaris_stub)
    polaris_stub.namespace(("main", "ns"))
    polaris_stub.table(("main", "ns", "t"))

    def drop() -> None:
        stub.state.drop_table("main", ("ns",), "t")
        if with_namespace:
            stub.state.drop_namespace("main", ("ns",))

    with _opened(stub) as catalog:
        described = catalog.describe_table(("main", "ns", "t"))
        stub.before("DELETE", "/generic-tables/t$", drop)
        with pytest.raises(TableNotFound, match="does not exist"):
            catalog.deregister_table(described)


def test_5_a_table_that_exists(polaris_server: PolarisServer, facade: CatalogNamespace, ns: Path) -> None:
    polaris_server.table((*ns, "t"))
    with pytest.raises(lance.TableAlreadyExistsError):
        facade.declare_table(lance.DeclareTableRequest(id=[*ns, "t"], location=LOCATION))
    with pytest.raises(lance.TableAlreadyExistsError):
        facade.register_table(lance.RegisterTableRequest(id=[*ns, "t"], location=LOCATION))


@pytest.mark.parametrize("kind", ["table", "view"])
def test_5_a_name_that_an_iceberg_object_holds(polaris_stub: PolarisServer, kind: str) -> None:
    """No listing of generic tables has it, and a request for the generic table is answered 404."""
    stub = _stub(polaris_stub)
    path = (*polaris_stub.namespace(("main", "ns")), "t")
    stub.state.add_iceberg("main", ("ns",), "t", kind)
    with _opened(stub) as catalog:
        assert catalog.observe(path).foreign == f"an Iceberg {kind}"
        assert catalog.observe((*path[:-1], "u")).is_absent
        assert catalog.observe(("main", "missing", "t")).is_absent
        with pytest.raises(TableAlreadyExists):
            catalog.declare_table(TableRecord("lake", path, LOCATION))
        stub.answer("HEAD", f"/{kind}s/t$", 403)
        with pytest.raises(PermissionDenied):
            catalog.observe(path)


def test_13_a_table_of_another_format(polaris_server: PolarisServer, facade: CatalogNamespace, ns: Path) -> None:
    polaris_server.table((*ns, "t"), format="delta")
    with pytest.raises(lance.InvalidInputError, match="delta"):
        facade.describe_table(lance.DescribeTableRequest(id=[*ns, "t"]))


def test_13_identifiers_with_too_few_levels(facade: CatalogNamespace, polaris_catalog: str) -> None:
    with pytest.raises(lance.InvalidInputError):
        facade.describe_table(lance.DescribeTableRequest(id=[polaris_catalog, "t"]))
    with pytest.raises(lance.InvalidInputError):
        facade.declare_table(lance.DeclareTableRequest(id=[polaris_catalog, "t"]))
    with pytest.raises(lance.InvalidInputError):
        facade.deregister_table(lance.DeregisterTableRequest(id=[polaris_catalog, "t"]))
    for levels, limit in (([], None), ([polaris_catalog], None), ([polaris_catalog], 1)):
        with pytest.raises(lance.InvalidInputError, match="2 levels or more"):
            facade.list_tables(lance.ListTablesRequest(id=levels, limit=limit))
    assert facade.list_all_tables(lance.ListTablesRequest(id=[polaris_catalog])).tables == []


def test_13_a_property_that_polaris_reserves(facade: CatalogNamespace, ns: Path) -> None:
    with pytest.raises(lance.InvalidInputError, match="reserved"):
        facade.declare_table(lance.DeclareTableRequest(id=[*ns, "t"], location=LOCATION, properties={"polaris.x": "y"}))


@pytest.mark.parametrize(
    ("version", "name", "allowed"),
    [
        ((1, 4), "a/b", True), ((1, 4), " a", True), ((1, 4), "a:b", True),
        ((1, 5), "a/b", False), ((1, 5), "a ", False), ((1, 5), "a:b", True),
        ((1, 6), "a/b", False), ((1, 6), "a:b", False), ((1, 6), "a+b", False), ((1, 6), "a b", True),
    ],
)  # fmt: skip
def test_13_a_name_that_a_version_refuses(
    polaris_stub: PolarisServer, version: tuple[int, int], name: str, allowed: bool
) -> None:
    polaris_stub.catalog("s3", "s3://lake/wh")
    polaris_stub.namespace(("s3", "ns"))
    _stub(polaris_stub).state.version = version
    with _opened(_stub(polaris_stub)) as catalog:
        for make in (
            lambda: catalog.create_namespace(NamespaceRecord("lake", ("s3", name))),
            lambda: catalog.declare_table(TableRecord("lake", ("s3", "ns", name), LOCATION)),
        ):
            if allowed:
                assert make().path[-1] == name
                continue
            with pytest.raises(NameNotAllowed):
                make()
            assert not CONNECTOR.capabilities.names.restricted_by([name]).allows(name)


def test_13_a_name_that_a_catalog_of_files_refuses(polaris_stub: PolarisServer) -> None:
    with _opened(_stub(polaris_stub)) as catalog, pytest.raises(NameNotAllowed):
        catalog.create_namespace(NamespaceRecord("lake", ("main", "a b")))
    # What is refused for another reason teaches nothing about names.
    with _opened(_stub(polaris_stub)) as catalog, pytest.raises(InvalidInput) as caught:
        catalog.create_namespace(NamespaceRecord("lake", ("main", "a:b"), {"polaris.x": "y"}))
    assert type(caught.value) is InvalidInput


def test_13_names_that_no_address_holds(facade: CatalogNamespace, ns: Path) -> None:
    """A separator inside a name would lead to a table of a deeper namespace."""
    for path in ([ns[0], "ns\x1fdeep", "t"], [*ns, ".."], [*ns, "\ud800"], ["..", "ns", "t"]):
        with pytest.raises(lance.InvalidInputError):
            facade.describe_table(lance.DescribeTableRequest(id=path))
    with pytest.raises(lance.InvalidInputError):
        facade.list_namespaces(lance.ListNamespacesRequest(id=[ns[0], "a\x1fb"]))
    with pytest.raises(lance.InvalidInputError):
        facade.describe_namespace(lance.DescribeNamespaceRequest(id=["\udfff"]))
    with pytest.raises(lance.InvalidInputError, match="slash needs a location"):
        facade.declare_table(lance.DeclareTableRequest(id=[*ns, "a/b"]))


def test_0_what_the_spec_rules_out(facade: CatalogNamespace, ns: Path) -> None:
    for ask in (
        lambda: facade.drop_namespace(lance.DropNamespaceRequest(id=list(ns), behavior="Cascade")),
        lambda: facade.describe_table(lance.DescribeTableRequest(id=[*ns, "t"], load_detailed_metadata=True)),
        lambda: facade.drop_table(lance.DropTableRequest(id=[*ns, "t"])),
    ):
        with pytest.raises(lance.UnsupportedOperationError):
            ask()


def test_13_a_new_or_dropped_namespace_has_at_least_two_levels(facade: CatalogNamespace, ns: Path) -> None:
    for ask in (
        lambda: facade.create_namespace(lance.CreateNamespaceRequest(id=["new_catalog"])),
        lambda: facade.drop_namespace(lance.DropNamespaceRequest(id=[ns[0]])),
    ):
        with pytest.raises(lance.InvalidInputError, match=r"only namespaces of 2 or more levels can be (created|dropped)"):
            ask()


def test_0_catalogs_are_left_to_administrators_by_the_port_too(polaris_stub: PolarisServer) -> None:
    with _opened(_stub(polaris_stub)) as catalog:
        with pytest.raises(Unsupported, match="administrators"):
            catalog.create_namespace(NamespaceRecord("lake", ("new",)))
        with pytest.raises(Unsupported, match="administrators"):
            catalog.drop_namespace(("main",))


def test_14_a_table_that_was_recreated_is_not_removed(polaris_server: PolarisServer, ns: Path) -> None:
    polaris_server.table((*ns, "t"))
    settings = CONNECTOR.parse_settings(polaris_server.properties)
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
        (409, ICEBERG % ("CommitConflictException", 409), lance.ConcurrentModificationError),
        (409, ICEBERG % ("SomethingNewException", 409), lance.InternalError),
        (429, "", lance.ThrottlingError),
        (502, "<html>", lance.ServiceUnavailableError),
        (503, ICEBERG % ("ServiceFailureException", 503), lance.ServiceUnavailableError),
        (504, "", lance.ServiceUnavailableError),
        (302, "", lance.InvalidInputError),
    ],
)  # fmt: skip
def test_every_operation_reports_the_message_of_the_server(
    polaris_stub: PolarisServer, status: int, text: str, expected: type[Exception]
) -> None:
    stub = _stub(polaris_stub)
    path = ["main", "ns", "t"]
    operations: dict[str, Callable[[CatalogNamespace], Any]] = {
        "create_namespace": lambda facade: facade.create_namespace(lance.CreateNamespaceRequest(id=path[:2])),
        "list_namespaces": lambda facade: facade.list_namespaces(lance.ListNamespacesRequest(id=path[:1])),
        "list_root": lambda facade: facade.list_namespaces(lance.ListNamespacesRequest(id=[])),
        "describe_namespace": lambda facade: facade.describe_namespace(lance.DescribeNamespaceRequest(id=path[:2])),
        "describe_catalog": lambda facade: facade.describe_namespace(lance.DescribeNamespaceRequest(id=path[:1])),
        "drop_namespace": lambda facade: facade.drop_namespace(lance.DropNamespaceRequest(id=path[:2], mode="Skip")),
        "declare_table": lambda facade: facade.declare_table(lance.DeclareTableRequest(id=path, location=LOCATION)),
        "list_tables": lambda facade: facade.list_tables(lance.ListTablesRequest(id=path[:2])),
        "describe_table": lambda facade: facade.describe_table(lance.DescribeTableRequest(id=path)),
        "table_exists": lambda facade: facade.table_exists(lance.TableExistsRequest(id=path)),
        "deregister_table": lambda facade: facade.deregister_table(lance.DeregisterTableRequest(id=path)),
    }  # fmt: skip
    for name, ask in operations.items():
        # A source of its own for each, so that no breaker opens; nothing is sent again, so that it is quick.
        settings = CONNECTOR.parse_settings({**polaris_stub.properties, "max_retries": "0"})
        facade = PolarisNamespace.for_source(f"{name}{secrets.token_hex(4)}", settings)
        for method in ("GET", "POST", "DELETE"):
            stub.answer(method, "/v1/(?!oauth)", status, text)
        with pytest.raises(expected) as caught:
            ask(facade)
        assert type(caught.value) is expected, name
        assert "s3cr3t" not in str(caught.value)
        stub.faults.clear()
        facade.close()


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


def test_who_may_not_list_catalogs_gets_a_hint(polaris_stub: PolarisServer) -> None:
    stub = _stub(polaris_stub)
    stub.forbid("GET", "/management/", "LIST_CATALOGS")
    with _opened(stub) as catalog:
        for ask in (lambda: catalog.list_namespaces(ROOT), catalog.plan_shards, catalog.ping):
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
            catalog.declare_table(TableRecord("lake", ("main", "ns", "t"), LOCATION))
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
    return CONNECTOR.open("lake", CONNECTOR.parse_settings(keys))
