"""Settings: tokens are listed, created, shown once and revoked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

import federator
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import tokens
from tests.web.conftest import Service, run_service

OpenPage = Callable[[str], Page]


@pytest.fixture
def guarded(filled: Path, tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "federator.db").write_bytes(filled.read_bytes())
    with run_service(tmp_path, auth="required") as service:
        yield service


def _sign_in(page: Page, service: Service, role: str, scopes: Scopes) -> None:
    secret, _ = tokens.create_token(service.index, role, role=role, scopes=scopes, lifetime=600, actor="tests")
    page.get_by_label("Token", exact=True).fill(secret)
    page.get_by_role("button", name="Sign in").click()


def test_a_token_is_created_shown_once_used_and_revoked(open_page: OpenPage, service: Service) -> None:
    page = open_page("settings")
    panel = page.get_by_role("region", name="Tokens", exact=True)
    expect(panel).to_contain_text("No token yet")
    panel.get_by_text("New token").click()
    panel.get_by_label("Name").fill("ci")
    panel.get_by_label("Role").select_option("operator")
    panel.get_by_label("Scopes").fill("lake$sales\nnowhere")
    panel.get_by_role("button", name="Create the token").click()
    expect(panel).to_contain_text("It cannot be shown again")
    expect(panel).to_contain_text("No source nowhere is configured")
    secret = panel.locator(".secret code").inner_text()
    me = requests.get(f"{service.url}/api/v1/me", headers={"Authorization": f"Bearer {secret}"}, timeout=60).json()
    assert (me["name"], me["role"], me["scopes"]) == ("token:ci", "operator", ["lake$sales", "nowhere"])
    page.reload()
    row = panel.get_by_role("row", name="ci")
    expect(row).to_contain_text("active")
    assert secret not in page.content()
    row.get_by_role("button", name="Revoke: ci").click()
    expect(row).to_contain_text("Revoke for good?")
    row.get_by_role("button", name="Revoke: ci").click()
    expect(row).to_contain_text("revoked")
    assert [token.state(0) for token in tokens.list_tokens(service.index)] == ["revoked"]


@pytest.mark.parametrize(("role", "scopes"), [("writer", EVERYTHING), ("admin", Scopes.parse(["lake"]))])
def test_others_read_what_tokens_need(guarded: Service, browser: Browser, role: str, scopes: Scopes) -> None:
    context = browser.new_context(base_url=guarded.url)
    page = context.new_page()
    page.goto("/ui/settings")
    _sign_in(page, guarded, role, scopes)
    panel = page.get_by_role("region", name="Tokens", exact=True)
    expect(panel).to_contain_text("They need the role admin and the scope *")
    expect(panel.get_by_role("button")).to_have_count(0)
    context.close()


@pytest.mark.parametrize("width", [1200, 390])
def test_the_form_of_a_token_fits(open_page: OpenPage, service: Service, width: int) -> None:
    tokens.create_token(service.index, "a" * 100, role="admin", scopes=EVERYTHING, lifetime=None, actor="tests")
    page = open_page("settings")
    page.set_viewport_size({"width": width, "height": 800})
    page.get_by_text("New token").click()
    expect(page.get_by_role("button", name="Create the token")).to_be_visible()
    assert page.evaluate("document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth")


def test_a_job_fits_on_a_phone_and_the_service_says_what_it_is(open_page: OpenPage) -> None:
    page = open_page("settings")
    page.set_viewport_size({"width": 390, "height": 844})
    buttons = page.get_by_role("button", name=re.compile("^(Run now|Pause): sync:nightly$"))
    expect(buttons).to_have_count(2)
    upper, lower = buttons.evaluate_all("buttons => buttons.map(button => button.getBoundingClientRect().y)")
    assert upper == lower
    about = page.get_by_role("region", name="About")
    expect(about).to_contain_text(federator.__version__)
    expect(about).to_contain_text("/api/v1")


def test_who_may_not_act_reads_it_before_typing_a_reason(guarded: Service, browser: Browser) -> None:
    context = browser.new_context(base_url=guarded.url)
    page = context.new_page()
    page.goto(f"/ui/plans/{guarded.plan}")
    _sign_in(page, guarded, "viewer", EVERYTHING)
    for button in ("Approve and apply (1 removal)", "Reject", "Apply the others"):
        expect(page.get_by_role("button", name=button)).to_be_disabled()
        expect(page.get_by_role("button", name=button)).to_have_attribute(
            "title", "Needs the role operator; you have the role viewer"
        )
    page.goto("/ui/t/lake")
    expect(page.get_by_role("button", name="Crawl", exact=True)).to_be_disabled()
    context.close()
