"""People sign in with a browser at a provider that others wrote; and what an attacker makes of each step."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from sqlalchemy import select

import federator
from federator.api.app import create_app
from federator.connector import ConfigError
from federator.model.scopes import EVERYTHING
from federator.settings import Settings
from federator.store import Index, tokens
from federator.store import tables as t
from tests.fixtures.identity_provider import CALLBACK, Browser, Provider, path_of
from tests.unit.api.conftest import Api
from tests.unit.api.sign_in_support import ORIGIN, PENDING, SESSION, OpenService, events, refused
from tests.unit.api.sign_in_support import browser as browser
from tests.unit.api.sign_in_support import provider as provider
from tests.unit.api.sign_in_support import running as running
from tests.unit.api.sign_in_support import service as service


def test_a_person_signs_in_uses_the_api_and_signs_out(browser: Browser, provider: Provider, index: Index) -> None:
    assert browser.get("/ui/").status_code == 200
    assert browser.get("/api/v1/me").status_code == 401
    assert browser.get("/api/v1/me").headers["www-authenticate"] == "Bearer"
    url = browser.start("/#/tree")
    sent = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert url.startswith(f"{provider.url}/oauth2/authorize?")
    assert {name: sent[name] for name in ("response_type", "client_id", "redirect_uri", "scope", "code_challenge_method")} == {
        "response_type": "code", "client_id": provider.client_id, "redirect_uri": ORIGIN + CALLBACK,
        "scope": "openid profile email", "code_challenge_method": "S256",
    }  # fmt: skip
    assert len({sent["state"], sent["nonce"], sent["code_challenge"]}) == 3
    assert not browser.cookies[PENDING].count(sent["state"])
    _check_attributes(browser.set_cookies[0])
    response = browser.get(path_of(provider.approve(url)))
    assert (response.status_code, response.headers["location"], response.headers["cache-control"]) == (
        303,
        "/#/tree",
        "no-store",
    )
    assert list(browser.cookies) == [SESSION]
    _check_attributes(next(text for text in browser.set_cookies if text.startswith(SESSION)))
    me = browser.get("/api/v1/me").json()
    csrf = me.pop("csrf_token")
    assert me == {"name": "oidc:anna", "role": "viewer", "scopes": ["lake$sales"], "version": federator.__version__}
    assert csrf not in browser.cookies[SESSION]
    assert [node["id"] for node in browser.get("/api/v1/tree?path=lake").json()["nodes"]] == ["lake$sales"]
    form = provider.forms("/oauth2/token")[0]
    assert (form["redirect_uri"], len(form["code_verifier"]), "client_secret" in form) == (ORIGIN + CALLBACK, 43, False)
    secret = browser.cookies[SESSION]
    with index.read() as connection:
        rows = [dict(row) for row in connection.execute(select(t.session)).mappings()]
    assert len(rows) == 1
    assert secret not in json.dumps(rows)
    assert browser.ask("POST", "/auth/logout", headers=browser.csrf()).status_code == 204
    assert browser.cookies == {}
    assert browser.get("/api/v1/me", headers={"Cookie": f"{SESSION}={secret}"}).status_code == 401
    kinds = [(kind, actor) for kind, actor, _ in events(index)]
    assert kinds == [("signed_in", "oidc:anna"), ("signed_out", "oidc:anna")]
    assert (events(index)[0][2]["role"], events(index)[0][2]["scopes"]) == ("viewer", ["lake$sales"])
    assert secret not in str(events(index))


def _check_attributes(text: str) -> None:
    attributes = {part.strip().lower() for part in text.split(";")[1:]}
    assert {"httponly", "secure", "path=/", "samesite=lax"} <= attributes
    assert not [attribute for attribute in attributes if attribute.startswith("domain")]


def test_the_browser_that_did_not_start_a_sign_in_does_not_finish_it(service: OpenService, provider: Provider) -> None:
    """Login CSRF: an attacker sends a victim to the callback of the attacker's own sign-in."""
    app = service().app
    attacker, victim, other = (Browser(Api(app, base=ORIGIN), ORIGIN) for _ in range(3))
    callback = path_of(provider.approve(attacker.start(), "mallory"))
    refused(victim.get(callback), "has not started a sign-in")
    other.start()
    refused(other.get(callback), "belongs to another sign-in")
    assert provider.forms("/oauth2/token") == [], "a code of another sign-in is not even sent to the provider"


def test_a_session_that_was_there_before_is_not_continued(browser: Browser, provider: Provider, index: Index) -> None:
    """Session fixation: an attacker gives a victim a session to sign in with."""
    browser.cookies[SESSION] = "chosen-by-somebody"
    browser.sign_in(provider)
    first = browser.cookies[SESSION]
    assert first != "chosen-by-somebody"
    browser.sign_in(provider)
    assert browser.cookies[SESSION] != first
    with index.read() as connection:
        assert len(connection.execute(select(t.session)).all()) == 1, "the earlier session of this browser has ended"


FOREIGN = (
    "https://evil.example", "//evil.example", "/\\evil.example", "/%5cx\\", "\\\\evil.example", "javascript:alert(1)", "evil", "",
    "/\t/evil.example", "/x\r\nSet-Cookie: a=b", "/ä", " /", "/x y", "/" + "x" * 1000,
)  # fmt: skip


@pytest.mark.parametrize("address", FOREIGN)
def test_a_sign_in_returns_to_no_other_host(browser: Browser, address: str) -> None:
    response = browser.get(f"/auth/login?return_to={quote(address)}")
    assert response.status_code == 400
    assert "location" not in response.headers
    assert PENDING not in browser.cookies


def test_what_a_person_has_lost_at_the_provider_is_lost_to_all_sessions(service: OpenService, provider: Provider) -> None:
    app = service().app
    first, second, third = (Browser(Api(app, base=ORIGIN), ORIGIN) for _ in range(3))
    for each, groups, status, role in (
        (first, ["analysts", "ops"], 303, "operator"), (second, ["analysts"], 303, "viewer"), (third, ["staff"], 403, None),
    ):  # fmt: skip
        provider.person("anna", groups=groups)
        assert each.sign_in(provider).status_code == status
        time.sleep(1.1)
        me = first.get("/api/v1/me")
        assert (me.status_code, me.json().get("role")) == (200 if role else 401, role)


def test_an_altered_address_to_return_to_ends_the_sign_in(browser: Browser, provider: Provider) -> None:
    callback = path_of(provider.approve(browser.start("/#/tree")))
    secret, started, _ = browser.cookies[PENDING].split(".")
    browser.cookies[PENDING] = f"{secret}.{started}.Ly9ldmlsLmV4YW1wbGU"
    refused(browser.get(callback), "belongs to another sign-in")


def test_a_response_of_another_provider_is_refused(service: OpenService, provider: Provider) -> None:
    """Mix-up (RFC 9207): a code of one provider is brought to another."""
    browser = Browser(service(), ORIGIN)
    callback = path_of(provider.approve(browser.start()))
    refused(browser.get(f"{callback}&iss=https%3A%2F%2Fevil.example"), "from another identity provider")
    callback = path_of(provider.approve(browser.start()))
    assert browser.get(f"{callback}&iss={quote(provider.url, safe='')}").status_code == 303
    provider.document = {"authorization_response_iss_parameter_supported": True}
    strict = Browser(service(), ORIGIN)
    refused(strict.sign_in(provider), "from another identity provider")
    assert len(provider.forms("/oauth2/token")) == 1


@pytest.mark.parametrize(("checks_pkce", "message"), [(True, "refused the code"), (False, "belongs to another sign-in")])
def test_a_stolen_code_is_of_no_use_in_another_browser(
    service: OpenService, provider: Provider, checks_pkce: bool, message: str
) -> None:
    """Code injection: PKCE at the provider refuses it; without PKCE there, the nonce does."""
    provider.checks_pkce = checks_pkce
    app = service().app
    attacker, victim = (Browser(Api(app, base=ORIGIN), ORIGIN) for _ in range(2))
    stolen = parse_qs(urlsplit(provider.approve(victim.start())).query)["code"][0]
    own = parse_qs(urlsplit(provider.approve(attacker.start(), "mallory")).query)["state"][0]
    response = attacker.get(f"{CALLBACK}?code={stolen}&state={own}")
    refused(response, message, 400 if checks_pkce else 401)
    assert SESSION not in attacker.cookies


def test_a_callback_works_once(browser: Browser, provider: Provider, index: Index) -> None:
    callback = path_of(provider.approve(browser.start()))
    pending = browser.cookies[PENDING]
    assert browser.get(callback).status_code == 303
    refused(browser.get(callback), "has not started a sign-in, or it is finished already")
    browser.cookies[PENDING] = pending
    refused(browser.get(callback), "refused the code")
    with index.read() as connection:
        assert len(connection.execute(select(t.session)).all()) == 1


def test_a_cookie_that_another_host_set_is_not_taken(service: OpenService, provider: Provider) -> None:
    """Cookie tossing: a neighbouring host sets a cookie of the same name. ``__Host-`` forbids it; without HTTPS, two are refused."""
    app = service().app
    attacker, victim = (Browser(Api(app, base=ORIGIN), ORIGIN) for _ in range(2))
    attacker.sign_in(provider, "anna")
    plain = {"Cookie": f"federator-session={attacker.cookies[SESSION]}"}
    assert victim.api.get("/api/v1/me", headers=plain).status_code == 401
    victim.sign_in(provider)
    both = {"Cookie": f"{SESSION}={attacker.cookies[SESSION]}; {SESSION}={victim.cookies[SESSION]}"}
    assert victim.api.get("/api/v1/me", headers=both).status_code == 400
    callback = path_of(provider.approve(victim.start()))
    tossed = {"Cookie": f"{PENDING}=x.1.Lw; {PENDING}={victim.cookies[PENDING]}"}
    assert victim.api.get(callback, headers=tossed).status_code == 400


def test_a_write_needs_the_origin_and_the_token_of_the_own_page(browser: Browser, provider: Provider, index: Index) -> None:
    provider.person("anna", groups=["analysts", "ops"])
    browser.sign_in(provider)
    good = browser.csrf()
    write = {"method": "POST", "url": "/api/v1/runs", "json": {"kind": "crawl"}}
    other = Browser(browser.api, ORIGIN)
    other.sign_in(provider)
    foreign_token = other.csrf()["X-CSRF-Token"]
    for headers in (
        {}, {"Origin": ORIGIN}, {"X-CSRF-Token": good["X-CSRF-Token"]}, {**good, "X-CSRF-Token": foreign_token},
        {**good, "X-CSRF-Token": ""}, {**good, "Origin": "https://evil.example"}, {**good, "Origin": "null"},
        {**good, "Origin": "http://federator.corp"}, {**good, "Origin": ORIGIN + ":8443"},
    ):  # fmt: skip
        for url in ("/api/v1/runs", "/auth/logout", "/v1/table/lake%24sales%24orders/describe"):
            assert browser.ask(**{**write, "url": url}, headers=headers).status_code == 403, (url, headers)
    for path, operations in browser.api.app.openapi()["paths"].items():
        for method in operations.keys() - {"get"}:
            response = browser.ask(method.upper(), re.sub(r"{\w+}", "x", path), headers={"Origin": ORIGIN}, content=b"{}")
            assert response.status_code == 403, (method, path)
    assert browser.get("/api/v1/me").status_code == 200, "nobody was signed out"
    assert browser.ask(**write, headers=good).status_code == 202
    assert browser.ask(**write, headers={**good, "Host": "127.0.0.1:8042"}).status_code == 202, "a proxy replaced the host"
    secret, _ = tokens.create_token(index, "ci", role="operator", scopes=EVERYTHING, lifetime=None, actor="tests")
    assert browser.ask(**write, headers={"Authorization": f"Bearer {secret}"}).json()["actor"] == "token:ci"


def test_a_page_of_an_allowed_origin_writes_with_a_token_only(service: OpenService, provider: Provider) -> None:
    other = "https://tools.federator.corp"
    browser = Browser(service(serve={"cors_origins": [other]}), ORIGIN)
    provider.person("anna", groups=["ops"])
    browser.sign_in(provider)
    headers = {**browser.csrf(), "Origin": other}
    response = browser.ask("POST", "/api/v1/runs", json={"kind": "crawl"}, headers=headers)
    assert response.status_code == 403
    assert "access-control-allow-credentials" not in browser.get("/api/v1/me", headers={"Origin": other}).headers


def test_a_session_is_no_token_and_a_token_is_no_session(browser: Browser, provider: Provider, index: Index) -> None:
    browser.sign_in(provider)
    session = browser.cookies.pop(SESSION)
    for headers in ({"Authorization": f"Bearer {session}"}, {"x-api-key": session}):
        assert browser.get("/api/v1/me", headers=headers).status_code == 401
    secret, _ = tokens.create_token(index, "ci", role="admin", scopes=EVERYTHING, lifetime=None, actor="tests")
    assert browser.get("/api/v1/me", headers={"Cookie": f"{SESSION}={secret}"}).status_code == 401
    assert browser.get("/api/v1/me", headers={"x-api-key": secret}).json()["csrf_token"] is None


def test_a_person_who_declines_reads_that(browser: Browser, provider: Provider) -> None:
    for error, message in (
        ("access_denied", "refused: access_denied"),
        ("<script>alert(1)</script>", "refused: unknown error"),
    ):
        state = parse_qs(urlsplit(browser.start()).query)["state"][0]
        refused(browser.get(CALLBACK, params={"error": error, "state": state}), message)
    assert provider.forms("/oauth2/token") == []


def test_refused_callbacks_are_in_the_audit_log_up_to_a_rate(
    service: OpenService, provider: Provider, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("federator.api.routes.sign_in._RECORDS_AT_ONCE", 3)
    monkeypatch.setattr("federator.api.routes.sign_in._RECORDS_PER_SECOND", 1e-6)
    browser = Browser(service(), ORIGIN)
    state = parse_qs(urlsplit(browser.start()).query)["state"][0]
    browser.get(CALLBACK, params={"error": "access_denied", "state": state})
    for _ in range(4):
        browser.get(f"{CALLBACK}?code=c&state=s")
    recorded = [(kind, actor, detail["reason"], detail["address"]) for kind, actor, detail in events(index)]
    unknown = "this browser has not started a sign-in, or it is finished already"
    assert recorded == [
        ("sign_in_refused", "unknown", "the identity provider refused: access_denied", "127.0.0.1"),
        *[("sign_in_refused", "unknown", unknown, "127.0.0.1")] * 2,
    ]


def test_a_person_sees_and_ends_the_own_sessions(service: OpenService, provider: Provider, index: Index) -> None:
    app = service().app
    first, second, other = (Browser(Api(app, base=ORIGIN), ORIGIN) for _ in range(3))
    provider.change_claims = lambda claims: claims.update(auth_time=time.time())
    for each, person in ((first, "anna"), (second, "anna"), (other, "eve")):
        provider.person(person, groups=["analysts"])
        assert each.get(path_of(provider.approve(each.start(), person))).status_code == 303
    listed = first.get("/api/v1/me/sessions").json()["sessions"]
    assert [each["is_current"] for each in listed] == [True, False]
    assert not any(each.cookies[SESSION] in str(listed) for each in (first, second, other))
    foreign = other.get("/api/v1/me/sessions").json()["sessions"][0]["id"]
    url = f"/api/v1/me/sessions/{listed[1]['id']}/revoke"
    assert first.ask("POST", url).status_code == 403, "without the CSRF token"
    assert first.ask("POST", f"/api/v1/me/sessions/{foreign}/revoke", headers=first.csrf()).status_code == 404
    assert first.ask("POST", url, headers=first.csrf()).json() == {"revoked": 1}
    time.sleep(1.1)
    assert [each.get("/api/v1/me").status_code for each in (first, second, other)] == [200, 401, 200]
    assert first.ask("POST", "/api/v1/me/sessions/all/revoke", headers=first.csrf()).json() == {"revoked": 1}
    with index.read() as connection:
        assert connection.execute(select(t.session.c.name)).scalars().all() == ["eve"]
        kinds = [json.loads(text) for text in connection.execute(select(t.audit_outbox.c.event)).scalars()]
    revoked = [
        (event["actor"], event["subject"], len(event["detail"]["sessions"])) for event in kinds if "revoked" in event["kind"]
    ]
    assert revoked == [("oidc:anna", "anna", 1)] * 2


@pytest.mark.parametrize("authenticated", [None, -301, 3600, "now"])
def test_only_a_person_who_has_just_entered_credentials_ends_other_sessions(
    service: OpenService, provider: Provider, index: Index, authenticated: float | str | None
) -> None:
    """Without them, somebody with a stolen session could end those of its person."""
    app = service().app
    thief, other = (Browser(Api(app, base=ORIGIN), ORIGIN) for _ in range(2))
    at = time.time() + authenticated if isinstance(authenticated, int | float) else authenticated
    provider.change_claims = lambda claims: claims.update(auth_time=at) if at is not None else claims.pop("auth_time", None)
    for each in (thief, other):
        each.sign_in(provider)
    listed = thief.get("/api/v1/me/sessions").json()["sessions"]
    for session in (listed[1]["id"], "all"):
        response = thief.ask("POST", f"/api/v1/me/sessions/{session}/revoke", headers=thief.csrf())
        assert (response.status_code, response.json()["hint"]) == (403, "sign in at /auth/login?fresh=true"), response.text
    assert len(thief.get("/api/v1/me/sessions").json()["sessions"]) == 2
    own = thief.ask("POST", f"/api/v1/me/sessions/{listed[0]['id']}/revoke", headers=thief.csrf())
    assert own.json() == {"revoked": 1}
    started = other.get("/auth/login", params={"fresh": "true"}).headers["location"]
    sent = parse_qs(urlsplit(started).query)
    assert (sent["prompt"], sent["max_age"]) == (["login"], ["0"])
    provider.change_claims = lambda claims: claims.update(auth_time=int(time.time()))
    assert other.get(path_of(provider.approve(started))).status_code == 303
    assert other.ask("POST", "/api/v1/me/sessions/all/revoke", headers=other.csrf()).json() == {"revoked": 1}


def test_a_token_is_created_only_after_credentials_were_entered(service: OpenService, provider: Provider, index: Index) -> None:
    """A stolen session could live on in a token, which nobody sees expire."""
    oidc = {"roles": {"analysts": "admin"}, "scopes": {"analysts": ["*"]}}
    browser = Browser(service(oidc), ORIGIN)
    body = {"name": "kept", "role": "viewer", "scopes": ["lake"]}
    for age, status in ((301, 403), (10, 201)):
        entered_at = int(time.time()) - age
        provider.change_claims = lambda claims, at=entered_at: claims.update(auth_time=at)
        browser.sign_in(provider)
        response = browser.ask("POST", "/api/v1/tokens", headers=browser.csrf(), json=body)
        assert response.status_code == status, response.text
    assert [token.name for token in tokens.list_tokens(index)] == ["kept"]


def test_parameters_that_come_twice_and_late_responses_are_refused(
    browser: Browser, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    callback = path_of(provider.approve(browser.start()))
    refused(browser.get(f"{callback}&code=other"), "has a parameter twice")
    callback = path_of(provider.approve(browser.start()))
    monkeypatch.setattr("federator.api.sign_in.SIGN_IN_SECONDS", 0)
    refused(browser.get(callback), "took too long")
    assert provider.forms("/oauth2/token") == []


@pytest.mark.parametrize("cookie", ["x", "..", ".1.Lw", "a.b.c", "a.1.!", "a.1._w", "a." + "9" * 5000 + ".Lw"])
def test_any_text_in_the_cookie_of_a_sign_in_is_refused(browser: Browser, cookie: str) -> None:
    refused(browser.get(f"{CALLBACK}?code=c&state=s", headers={"Cookie": f"{PENDING}={cookie}"}), "sign-in")


def test_the_redirect_uri_must_be_the_registered_one(service: OpenService, provider: Provider) -> None:
    elsewhere = "https://other.corp"
    browser = Browser(service(redirect_uri=elsewhere + CALLBACK), elsewhere)
    url = browser.start()
    with pytest.raises(AssertionError):
        provider.approve(url)


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"token_endpoint": "http://192.0.2.1/token"}, 503), ({"authorization_endpoint": "http://192.0.2.1/x"}, 503),
        ({"authorization_endpoint": "javascript:alert(1)"}, 503), ({"token_endpoint": None}, 503),
        ({"issuer": "https://evil.example"}, 503),
        ({"padding": "x" * 1_000_000}, 503), ({"token_endpoint_auth_methods_supported": ["client_secret_post"]}, 303),
    ],
)  # fmt: skip
def test_a_discovery_document_leads_to_no_unsafe_address(
    service: OpenService, provider: Provider, document: dict[str, Any], status: int
) -> None:
    provider.document = document
    response = Browser(service(), ORIGIN).get("/auth/login")
    assert response.status_code == status
    if status == 503:
        assert "does not answer" in response.text


def test_a_provider_that_is_gone_is_asked_again_after_a_moment(
    service: OpenService, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(service(), ORIGIN)
    provider.document = {"issuer": "https://evil.example"}
    assert browser.get("/auth/login").status_code == 503
    provider.document, before = {}, len(provider.requests)
    assert browser.get("/auth/login").status_code == 503
    assert len(provider.requests) == before
    monkeypatch.setattr("federator.api.identity_provider.RETRY_SECONDS", 0.0)
    assert browser.get("/auth/login").status_code == 303


def test_the_secret_is_sent_in_the_way_that_the_provider_lists(service: OpenService, provider: Provider) -> None:
    provider.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    Browser(service(), ORIGIN).sign_in(provider)
    public = Browser(service(client_secret=None), ORIGIN)
    public.sign_in(provider)
    by_post, without = provider.forms("/oauth2/token")
    assert (by_post["client_secret"], "client_secret" in without, without["client_id"]) == (
        provider.client_secret, False, provider.client_id,
    )  # fmt: skip


def test_callbacks_beyond_the_limit_are_refused(service: OpenService, provider: Provider) -> None:
    browser = Browser(service(serve={"requests_per_second": 0.001, "burst": 3}), ORIGIN)
    statuses = [browser.get(f"{CALLBACK}?code=c&state=s").status_code for _ in range(5)]
    assert statuses == [400] * 3 + [429] * 2
    stale = [browser.get("/api/v1/me", headers={"Cookie": f"{SESSION}=x{n}"}).status_code for n in range(2)]
    assert stale == [429, 429]


def test_on_loopback_cookies_are_plain(service: OpenService, provider: Provider) -> None:
    origin = "http://localhost:8042"
    provider.register(origin + CALLBACK)
    try:
        api = service(serve={"host": "127.0.0.1"}, redirect_uri=origin + CALLBACK, client_secret=None)
        browser = Browser(Api(api.app, base=origin), origin)
        browser.start()
        assert list(browser.cookies) == ["federator-sign-in"]
        assert "secure" not in browser.set_cookies[0].lower()
        assert "httponly" in browser.set_cookies[0].lower()
    finally:
        provider.register(ORIGIN + CALLBACK)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"redirect_uri": "http://federator.corp/auth/callback"}, "redirect_uri"), ({"redirect_uri": ORIGIN}, "redirect_uri"),
        ({"redirect_uri": f"{ORIGIN}{CALLBACK}?x=1"}, "redirect_uri"), ({"redirect_uri": f"{ORIGIN}/x{CALLBACK}"}, "redirect_uri"),
        ({"client_id": ""}, "client_id"), ({"client_secret": "clear"}, "must not stand in the file"),
        ({"client_secret": "file:/none"}, "client_secret: not a readable file"), ({"max_sessions": 0}, "max_sessions"),
        ({"request_scopes": ["profile"]}, "request_scopes"), ({"session_lifetime": "0s"}, "session_lifetime"),
    ],
)  # fmt: skip
def test_settings_of_a_sign_in_that_cannot_be_safe_are_refused(
    service: OpenService, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        service(**change)


def test_without_a_configured_sign_in_there_are_no_routes_for_it(index: Index, settings_of: Callable[..., Settings]) -> None:
    api = Api(create_app(settings_of()))
    assert [api.ask(method, url).status_code for method, url in (("GET", "/auth/login"), ("POST", "/auth/logout"))] == [
        404,
        404,
    ]
    assert "sign-in" not in api.get("/").text.split("<script>")[0]
    assert api.json("/api/v1/me") == {
        "name": "api", "role": "admin", "scopes": ["*"], "csrf_token": None, "version": federator.__version__
    }  # fmt: skip
