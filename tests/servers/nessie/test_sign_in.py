"""Nessie that requires tokens of an OpenID issuer, and that denies a part of its entries; and a branch that is not the default one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import RSAKey

from federator.connector import PermissionDenied, Unauthenticated
from federator.model import NamespaceRecord
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors.iceberg import CONNECTOR
from tests.fixtures.http_handler import KeepAliveHandler
from tests.fixtures.iceberg import WAREHOUSE
from tests.fixtures.nessie import NessieServer, companion_request, run_nessie
from tests.fixtures.nessie_server import BUCKET
from tests.servers.nessie.test_nessie import opened

pytestmark = pytest.mark.timeout(300)
CREDENTIAL = "federator:s3cret"


class Issuer:
    """Signs tokens for the owner of ``CREDENTIAL``."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})

    def token(self, name: str, lifetime: float = 600.0) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "sub": name, "aud": "nessie", "iat": now, "exp": int(now + lifetime), "upn": name}
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, self._key)

    def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, object]:
        if path == "/token":
            given = ":".join(form.get(key, [""])[0] for key in ("client_id", "client_secret"))
            if given != CREDENTIAL:
                return 401, {"error": "invalid_client"}
            return 200, {"access_token": self.token("federator"), "token_type": "Bearer", "expires_in": 600}
        if path == "/keys":
            return 200, {"keys": [self._key.as_dict(is_private=False)]}
        urls = {
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint": f"{self.url}/token",
            "authorization_endpoint": f"{self.url}/auth",
        }
        return 200, {"issuer": self.url, **urls}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    class Handler(KeepAliveHandler):
        def do_any(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
            status, content = made.answer(self.path.partition("?")[0], form)
            self.respond(status, json.dumps(content).encode())

        do_GET = do_POST = do_any

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Issuer(server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


@pytest.fixture(scope="module")
def guarded(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NessieServer]:
    rules = "nessie.server.authorization.rules"
    settings = [
        "nessie.server.authentication.enabled=true", f"quarkus.oidc.auth-server-url={issuer.url}", "quarkus.oidc.client-id=nessie",
        "nessie.server.authorization.enabled=true", f"{rules}.owner=role=='owner'",
        f"{rules}.branches=op=='VIEW_REFERENCE'",
        f"{rules}.others=op in ['READ_ENTRIES', 'READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && !path.startsWith('hidden')",
    ]  # fmt: skip
    with run_nessie(tmp_path_factory.mktemp("guarded"), *settings) as server:
        yield server


@pytest.fixture(scope="module")
def owner(guarded: NessieServer, issuer: Issuer) -> Iterator[IcebergCatalog]:
    """The catalog of one who may do everything, with the tables ``sales.orders`` and ``hidden.orders``."""
    with opened(guarded, auth_token=issuer.token("owner")) as catalog:
        for name in ("sales", "hidden"):
            catalog.create_namespace(NamespaceRecord("nessie", (WAREHOUSE, name)))
            request, url = companion_request(f"s3://{BUCKET}/{name}/orders.lance", {}), f"/namespaces/{name}/tables/orders"
            headers = {"Authorization": f"Bearer {issuer.token('owner')}"}
            requests.post(guarded.base + url, json=request, headers=headers, timeout=60).raise_for_status()
        yield catalog


@pytest.mark.parametrize("properties", [{}, {"auth_token": "wrong"}, {"credential": "federator:wrong"}])
def test_without_a_valid_token_nothing_is_read(guarded: NessieServer, issuer: Issuer, properties: dict[str, str]) -> None:
    token_url = {"token_url": f"{issuer.url}/token"} if "credential" in properties else {}
    with opened(guarded, **properties, **token_url) as catalog, pytest.raises(Unauthenticated):
        catalog.list_namespaces((WAREHOUSE,))


@pytest.mark.usefixtures("owner")
def test_what_nessie_denies_is_hidden_from_listings_and_not_absent(guarded: NessieServer, issuer: Issuer) -> None:
    with opened(guarded, credential=CREDENTIAL, token_url=f"{issuer.url}/token") as catalog:
        assert catalog.list_namespaces((WAREHOUSE,)) == ["sales"]
        assert catalog.describe_table((WAREHOUSE, "sales", "orders")).location == f"s3://{BUCKET}/sales/orders.lance"
        for call in (
            lambda: catalog.observe((WAREHOUSE, "hidden", "orders")),
            lambda: catalog.find_namespace((WAREHOUSE, "hidden")),
            lambda: catalog.create_namespace(NamespaceRecord("nessie", (WAREHOUSE, "new"))),
            lambda: catalog.deregister_table(catalog.describe_table((WAREHOUSE, "sales", "orders"))),
        ):
            with pytest.raises(PermissionDenied):
                call()
    assert CONNECTOR.capabilities.listing_filtered


def test_another_branch_is_read_and_changed(guarded: NessieServer, issuer: Issuer, owner: IcebergCatalog) -> None:
    api, headers = f"{guarded.url.removesuffix('/iceberg')}/api/v2", {"Authorization": f"Bearer {issuer.token('owner')}"}
    main = requests.get(f"{api}/trees/main", headers=headers, timeout=60).json()["reference"]
    made = requests.post(f"{api}/trees", params={"name": "dev", "type": "BRANCH"}, json=main, headers=headers, timeout=60)
    made.raise_for_status()
    with opened(guarded, endpoint=f"{guarded.url}/dev", auth_token=issuer.token("owner")) as catalog:
        assert catalog.list_tables((WAREHOUSE, "sales")) == ["orders"]
        catalog.create_namespace(NamespaceRecord("nessie", (WAREHOUSE, "of_dev")))
        assert catalog.identity() != owner.identity()
        assert catalog.list_namespaces((WAREHOUSE,)) == ["hidden", "of_dev", "sales"]
    assert owner.list_namespaces((WAREHOUSE,)) == ["hidden", "sales"]
