"""Credentials of Polaris: tokens that are fetched, shared, renewed and refused; fixed tokens; redaction."""

from __future__ import annotations

import pickle
import re
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath

import lance_namespace as lance
import pytest

from federator.connector import Internal, ServiceUnavailable, Unauthenticated
from federator_connectors._http.authentication import RefreshingToken
from federator_connectors._polaris import authentication
from federator_connectors._polaris.catalog import PolarisCatalog
from federator_connectors.polaris import CONNECTOR, PolarisNamespace
from tests.fixtures.polaris import PolarisServer
from tests.stubs.polaris import PolarisStub
from tests.stubs.polaris.server import Request

pytestmark = pytest.mark.timeout(60)

TOKENS = "/oauth/tokens$"


def _opened(server: PolarisServer, **more: str) -> PolarisCatalog:
    return CONNECTOR.open("lake", CONNECTOR.parse_settings({**server.properties, **more}))


def _tokens(stub: PolarisStub) -> list[Request]:
    return [request for request in stub.requests if re.search(TOKENS, request.path)]


@pytest.fixture
def stub(polaris_stub: PolarisServer) -> PolarisStub:
    assert polaris_stub.stub is not None
    return polaris_stub.stub


def test_a_token_is_fetched_once_for_all_that_are_opened_alike(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    for _ in range(3):
        with _opened(polaris_stub) as catalog:
            catalog.describe_namespace(("main",))
            catalog.ping()
    (request,) = _tokens(stub)
    assert request.form == {
        "grant_type": "client_credentials", "client_id": "root", "client_secret": "s3cr3t", "scope": "PRINCIPAL_ROLE:ALL",
    }  # fmt: skip
    with _opened(polaris_stub, scope="PRINCIPAL_ROLE:reader") as other:
        other.ping()
    assert _tokens(stub)[1].form["scope"] == "PRINCIPAL_ROLE:reader"


def test_a_real_server_gives_a_token(polaris_server: PolarisServer, polaris_catalog: str) -> None:
    with _opened(polaris_server) as catalog:
        assert polaris_catalog in catalog.list_namespaces(())
    with _opened(PolarisServer(polaris_server.url, ("root", "wrong"))) as catalog:
        with pytest.raises(Unauthenticated, match="unauthorized_client") as caught:
            catalog.ping()
        assert "client_secret" in str(caught.value.hint)
    fixed = CONNECTOR.parse_settings({"endpoint": polaris_server.url, "auth_token": polaris_server.token()})
    with CONNECTOR.open("lake", fixed) as catalog:
        assert polaris_catalog in catalog.list_namespaces(())
    anonymous = CONNECTOR.parse_settings({"endpoint": polaris_server.url})
    with CONNECTOR.open("lake", anonymous) as catalog, pytest.raises(Unauthenticated):
        catalog.ping()


def test_a_token_is_renewed_before_it_ends(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    clock = [0.0]
    with _opened(polaris_stub) as catalog:
        settings = CONNECTOR.parse_settings(polaris_stub.properties)
        fetched = authentication.build_authentication("lake", settings).inner  # type: ignore[attr-defined]
        assert isinstance(fetched, RefreshingToken)
        fetched._clock = lambda: clock[0]
        catalog.ping()
        clock[0] = 3600 * 0.89
        catalog.ping()
        assert len(_tokens(stub)) == 1
        clock[0] = 3600 * 0.91
        catalog.ping()
        assert len(_tokens(stub)) == 2
    assert [request.path for request in stub.requests].count("/api/management/v1/catalogs") == 3, "no request was refused"


def test_a_refused_token_is_fetched_again_also_for_a_write(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    with PolarisNamespace.for_source("lake", CONNECTOR.parse_settings(polaris_stub.properties)).borrow_catalog() as catalog:
        catalog.ping()
        stub.revoke_tokens()
        catalog.ping()
        assert len(_tokens(stub)) == 2
    facade = PolarisNamespace(**polaris_stub.properties)
    facade.list_namespaces(lance.ListNamespacesRequest(id=[]))
    stub.revoke_tokens()
    facade.create_namespace(lance.CreateNamespaceRequest(id=["main", "made"]))
    assert facade.list_namespaces(lance.ListNamespacesRequest(id=["main"])).namespaces == ["made"]
    facade.close()


def test_a_token_that_stays_refused_is_asked_for_once_more_and_no_oftener(
    polaris_stub: PolarisServer, stub: PolarisStub
) -> None:
    stub.answer("GET", "/management/", 401)
    with _opened(polaris_stub) as catalog, pytest.raises(Unauthenticated):
        catalog.ping()
    assert len(_tokens(stub)) == 2


def test_a_token_is_fetched_also_where_one_request_at_once_is_all(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    """Whoever waits for a token holds the one place, and the token must not wait for another."""
    polaris_stub.namespace(("main", "ns"))
    for number in range(5):
        polaris_stub.table(("main", "ns", f"t{number}"))
    stub.revoke_tokens()
    limits = {"limit.concurrent-requests": "1", "limit.requests-per-second": "500"}
    with _opened(polaris_stub, **limits) as catalog:
        assert len(catalog.list_tables(("main", "ns"))) == 5


def test_eight_threads_with_a_revoked_token(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    with _opened(polaris_stub) as catalog, ThreadPoolExecutor(8) as pool:
        catalog.ping()
        stub.revoke_tokens()
        listings = list(pool.map(lambda _: catalog.list_namespaces(()), range(40)))
    assert listings == [["main"]] * 40


def test_a_fixed_token_that_is_refused_is_not_sent_again(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    settings = CONNECTOR.parse_settings({"endpoint": stub.url, "auth_token": "T0P-SECRET-TOKEN"})
    with CONNECTOR.open("lake", settings) as catalog, pytest.raises(Unauthenticated):
        catalog.ping()
    (request,) = stub.requests
    assert request.headers["Authorization"] == "Bearer T0P-SECRET-TOKEN"
    assert not _tokens(stub)


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (400, '{"error":"invalid_scope","error_description":"The scope is invalid s3cr3t"}', Unauthenticated),
        (401, "", Unauthenticated),
        (200, "{}", Internal),
        (200, '{"access_token": null, "note": "s3cr3t"}', Internal),
        (200, "<html>", Internal),
        (404, "s3cr3t", Internal),
        (503, "", ServiceUnavailable),
    ],
)
def test_a_token_that_is_not_given(
    polaris_stub: PolarisServer, stub: PolarisStub, status: int, text: str, expected: type[Exception]
) -> None:
    stub.answer("POST", TOKENS, status, text)
    with _opened(polaris_stub, max_retries="0") as catalog, pytest.raises(expected, match="signing in") as caught:
        catalog.ping()
    # What a log would show: the error, and what it came from.
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))
    stub.faults.clear()
    with _opened(polaris_stub, max_retries="0") as catalog:
        assert catalog.ping() == ""


def test_an_unknown_realm_is_named(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    """Seen of Polaris: a 404 without a body."""
    stub.answer("POST", TOKENS, 404)
    with _opened(polaris_stub, realm="nowhere") as catalog, pytest.raises(Internal, match="signing in") as caught:
        catalog.ping()
    assert "polaris.realm" in str(caught.value.hint)


def test_tokens_of_an_identity_provider_elsewhere(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    with PolarisStub() as provider:
        given = '{"access_token": "from-elsewhere", "token_type": "Bearer"}'
        provider.answer("POST", "^/realms/lake/token$", 200, given)
        with _opened(polaris_stub, token_url=f"{provider.url}/realms/lake/token") as catalog, pytest.raises(Unauthenticated):
            catalog.ping()
        # Without a time of its own such a token lasts until it is refused, then another one is asked for.
        assert len(provider.requests) == 2
    assert {request.headers["Authorization"] for request in stub.requests} == {"Bearer from-elsewhere"}


def test_the_realm_goes_with_every_request(polaris_stub: PolarisServer, stub: PolarisStub) -> None:
    with _opened(polaris_stub, realm="prod") as catalog:
        catalog.ping()
    assert [request.headers.get("Polaris-Realm") for request in stub.requests] == ["prod", "prod"]


def test_secrets_are_read_where_they_are_used_and_shown_nowhere(
    polaris_stub: PolarisServer, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("s3cr3t\n")
    monkeypatch.setenv("POLARIS_CLIENT_ID", "root")
    keys = {"endpoint": polaris_stub.url, "client_id": "${POLARIS_CLIENT_ID}", "client_secret": f"file:{tmp_path}/secret"}
    facade = PolarisNamespace(**keys)
    assert facade.list_namespaces(lance.ListNamespacesRequest(id=[])).namespaces == ["main"]
    revived = pickle.loads(pickle.dumps(facade))
    assert revived.list_namespaces(lance.ListNamespacesRequest(id=[])).namespaces == ["main"]
    settings = CONNECTOR.parse_settings(keys)
    for text in (
        repr(facade),
        repr(settings),
        repr(authentication.build_authentication("lake", settings)),
        facade.namespace_id(),
    ):
        assert "s3cr3t" not in text
    assert b"s3cr3t" not in pickle.dumps(facade)
