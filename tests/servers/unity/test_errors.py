"""Every error code that the Lance Unity spec names, by the official classes, from the server's own answers; and what a server says
when it is not well, from scripted ones.
"""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

import lance_namespace as ln
import pytest

from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.lance.facade import CatalogNamespace
from federator.model import NamespaceRecord, TableRecord
from federator_connectors._http.response import HttpResponse
from federator_connectors._unity.catalog import UnityCatalog
from federator_connectors._unity.errors import CatalogNotFound, error_for_response
from federator_connectors.unity import CONNECTOR, UnityNamespace
from tests.fixtures.unity import UnityCatalogOfTest
from tests.stubs.polaris import PolarisStub
from tests.stubs.unity import UnityStub, World

pytestmark = pytest.mark.timeout(60)

RECORDING = FilePath(__file__).parents[2] / "recordings" / "unity" / "unity-oss-0.6.0.txt"


@pytest.fixture
def facade(unity_catalog: UnityCatalogOfTest) -> Iterator[CatalogNamespace]:
    unity_namespace: CatalogNamespace = UnityNamespace(**unity_catalog.properties)
    yield unity_namespace
    unity_namespace.close()


# By the spec, section by section. ``C`` stands for the configured catalog; ``s`` is a schema with the Lance table ``t``, the table
# ``text`` that is none, and nothing else; ``empty`` is a schema.
Ask = Callable[[CatalogNamespace, str], Any]
SPEC: dict[str, tuple[Ask, type[Exception]]] = {
    "CreateNamespace: another catalog is 13": (
        lambda f, c: f.create_namespace(ln.CreateNamespaceRequest(id=["other", "s"])), ln.InvalidInputError),
    "CreateNamespace: a schema that exists is 2": (
        lambda f, c: f.create_namespace(ln.CreateNamespaceRequest(id=[c, "s"])), ln.NamespaceAlreadyExistsError),
    "ListNamespaces: another catalog is 1": (
        lambda f, c: f.list_namespaces(ln.ListNamespacesRequest(id=["other"])), ln.NamespaceNotFoundError),
    "DescribeNamespace: a missing schema is 1": (
        lambda f, c: f.describe_namespace(ln.DescribeNamespaceRequest(id=[c, "missing"])), ln.NamespaceNotFoundError),
    "DescribeNamespace: another catalog is 1": (
        lambda f, c: f.describe_namespace(ln.DescribeNamespaceRequest(id=["other", "s"])), ln.NamespaceNotFoundError),
    "DropNamespace: a missing schema is 1": (
        lambda f, c: f.drop_namespace(ln.DropNamespaceRequest(id=[c, "missing"])), ln.NamespaceNotFoundError),
    "DropNamespace: a schema that is not empty is 3": (
        lambda f, c: f.drop_namespace(ln.DropNamespaceRequest(id=[c, "s"])), ln.NamespaceNotEmptyError),
    "DropNamespace: a catalog is no schema": (
        lambda f, c: f.drop_namespace(ln.DropNamespaceRequest(id=[c])), ln.InvalidInputError),
    "CreateNamespace: a catalog is no schema": (
        lambda f, c: f.create_namespace(ln.CreateNamespaceRequest(id=["new"])), ln.InvalidInputError),
    "DropNamespace: a catalog is no schema, with CASCADE neither": (
        lambda f, c: f.drop_namespace(ln.DropNamespaceRequest(id=[c], behavior="Cascade")), ln.InvalidInputError),
    "DeclareTable: a missing schema is 1": (
        lambda f, c: f.declare_table(ln.DeclareTableRequest(id=[c, "missing", "t"])), ln.NamespaceNotFoundError),
    "DeclareTable: another catalog is 1": (
        lambda f, c: f.declare_table(ln.DeclareTableRequest(id=["other", "s", "t"])), ln.NamespaceNotFoundError),
    "DeclareTable: a table that exists is 5": (
        lambda f, c: f.declare_table(ln.DeclareTableRequest(id=[c, "s", "t"])), ln.TableAlreadyExistsError),
    "DeclareTable: a table of another kind is there, too": (
        lambda f, c: f.declare_table(ln.DeclareTableRequest(id=[c, "s", "text"])), ln.TableAlreadyExistsError),
    "ListTables: a missing schema is 1": (
        lambda f, c: f.list_tables(ln.ListTablesRequest(id=[c, "missing"])), ln.NamespaceNotFoundError),
    "ListTables: a catalog has no tables": (
        lambda f, c: f.list_tables(ln.ListTablesRequest(id=[c])), ln.InvalidInputError),
    "ListTables: a page of a catalog neither": (
        lambda f, c: f.list_tables(ln.ListTablesRequest(id=[c], limit=1)), ln.InvalidInputError),
    "ListTables: the root has no tables": (
        lambda f, c: f.list_tables(ln.ListTablesRequest(id=[])), ln.InvalidInputError),
    "ListTables: another catalog is 1": (
        lambda f, c: f.list_tables(ln.ListTablesRequest(id=["other", "s"])), ln.NamespaceNotFoundError),
    "DescribeTable: a missing table is 4": (
        lambda f, c: f.describe_table(ln.DescribeTableRequest(id=[c, "s", "missing"])), ln.TableNotFoundError),
    "DescribeTable: in a missing schema it is 4": (
        lambda f, c: f.describe_table(ln.DescribeTableRequest(id=[c, "missing", "t"])), ln.TableNotFoundError),
    "DescribeTable: in another catalog it is 4": (
        lambda f, c: f.describe_table(ln.DescribeTableRequest(id=["other", "s", "t"])), ln.TableNotFoundError),
    "DescribeTable: no Lance table is 13": (
        lambda f, c: f.describe_table(ln.DescribeTableRequest(id=[c, "s", "text"])), ln.InvalidInputError),
    "DescribeTable: two levels are 13": (
        lambda f, c: f.describe_table(ln.DescribeTableRequest(id=[c, "s"])), ln.InvalidInputError),
    "DeregisterTable: a missing table is 4": (
        lambda f, c: f.deregister_table(ln.DeregisterTableRequest(id=[c, "s", "missing"])), ln.TableNotFoundError),
    "DeregisterTable: in a missing schema it is 4": (
        lambda f, c: f.deregister_table(ln.DeregisterTableRequest(id=[c, "missing", "t"])), ln.TableNotFoundError),
    "DeregisterTable: no Lance table is 13": (
        lambda f, c: f.deregister_table(ln.DeregisterTableRequest(id=[c, "s", "text"])), ln.InvalidInputError),
}  # fmt: skip


@pytest.mark.parametrize("case", SPEC)
def test_every_error_of_the_spec(facade: CatalogNamespace, unity_catalog: UnityCatalogOfTest, case: str) -> None:
    for name in ("s", "empty"):
        unity_catalog.server.call("POST", "/schemas", {"name": name, "catalog_name": unity_catalog.name})
    schema = (unity_catalog.name, "s")
    unity_catalog.table(schema, "t")
    unity_catalog.table(schema, "text", properties={})
    ask, expected = SPEC[case]
    with pytest.raises(expected) as caught:
        ask(facade, unity_catalog.name)
    assert type(caught.value) is expected
    assert facade.list_tables(ln.ListTablesRequest(id=list(schema))).tables == ["t"]


OPERATIONS: dict[str, Ask] = {
    "CreateNamespace": lambda f, c: f.create_namespace(ln.CreateNamespaceRequest(id=[c, "new"])),
    "ListNamespaces": lambda f, c: f.list_namespaces(ln.ListNamespacesRequest(id=[c])),
    "DescribeNamespace": lambda f, c: f.describe_namespace(ln.DescribeNamespaceRequest(id=[c, "s"])),
    "DropNamespace": lambda f, c: f.drop_namespace(ln.DropNamespaceRequest(id=[c, "s"])),
    "DeclareTable": lambda f, c: f.declare_table(ln.DeclareTableRequest(id=[c, "s", "t"])),
    "ListTables": lambda f, c: f.list_tables(ln.ListTablesRequest(id=[c, "s"])),
    "DescribeTable": lambda f, c: f.describe_table(ln.DescribeTableRequest(id=[c, "s", "t"])),
    "DeregisterTable": lambda f, c: f.deregister_table(ln.DeregisterTableRequest(id=[c, "s", "t"])),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_server_error_is_18_in_every_operation(unity_stub: UnityStub, operation: str) -> None:
    """With the answer that the recorded server gave to a table without a location."""
    line = next(line for line in RECORDING.read_text().splitlines() if " -> 500 " in line)
    unity_stub.script.append((500, {}, line.partition(" -> 500 ")[2]))
    facade = UnityNamespace(endpoint=unity_stub.url, catalog="main", root="/nonexistent/lake")
    with pytest.raises(ln.InternalError, match="INTERNAL"):
        OPERATIONS[operation](facade, "main")
    assert len(unity_stub.seen) == 1, "a 500 was asked again"
    facade.close()


@pytest.fixture
def catalog(unity_stub: UnityStub) -> Iterator[UnityCatalog]:
    settings = CONNECTOR.parse_settings(
        {"endpoint": unity_stub.url, "catalog": "main", "max_retries": "2", "auth_token": "t0ken"}
    )
    with CONNECTOR.open("lake", settings) as opened:
        yield opened


def error_body(code: str, message: str = "why") -> str:
    return json.dumps({"error_code": code, "message": message})


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, error_body("INVALID_ARGUMENT"), InvalidInput),
        (400, error_body("INVALID_PARAMETER_VALUE"), InvalidInput),
        (400, "no JSON at all", InvalidInput),
        (401, error_body("UNAUTHENTICATED"), Unauthenticated),
        (401, "", Unauthenticated),
        (403, error_body("PERMISSION_DENIED"), PermissionDenied),
        (403, "<html>a proxy</html>", PermissionDenied),
        (404, error_body("SCHEMA_NOT_FOUND"), NamespaceNotFound),
        (404, error_body("CATALOG_DOES_NOT_EXIST"), CatalogNotFound),
        (404, error_body("TABLE_DOES_NOT_EXIST"), TableNotFound),
        (404, error_body("NOT_FOUND", "Schema not found: c1.s1"), NamespaceNotFound),
        (404, error_body("NOT_FOUND", "Table not found: c1.s1.t1"), TableNotFound),
        (409, error_body("ALREADY_EXISTS", "Schema already exists: s1"), NamespaceAlreadyExists),
        (404, error_body("NOT_FOUND", "no such page"), Internal),
        (404, error_body("ENDPOINT_NOT_FOUND"), Internal),
        (404, "<html>a proxy</html>", Internal),
        (405, "Status: 405\nDescription: Method Not Allowed\n", Unsupported),
        (429, error_body("REQUEST_LIMIT_EXCEEDED"), Throttled),
        (429, "", Throttled),
        (500, error_body("INTERNAL"), Internal),
        (500, error_body("TABLE_NOT_FOUND"), Internal),
        (500, error_body("SCHEMA_DOES_NOT_EXIST"), Internal),
        (206, "{}", Internal),
        (503, error_body("TEMPORARILY_UNAVAILABLE"), ServiceUnavailable),
        (502, "<html>a proxy</html>", ServiceUnavailable),
        (302, "", InvalidInput),
    ],
)
def test_an_answer_and_its_error(
    unity_stub: UnityStub, catalog: UnityCatalog, status: int, body: str, expected: type[CatalogError]
) -> None:
    unity_stub.script.append((status, {}, body))
    # A write, which is sent once whatever the answer is.
    with pytest.raises(CatalogError) as caught:
        catalog.create_namespace(NamespaceRecord("lake", ("main", "s")))
    assert type(caught.value) is expected
    assert caught.value.message.startswith("lake: creating the schema main$s: ")
    assert [request.partition("?")[0] for request in unity_stub.seen] == ["POST /api/2.1/unity-catalog/schemas"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (expected, str(caught.value))


def test_reads_are_tried_again_and_writes_are_not(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    unity_stub.script.extend([(503, {}, ""), (429, {"Retry-After": "0"}, "")])
    assert catalog.list_namespaces(()) == ["main"]
    assert len(unity_stub.seen) == 3
    unity_stub.script.extend([(503, {}, "")] * 3)
    with pytest.raises(ServiceUnavailable):
        catalog.list_namespaces(())
    assert len(unity_stub.seen) == 6, "max_retries = 2 are three attempts"


def test_a_token_is_shown_and_never_repeated_in_a_text(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    unity_stub.world.token = "t0ken"
    assert catalog.list_namespaces(()) == ["main"]
    unity_stub.world.token = "another"
    with pytest.raises(Unauthenticated, match="Invalid access token"):
        catalog.list_namespaces(())
    unity_stub.script.append((400, {}, error_body("INVALID_ARGUMENT", "the header Bearer t0ken is wrong")))
    with pytest.raises(InvalidInput) as caught:
        catalog.list_namespaces(())
    assert "t0ken" not in str(caught.value)


def test_tokens_are_fetched_and_renewed_with_client_credentials(unity_stub: UnityStub) -> None:
    """As Databricks documents it (OAuth M2M): the credentials are in the header, and the token endpoint is the workspace's."""
    unity_stub.world.token = "first"
    with PolarisStub() as provider:
        for token in ("first", "second"):
            provider.answer("POST", "^/oidc/v1/token$", 200, json.dumps({"access_token": token, "expires_in": 3600}), times=1)
        provider.answer("POST", "^/oidc/v1/token$", 401, '{"error": "invalid_client", "error_description": "not s3cr3t"}')
        credentials = {"client_id": "a b", "client_secret": "s3cr3t", "token_url": f"{provider.url}/oidc/v1/token"}
        settings = CONNECTOR.parse_settings({"endpoint": unity_stub.url, "catalog": "main", "max_retries": "0", **credentials})
        assert settings.scope == "all-apis"
        for _ in range(2):
            with CONNECTOR.open("lake", settings) as catalog:
                assert catalog.list_namespaces(()) == ["main"]
        (request,) = provider.requests
        assert request.headers["Authorization"] == f"Basic {b64encode(b'a+b:s3cr3t').decode()}"
        assert request.form == {"grant_type": "client_credentials", "scope": "all-apis"}
        unity_stub.world.token = "second"
        with CONNECTOR.open("lake", settings) as catalog:
            catalog.create_namespace(NamespaceRecord("lake", ("main", "s")))
        unity_stub.world.token = "third"
        with CONNECTOR.open("lake", settings) as catalog, pytest.raises(Unauthenticated, match="invalid_client") as caught:
            catalog.ping()
        assert "s3cr3t" not in str(caught.value)
        assert "unity.client_id" in str(caught.value.hint)
    assert "s3cr3t" not in repr(settings)


def test_the_server_reports_a_missing_token() -> None:
    with UnityStub(World(token="wanted")) as stub:
        facade = UnityNamespace(endpoint=stub.url, catalog="main")
        with pytest.raises(ln.UnauthenticatedError, match="No authorization found"):
            facade.list_namespaces(ln.ListNamespacesRequest(id=[]))
        facade.close()


def test_a_configured_catalog_that_does_not_exist_is_not_empty(unity_stub: UnityStub) -> None:
    with CONNECTOR.open("lake", CONNECTOR.parse_settings({"endpoint": unity_stub.url, "catalog": "gone"})) as catalog:
        for ask in (lambda: catalog.list_namespaces(()), catalog.plan_shards, catalog.ping):
            with pytest.raises(NamespaceNotFound, match="Catalog not found: gone"):
                ask()
        with pytest.raises(TableNotFound):
            catalog.describe_table(("gone", "s", "t"))
        with pytest.raises(Internal, match="does not prove its tables absent"):
            catalog.observe(("gone", "s", "t"))


@pytest.mark.parametrize("name", ["a.b", "a b", "a/b", "..", "a\tb", "a\x7fb"])
def test_a_name_that_cannot_be_is_not_asked_for(unity_stub: UnityStub, catalog: UnityCatalog, name: str) -> None:
    """Joined by periods it would address another object."""
    with pytest.raises(NamespaceNotFound):
        catalog.describe_namespace(("main", name))
    with pytest.raises(NamespaceNotFound):
        catalog.list_tables(("main", name))
    with pytest.raises(TableNotFound):
        catalog.describe_table(("main", "s", name))
    assert catalog.observe(("main", "s", name)).is_absent
    assert unity_stub.seen == []
    facade = UnityNamespace(endpoint=unity_stub.url, catalog="main")
    with pytest.raises(ln.InvalidInputError):
        facade.create_namespace(ln.CreateNamespaceRequest(id=["main", name]))
    assert not any(request.startswith("POST") for request in unity_stub.seen)
    facade.close()


def test_a_name_is_encoded(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    for name in ("%2e", "a?b", "a#b", "ü", "a%2Fb"):
        with pytest.raises(TableNotFound, match="TABLE_NOT_FOUND"):
            catalog.describe_table(("main", "s", name))


def test_updates_are_unsupported(catalog: UnityCatalog) -> None:
    table = TableRecord("lake", ("main", "s", "t"), "s3://lake/t")
    with pytest.raises(Unsupported):
        catalog.update_table(table, table)


def test_the_owner_of_a_new_schema_is_set_by_a_second_request(
    unity_stub: UnityStub, catalog: UnityCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Databricks's documentation of UpdateSchema. No real server was seen to do it."""
    update = World.update_schema

    def as_documented(world: World, full: str, body: dict[str, Any]) -> dict[str, Any]:
        row = update(world, full, body)
        row |= {key: body[key] for key in ("owner",) if key in body}
        return row

    monkeypatch.setattr(World, "update_schema", as_documented)
    created = catalog.create_namespace(NamespaceRecord("lake", ("main", "owned"), {"a": "1"}, doc="text", owner="ann"))
    assert (created.owner, created.properties, created.doc) == ("ann", {"a": "1"}, "text")
    assert catalog.describe_namespace(("main", "owned")) == created
    assert [request.split(" ")[0] for request in unity_stub.seen[:4]] == ["POST", "GET", "PATCH", "GET"]


def test_a_schema_whose_owner_the_server_does_not_keep_is_not_created(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    for path in (("main", "owned"), ("main", "owned")):
        with pytest.raises(Unsupported, match=r"main\$owned cannot have the owner 'ann'.*nothing was created"):
            catalog.create_namespace(NamespaceRecord("lake", path, owner="ann"))
    assert catalog.list_namespaces(("main",)) == []
    assert not any("force" in request for request in unity_stub.seen)


@pytest.mark.parametrize("code", ["TABLE_DOES_NOT_EXIST", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"])
@pytest.mark.parametrize(
    ("status", "error"), [(401, Unauthenticated), (403, PermissionDenied), (429, Throttled), (503, ServiceUnavailable)]
)
def test_a_denial_or_an_outage_never_proves_absence(code: str, status: int, error: type[CatalogError]) -> None:
    body = json.dumps({"error_code": code, "message": "said"})
    assert type(error_for_response(HttpResponse("u: asking", status, body))) is error
