"""Tokens of Apache Iceberg's own REST catalog: fetched, expired, replaced."""

from __future__ import annotations

import secrets
from pathlib import Path as FilePath
from urllib.parse import parse_qsl

import pytest
import requests

from federator.connector import Unauthenticated
from tests.adversary.lies import Lie, Send
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer
from tests.servers.iceberg.iceberg_support import PurgingProxy, opened
from tests.unit.api.lance.conftest import served

pytestmark = pytest.mark.timeout(120)


def test_tokens_are_fetched_with_the_credential(iceberg_server: IcebergServer, tmp_path: FilePath) -> None:
    with PurgingProxy(iceberg_server.url) as proxy:
        with opened(proxy.url, credential="me:hunter2") as catalog:
            catalog.describe_namespace((WAREHOUSE,))
        sign_in, config = proxy.requests
        form = {key.decode(): value.decode() for key, value in parse_qsl(sign_in.body)}
        assert (form["client_id"], form["client_secret"], form["scope"]) == ("me", "hunter2", "catalog")
        assert ("Authorization", "Bearer client-credentials-token:sub=me") in config.headers
        refusal = Send(b'{"error":"invalid_client","error_description":"hunter3 is wrong"}', 401)
        proxy.script.set([Lie("POST .*/tokens", refusal)])
        with (
            opened(proxy.url, credential="me:hunter3") as catalog,
            pytest.raises(Unauthenticated, match="invalid_client") as refused,
        ):
            catalog.describe_namespace((WAREHOUSE,))
        assert "hunter3" not in str(refused.value)


def test_a_token_that_has_expired_by_icebergs_own_status_is_fetched_again(iceberg_server: IcebergServer) -> None:
    """Iceberg's specification has 419 (AuthenticationTimeoutResponse) beside 401: refresh the credentials and retry."""
    expired = Send(
        b'{"error":{"message":"Credentials have timed out","type":"AuthenticationTimeoutException","code":419}}', 419
    )
    with PurgingProxy(iceberg_server.url) as proxy:
        with opened(proxy.url, credential="me:hunter4") as catalog:
            proxy.lie(Lie("GET .*/config", expired, times=1))
            catalog.describe_namespace((WAREHOUSE,))
        assert [call.rpartition("/")[2] for call in proxy.calls] == ["tokens", "config", "tokens", "config"]
        proxy.lie(Lie("GET .*/config", expired))
        with opened(proxy.url, auth_token="t0ken") as catalog, pytest.raises(Unauthenticated, match="timed out") as refused:
            catalog.describe_namespace((WAREHOUSE,))
        assert refused.value.hint == "check the source's credentials: they are missing, wrong or expired"


def test_a_token_of_the_service_that_has_expired_is_not_blamed_on_the_principal(
    iceberg_server: IcebergServer, tmp_path: FilePath
) -> None:
    (tmp_path / "token").write_text("t0ken")
    with PurgingProxy(iceberg_server.url) as proxy:
        source = {"impl": "iceberg", "endpoint": proxy.url, "warehouses": WAREHOUSE, "auth_token": f"file:{tmp_path / 'token'}"}
        with served(tmp_path, {"iceberg": source}, bare=True) as service:
            url, name = f"{service.url}/v1/namespace/iceberg%24{WAREHOUSE}%24", f"ns_{secrets.token_hex(4)}"
            proxy.lie(Lie(".*", Send(b'{"error":{"message":"expired","type":"NotAuthorizedException","code":401}}', 401)))
            refused = requests.post(f"{url}{name}/create", json={}, timeout=60)
            assert (refused.status_code, refused.json()["code"]) == (403, 15)
            proxy.truthful()
            (tmp_path / "token").write_text("another")
            assert requests.post(f"{url}{name}/create", json={}, timeout=60).ok
        assert ("Authorization", "Bearer another") in proxy.requests[-1].headers
