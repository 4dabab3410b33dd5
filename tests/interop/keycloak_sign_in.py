"""People sign in and programs ask through Keycloak, an identity provider that is in use: ``make interop CLIENTS=keycloak``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from federator.api.app import create_app
from federator.settings import parse_settings
from tests.fixtures.chromium import CHROMIUM
from tests.fixtures.identity_provider import CALLBACK
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.serving import loopback_listener, serve_app
from tests.fixtures.waiting import wait_until
from tests.interop.keycloak import ADMIN, AUDIENCE, PAGE, PASSWORD, REALM, ROBOT, Keycloak, Person, run_keycloak

pytestmark = pytest.mark.timeout(300)

#: serve with these changes to ``[serve.oidc]`` and ``[serve.oidc.sign_in]``, and return the address
Serve = Callable[..., str]


@pytest.fixture(scope="module")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    with run_keycloak(tmp_path_factory.mktemp("keycloak")) as running:
        yield running


@pytest.fixture
def serve(keycloak: Keycloak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serve an index with the tables ``lake$sales$orders`` and ``lake$hr$pay``, of which analysts may see the first."""
    monkeypatch.setenv("CLIENT_SECRET", keycloak.secret(PAGE))
    index = new_index(tmp_path)
    content = [
        namespace("lake", "sales"),
        namespace("lake", "hr"),
        table("lake", "sales", "orders"),
        table("lake", "hr", "pay"),
    ]
    fill(index, "lake", *content)
    with ExitStack() as services:

        def start(sign_in: dict[str, Any] | None = None, **oidc: Any) -> str:
            listener = loopback_listener()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            keycloak.change_client(PAGE, redirectUris=[url + CALLBACK])
            client = {"client_id": PAGE, "client_secret": "${CLIENT_SECRET}", "redirect_uri": url + CALLBACK, **(sign_in or {})}
            settings = {
                "issuer": keycloak.issuer, "audience": AUDIENCE, "role_claim": "groups", "name_claim": "preferred_username",
                "roles": {"analysts": "viewer", "ops": "operator"}, "scopes": {"analysts": ["lake$sales"], "ops": ["*"]},
                # Keycloak makes a key when it is needed first.
                "timeout": "30s", "sign_in": client, **oidc,
            }  # fmt: skip
            sources = {"lake": {"impl": "federator.testing:CONNECTOR", "store": "keycloak"}}
            raw = {"sources": sources, "serve": {"oidc": settings}}
            app = create_app(parse_settings(raw, tmp_path / "federator.toml"))
            return services.enter_context(serve_app(app, listener, force_exit=True))

        yield start
    index.close()


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.set_default_timeout(60_000)
        yield opened
        browser.close()


def test_a_person_signs_in_with_a_browser_and_out(serve: Serve, page: Page) -> None:
    url = serve()
    page.goto(f"{url}/ui/t/lake")
    page.get_by_role("link", name="Sign in with the company account").click()
    page.get_by_label("Username or email").fill("anna")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign In").click()
    expect(page.locator("#person")).to_contain_text("oidc:anna")
    assert page.url == f"{url}/ui/t/lake"
    expect(page.get_by_role("heading", name="lake", exact=True)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in with the company account")).to_be_visible()


def test_groups_give_the_role_and_the_scopes(serve: Serve) -> None:
    anna = Person(serve())
    assert anna.sign_in(return_to="/ui/search").headers["location"] == "/ui/search"
    me = anna.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["scopes"]) == ("oidc:anna", "viewer", ["lake$sales"])
    assert anna.get("/api/v1/tables/lake%24sales%24orders").status_code == 200
    assert anna.get("/api/v1/tables/lake%24hr%24pay").status_code == 404


def test_who_has_no_group_that_is_mapped_reads_why(serve: Serve) -> None:
    response = Person(serve(), "eve").sign_in()
    assert response.status_code == 403
    assert "eve is signed in, but has no role here" in response.text


def test_group_paths_and_realm_roles_are_values(keycloak: Keycloak, serve: Serve) -> None:
    keycloak.add_person("reader", realmRoles=["data-readers"])
    role = keycloak.admin("GET", f"/{REALM}/roles/data-readers")
    reader = keycloak.id_of("users", username="reader", exact="true")
    keycloak.admin("POST", f"/{REALM}/users/{reader}/role-mappings/realm", [role])
    path = f"/{REALM}/clients/{keycloak.id_of('clients', clientId=PAGE)}/protocol-mappers"
    mapper = {
        "name": "realm roles", "protocol": "openid-connect", "protocolMapper": "oidc-usermodel-realm-role-mapper",
        "config": {"claim.name": "realm_access.roles", "multivalued": "true", "id.token.claim": "true"},
    }  # fmt: skip
    keycloak.admin("POST", f"{path}/models", mapper)
    url = serve(role_claim="realm_access.roles", roles={"data-readers": "viewer"}, scopes={"data-readers": ["lake"]})
    person = Person(url, "reader")
    assert person.sign_in().status_code == 303
    assert person.get("/api/v1/me").json()["scopes"] == ["lake"]


def test_a_public_client_signs_in_with_pkce_alone(keycloak: Keycloak, serve: Serve) -> None:
    keycloak.change_client(PAGE, publicClient=True)
    try:
        assert Person(serve({"client_secret": None})).sign_in().status_code == 303
    finally:
        keycloak.change_client(PAGE, publicClient=False, secret=keycloak.secret(PAGE))


def test_a_wrong_client_secret_has_a_message(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", "another secret")
    response = Person(serve()).sign_in()
    assert response.status_code == 400
    assert "the identity provider refused the code: " in response.text


def test_a_response_counts_once_and_in_the_browser_that_asked(serve: Serve) -> None:
    url = serve()
    anna = Person(url)
    callback = anna.enter_password(anna.begin()).headers["location"]
    assert Person(url).client.get(callback).status_code == 400
    assert anna.client.get(callback).status_code == 303
    assert anna.client.get(callback).status_code == 400


def test_a_person_who_refuses_reads_it(keycloak: Keycloak, serve: Serve) -> None:
    url = serve()
    keycloak.change_client(PAGE, consentRequired=True)
    try:
        anna = Person(url)
        consent = anna.enter_password(anna.begin())
        if consent.status_code == 302:
            consent = anna.client.get(consent.headers["location"])
        back = anna.submit(consent, cancel="No")
        response = anna.client.get(back.headers["location"])
        assert response.status_code == 400
        assert "the identity provider refused: access_denied" in response.text
    finally:
        keycloak.change_client(PAGE, consentRequired=False)


def test_fresh_credentials_end_the_sessions_of_other_browsers(serve: Serve) -> None:
    url = serve()
    anna, elsewhere = Person(url), Person(url)
    assert (anna.sign_in().status_code, elsewhere.sign_in().status_code) == (303, 303)
    # Keycloak knows the person, so it asks for nothing, and says when it did.
    assert anna.begin().status_code == 302
    form = anna.begin(fresh="true")
    assert form.status_code == 200, "Keycloak asks for the password again"
    back = anna.enter_password(form)
    assert anna.client.get(back.headers["location"]).status_code == 303
    assert anna.post("/api/v1/me/sessions/all/revoke").status_code == 200
    # A process knows a session for a second.
    wait_until(lambda: elsewhere.get("/api/v1/me").status_code == 401, "the other session has ended", seconds=30)


def test_a_group_that_was_removed_is_lost_in_all_browsers_with_the_next_sign_in(keycloak: Keycloak, serve: Serve) -> None:
    keycloak.add_person("olga", "analysts", "ops")
    url = serve()
    before, after = Person(url, "olga"), Person(url, "olga")
    assert before.sign_in().status_code == 303
    assert before.get("/api/v1/me").json()["role"] == "operator"
    keycloak.set_groups("olga", "analysts")
    assert after.sign_in().status_code == 303
    assert after.get("/api/v1/me").json()["role"] == "viewer"
    # A process knows a session for a second.
    wait_until(lambda: before.get("/api/v1/me").json()["role"] == "viewer", "the other browser has lost the group", seconds=30)


def test_a_person_in_many_groups_signs_in(keycloak: Keycloak, serve: Serve) -> None:
    names = [f"department {number:03d} of a company with long names" for number in range(300)]
    for name in names:
        keycloak.admin("POST", f"/{REALM}/groups", {"name": name})
    keycloak.add_person("busy", "analysts", *names)
    busy = Person(serve(), "busy")
    assert busy.sign_in().status_code == 303
    assert busy.get("/api/v1/me").json()["scopes"] == ["lake$sales"]


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
def test_each_signature_that_is_allowed_is_checked(keycloak: Keycloak, serve: Serve, algorithm: str) -> None:
    keycloak.change_client(PAGE, attributes={"id.token.signed.response.alg": algorithm})
    try:
        anna = Person(serve(algorithms=[algorithm]))
        assert anna.sign_in().status_code == 303
        refused = Person(serve(algorithms=["ES512"])).sign_in()
        assert (refused.status_code, f"the algorithm &#x27;{algorithm}&#x27; is not allowed" in refused.text) == (401, True)
    finally:
        keycloak.change_client(PAGE, attributes={"id.token.signed.response.alg": "RS256"})


def test_a_program_asks_with_its_own_token(keycloak: Keycloak, serve: Serve) -> None:
    keycloak.set_groups(f"service-account-{ROBOT}", "analysts")
    url, token = serve(), keycloak.token_of_program()
    headers = {"Authorization": f"Bearer {token}"}
    me = httpx.get(f"{url}/api/v1/me", headers=headers).json()
    assert (me["name"], me["role"], me["scopes"]) == (f"oidc:service-account-{ROBOT}", "viewer", ["lake$sales"])
    listed = httpx.get(f"{url}/v1/namespace/lake%24sales/table/list", headers=headers)
    assert listed.json()["tables"] == ["orders"]


def test_tokens_for_others_and_of_others_are_refused(keycloak: Keycloak, serve: Serve) -> None:
    url = serve()
    of_robot = keycloak.token_of_program()
    form = {"client_id": "admin-cli", "grant_type": "password", **ADMIN}
    of_master = httpx.post(f"{keycloak.url}/realms/master/protocol/openid-connect/token", data=form).json()["access_token"]
    keycloak.change_client(PAGE, serviceAccountsEnabled=True)
    for_nobody = keycloak.token_of_program(PAGE)
    statuses = {
        name: httpx.get(f"{url}/api/v1/sources", headers={"Authorization": f"Bearer {token}"}).status_code
        for name, token in {"master": of_master, "no audience": for_nobody, "changed": of_robot[:-6] + "AAAAAA"}.items()
    }
    assert statuses == {"master": 401, "no audience": 401, "changed": 401}


def test_a_key_that_was_rotated_is_learned_and_the_old_one_stays_good(keycloak: Keycloak, serve: Serve) -> None:
    keycloak.set_groups(f"service-account-{ROBOT}", "analysts")
    url, old = serve(), keycloak.token_of_program()

    def ask(token: str) -> int:
        return httpx.get(f"{url}/api/v1/sources", headers={"Authorization": f"Bearer {token}"}).status_code

    assert ask(old) == 200
    key = {
        "name": "next", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
        "config": {"priority": ["1000"], "algorithm": ["RS256"], "keySize": ["3072"]},
    }  # fmt: skip
    keycloak.admin("POST", f"/{REALM}/components", key)
    new = keycloak.token_of_program()
    # The keys are read again at most once in 30 seconds.
    wait_until(lambda: ask(new) == 200, "the service knows the new key", seconds=60)
    assert ask(old) == 200


def test_doctor_checks_the_provider_and_names_a_wrong_issuer(keycloak: Keycloak, tmp_path: Path) -> None:
    config = tmp_path / "federator.toml"
    text = '[sources.lake]\nimpl = "dir"\ndir.root = "{root}"\n[serve.oidc]\nissuer = "{issuer}"\naudience = "a"\n'
    (tmp_path / "lake").mkdir()

    def run(issuer: str) -> str:
        config.write_text(text.format(root=tmp_path / "lake", issuer=issuer))
        command = [Path(sys.executable).with_name("federator"), "--config", config, "doctor"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert re.search(r"\b[1-9][0-9]* keys\b", run(keycloak.issuer))
    wrong = run(f"{keycloak.url}/realms/{REALM}x")
    assert "404" in wrong
