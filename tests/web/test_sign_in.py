"""A person signs in with Chromium, at a provider that others wrote."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from federator.api.app import create_app
from federator.settings import parse_settings
from federator.store import open_index, requests
from tests.fixtures.identity_provider import CALLBACK, Provider, run_provider
from tests.fixtures.serving import loopback_listener, serve_app


@pytest.fixture
def provider() -> Iterator[Provider]:
    with run_provider() as running:
        running.person("anna", groups=["ops"])
        yield running


@pytest.fixture
def url(provider: Provider, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A service on loopback that people sign in to."""
    shutil.copy(filled, tmp_path / "federator.db")
    listener = loopback_listener()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider.register(address + CALLBACK)
    monkeypatch.setenv("CLIENT_SECRET", provider.client_secret)
    sign_in = {"client_id": provider.client_id, "client_secret": "${CLIENT_SECRET}", "redirect_uri": address + CALLBACK}
    oidc = {
        "issuer": provider.url, "audience": "api", "role_claim": "groups", "roles": {"ops": "operator"},
        "scopes": {"ops": ["*"]}, "sign_in": sign_in,
    }  # fmt: skip
    sources = {name: {"impl": "federator.testing:CONNECTOR", "store": f"web-{name}"} for name in ("lake", "copy")}
    raw = {"instance": {"id": "test"}, "sources": sources, "serve": {"oidc": oidc}}
    app = create_app(parse_settings(raw, tmp_path / "federator.toml"))
    with serve_app(app, listener, force_exit=True):
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def test_a_person_signs_in_writes_and_signs_out(page: Page, url: str, tmp_path: Path) -> None:
    page.goto(f"{url}/ui/t/lake")
    page.get_by_role("link", name="Sign in with the company account").click()
    page.locator("input[name=sub]").fill("anna")
    page.get_by_role("button", name="Authorize").click()
    expect(page.locator("#person")).to_contain_text("oidc:anna")
    assert page.url == f"{url}/ui/t/lake"
    expect(page.get_by_role("heading", name="lake", exact=True)).to_be_visible()
    cookie = next(cooky for cooky in page.context.cookies() if cooky["name"] == "federator-session")
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
    assert cookie["value"] not in page.evaluate("document.cookie")
    page.get_by_role("button", name="Crawl", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Crawl requested")
    index = open_index("sqlite:///federator.db", base=tmp_path)
    with index.read() as connection:
        assert [(each.kind, each.actor) for each in requests.list_queued(connection, requests.RUN_KINDS)] == [
            ("crawl", "oidc:anna")
        ]
    index.close()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in with the company account")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Crawl")
    assert [cooky["name"] for cooky in page.context.cookies() if cooky["name"].startswith("federator")] == []


def test_who_has_no_role_reads_why_in_words(page: Page, url: str, provider: Provider) -> None:
    provider.person("eve", groups=["guests"])
    page.goto(url)
    page.get_by_role("link", name="Sign in with the company account").click()
    page.locator("input[name=sub]").fill("eve")
    page.get_by_role("button", name="Authorize").click()
    expect(page.get_by_role("heading", name="Sign-in refused")).to_be_visible()
    expect(page.locator("main")).to_contain_text("eve is signed in, but has no role here")
    expect(page.get_by_role("link", name="Sign in again")).to_be_visible()


def test_a_session_that_ended_offers_the_sign_in(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_role("link", name="Sign in with the company account").click()
    page.locator("input[name=sub]").fill("anna")
    page.get_by_role("button", name="Authorize").click()
    expect(page.locator("#person")).to_contain_text("oidc:anna")
    page.context.clear_cookies(name="federator-session")
    # The page reads again by itself too, so the form may be there before a click.
    page.goto(f"{url}/ui/runs")
    expect(page.get_by_role("link", name="Sign in with the company account")).to_be_visible()
