"""OAuth M2M as Databricks documents it, against a token endpoint that Authlib serves. Databricks itself was not run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from federator.connector import Unauthenticated
from federator.model import NamespaceRecord
from federator_connectors._http.client_credentials import shared_token
from federator_connectors._unity.catalog import UnityCatalog
from federator_connectors.unity import CONNECTOR
from tests.fixtures.workspace import CLIENT, Workspace, run_workspace
from tests.stubs.unity import UnityStub


@pytest.fixture
def workspace(unity_stub: UnityStub) -> Iterator[Workspace]:
    # A workspace may get the port of one that was, whose tokens this process still knows.
    shared_token.cache_clear()
    unity_stub.world.token = "nobody has it"
    with run_workspace(unity_stub) as running:
        yield running


def opened(workspace: Workspace, **more: str) -> UnityCatalog:
    credentials = {"client_id": CLIENT[0], "client_secret": CLIENT[1]}
    return CONNECTOR.open(
        "lake", CONNECTOR.parse_settings({"endpoint": workspace.url, "max_retries": "0", **credentials, **more})
    )


def test_a_client_signs_in_at_its_workspace(workspace: Workspace) -> None:
    """The token endpoint follows from ``endpoint``, and catalogs of one process share the token."""
    for _ in range(2):
        with opened(workspace) as catalog:
            assert catalog.list_namespaces(()) == ["main"]
    assert len(workspace.tokens) == 1
    (_, form) = workspace.requests[0]
    assert form == {"grant_type": "client_credentials", "scope": "all-apis"}


def test_a_revoked_token_is_replaced_once_also_for_a_write(workspace: Workspace, unity_stub: UnityStub) -> None:
    with opened(workspace) as catalog:
        catalog.ping()
        unity_stub.world.token = "revoked meanwhile"
        catalog.create_namespace(NamespaceRecord("lake", ("main", "made")))
        assert catalog.list_namespaces(("main",)) == ["made"]
    assert len(workspace.tokens) == 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"client_secret": "wr0ng-secret"}, "invalid_client"),
        ({"client_id": "somebody"}, "invalid_client"),
        ({"scope": "sql"}, "invalid_scope"),
    ],
)
def test_a_refused_sign_in_is_reported_without_the_secret(
    workspace: Workspace, unity_stub: UnityStub, change: dict[str, str], error: str
) -> None:
    with opened(workspace, **change) as catalog, pytest.raises(Unauthenticated, match=error) as caught:
        catalog.list_namespaces(())
    assert "unity.client_id" in str(caught.value.hint)
    assert change.get("client_secret", CLIENT[1]) not in f"{caught.value} {caught.value.hint}"
    # A refused sign-in is not repeated, and nothing is asked without a token.
    assert (len(workspace.requests), workspace.tokens, unity_stub.seen) == (1, [], [])


def test_the_endpoint_refuses_what_the_document_does_not_allow(workspace: Workspace) -> None:
    """The stand-in itself: credentials in the form and another grant are refused, so the tests above prove something."""
    form = {"grant_type": "client_credentials", "scope": "all-apis"}
    in_form = form | {"client_id": CLIENT[0], "client_secret": CLIENT[1]}
    for data, auth in ((in_form, None), (form, None), (form | {"grant_type": "password"}, CLIENT)):
        response = requests.post(f"{workspace.url}/oidc/v1/token", data=data, auth=auth, timeout=60)
        assert (response.status_code, workspace.tokens) in ((400, []), (401, []))
