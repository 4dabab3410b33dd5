"""A service that people sign in to, for the tests of the sign-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select

from federator.api.app import create_app
from federator.settings import Settings
from federator.store import Index
from federator.store import tables as t
from tests.fixtures.identity_provider import CALLBACK, Browser, Provider, run_provider
from tests.unit.api.conftest import Api

ORIGIN = "https://federator.corp"
SESSION, PENDING = "__Host-federator-session", "__Host-federator-sign-in"
OpenService = Callable[..., Api]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with run_provider() as provider:
        provider.register(ORIGIN + CALLBACK)
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.checks_pkce, running.change_claims, running.change_tokens, running.document = True, None, None, {}
    running.requests.clear()
    running.person("anna", groups=["analysts", "staff"])
    return running


@pytest.fixture
def service(
    provider: Provider, index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> OpenService:
    """A service behind HTTPS, with the sign-in; ``more`` is laid over ``[serve.oidc.sign_in]``, ``oidc`` over ``[serve.oidc]``."""
    monkeypatch.setenv("CLIENT_SECRET", provider.client_secret)

    def open_service(oidc: dict[str, Any] | None = None, serve: dict[str, Any] | None = None, **more: Any) -> Api:
        sign_in = {
            "client_id": provider.client_id, "client_secret": "${CLIENT_SECRET}", "redirect_uri": ORIGIN + CALLBACK, **more,
        }  # fmt: skip
        raw = {
            "issuer": provider.url, "audience": "federator-api", "role_claim": "groups", "sign_in": sign_in,
            "roles": {"analysts": "viewer", "ops": "operator"},
            "scopes": {"analysts": ["lake$sales"], "ops": ["copy", "lake$odd"]}, **(oidc or {}),
        }  # fmt: skip
        return Api(create_app(settings_of(serve={"host": "0.0.0.0", "oidc": raw, **(serve or {})})), base=ORIGIN)

    return open_service


@pytest.fixture
def browser(service: OpenService) -> Browser:
    return Browser(service(), ORIGIN)


def events(index: Index) -> list[tuple[str, str, dict[str, Any]]]:
    with index.read() as connection:
        rows = [json.loads(text) for text in connection.execute(select(t.audit_outbox.c.event)).scalars()]
    return [(row["kind"], row["actor"], row["detail"]) for row in rows if row["kind"].startswith("sign")]


def refused(answer: Any, message: str, status: int = 400) -> None:
    """A page for people, and no session."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8"), answer.text
    assert message in answer.text
    assert not [text for text in answer.headers.get_list("set-cookie") if text.startswith(SESSION)]
