"""What an id token must be, and what its groups become."""

from __future__ import annotations

from typing import Any

import pytest

from federator.store import Index
from tests.fixtures.identity_provider import Browser, Provider
from tests.unit.api.sign_in_support import ORIGIN, SESSION, OpenService, events, refused
from tests.unit.api.sign_in_support import browser as browser
from tests.unit.api.sign_in_support import provider as provider
from tests.unit.api.sign_in_support import running as running
from tests.unit.api.sign_in_support import service as service

CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"aud": "another"}, "Audience"), ({"aud": []}, "aud"), ({"aud": None}, "aud"), ({"azp": "another"}, "azp"),
    ({"iss": "https://evil.example"}, "issuer"), ({"exp": 1_000_000_000}, "expired"), ({"exp": None}, "exp"),
    ({"iat": None}, "iat"), ({"iat": 4_000_000_000}, "not yet valid"), ({"nonce": "another"}, "nonce"), ({"nonce": None}, "nonce"),
    ({"nonce": 7}, "nonce"), ({"at_hash": "AAAA"}, "at_hash"), ({"sub": None}, "sub"), ({"sub": "a\nb"}, "not a valid name"),
]  # fmt: skip


@pytest.mark.parametrize(("claims", "message"), CLAIMS)
def test_an_id_token_that_is_not_for_this_sign_in_is_refused(
    browser: Browser, provider: Provider, claims: dict[str, Any], message: str
) -> None:
    def change(sent: dict[str, Any]) -> None:
        sent.update(claims)
        for name in [name for name, value in claims.items() if value is None]:
            del sent[name]

    provider.change_claims = change
    refused(browser.sign_in(provider), message, 401)


def test_an_id_token_for_several_audiences_names_this_client(browser: Browser, provider: Provider) -> None:
    audiences = [provider.client_id, "another"]
    provider.change_claims = lambda claims: claims.update(aud=audiences)
    refused(browser.sign_in(provider), "azp", 401)
    provider.change_claims = lambda claims: claims.update(aud=audiences, azp=provider.client_id)
    assert browser.sign_in(provider).status_code == 303
    provider.change_claims = lambda claims: claims.pop("at_hash")
    assert browser.sign_in(provider).status_code == 303


@pytest.mark.parametrize("token", [None, 7, "a.b.c", "", "eyJhbGciOiJub25lIn0.e30."])
def test_what_is_no_id_token_is_refused(browser: Browser, provider: Provider, token: object) -> None:
    provider.change_tokens = lambda tokens: tokens.update(id_token=token)
    response = browser.sign_in(provider)
    assert response.status_code in (400, 401)
    assert SESSION not in browser.cookies


def test_a_changed_signature_and_another_access_token_are_refused(browser: Browser, provider: Provider) -> None:
    def forge(tokens: dict[str, Any]) -> None:
        head, body, signature = tokens["id_token"].split(".")
        tokens["id_token"] = f"{head}.{body}.{signature[:-8]}AAAAAAAA"

    provider.change_tokens = forge
    refused(browser.sign_in(provider), "Signature verification failed", 401)
    provider.change_tokens = lambda tokens: tokens.update(access_token="another")
    refused(browser.sign_in(provider), "at_hash", 401)
    provider.change_tokens = lambda tokens: tokens.pop("access_token")
    refused(browser.sign_in(provider), "at_hash", 401)


@pytest.mark.parametrize(
    ("groups", "role", "scopes"),
    [
        (["analysts"], "viewer", ["lake$sales"]), (["ops", "analysts", "x"], "operator", ["copy", "lake$odd", "lake$sales"]),
        (["ops"], "operator", ["copy", "lake$odd"]),
    ],
)  # fmt: skip
def test_groups_become_the_strongest_role_and_all_scopes(
    browser: Browser, provider: Provider, groups: list[str], role: str, scopes: list[str]
) -> None:
    provider.person("anna", groups=groups)
    browser.sign_in(provider)
    me = browser.get("/api/v1/me").json()
    assert (me["role"], me["scopes"]) == (role, scopes)


@pytest.mark.parametrize(
    "groups", [["Analysts"], ["analysts "], ["analyst"], ["analysts2"], [], ["staff"], None, [["analysts"]], "staff analysts"]
)
def test_who_is_in_no_group_of_the_configuration_is_refused_and_recorded(
    browser: Browser, provider: Provider, index: Index, groups: object
) -> None:
    provider.person("<b>eve", groups=groups)
    refused(browser.sign_in(provider, "<b>eve"), "&lt;b&gt;eve is signed in, but has no role here", 403)
    assert events(index) == [("sign_in_refused", "oidc:<b>eve", {"address": "127.0.0.1", "reason": "no role"})]
    assert browser.cookies == {}


def test_a_role_without_scopes_is_refused(service: OpenService, provider: Provider, index: Index) -> None:
    browser = Browser(service(oidc={"scopes": {}}), ORIGIN)
    refused(browser.sign_in(provider), "has no scopes here", 403)
    assert events(index)[0][2] == {"address": "127.0.0.1", "reason": "no scopes"}


def test_a_mapping_that_is_removed_counts_for_open_sessions(service: OpenService, provider: Provider) -> None:
    browser = Browser(service(), ORIGIN)
    browser.sign_in(provider)
    narrower = Browser(service(oidc={"scopes": {"analysts": ["copy"]}}), ORIGIN, dict(browser.cookies))
    assert narrower.get("/api/v1/me").json()["scopes"] == ["copy"]
    without = Browser(service(oidc={"roles": {"ops": "operator"}}), ORIGIN, dict(browser.cookies))
    assert without.get("/api/v1/me").status_code == 403
