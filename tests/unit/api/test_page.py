"""The page's document and files: open to everybody, without data, and each version with URLs of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from federator import web
from federator.api.app import create_app
from federator.settings import Settings
from federator.store import Index
from tests.unit.api.conftest import Api


@pytest.fixture
def guarded(index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv("PAGE_TOKEN", "lft_" + "x" * 40)
    return Api(create_app(settings_of(serve={"token": "${PAGE_TOKEN}"})))


def test_the_page_is_open_and_the_same_for_every_path(guarded: Api) -> None:
    assert (guarded.get("/").status_code, guarded.get("/").headers["location"]) == (307, "/ui/")
    document = guarded.get("/ui/")
    assert document.status_code == 200
    assert guarded.get("/ui/t/lake%24sales%2Forders").content == guarded.get("/ui/plans").content == document.content
    assert "lake" not in document.text
    for address in re.findall(r'(?:src|href)="(/web/[^"]+)"', document.text):
        assert guarded.get(address).status_code == 200, address


def test_only_reading_the_page_is_open(guarded: Api) -> None:
    assert guarded.post("/ui/").status_code == 401
    assert guarded.get("/web").status_code == guarded.get("/uix").status_code == 401
    assert guarded.get("/ui/../api/v1/tree").status_code == 401


def test_a_file_has_the_digest_of_its_version_and_may_be_kept(api: Api) -> None:
    assets = web.load_assets()
    for name in assets.files:
        response = api.get(f"/web/{assets.digest}/{name}")
        assert response.content == assets.files[name]
        assert "immutable" in response.headers["cache-control"]
        assert response.headers["content-type"] == assets.media_type(name)
    for address in (f"/web/{'0' * 16}/main.js", f"/web/{assets.digest}/none.js", f"/web/{assets.digest}/../__init__.py"):
        assert api.get(address).status_code == 404, address


def test_the_policy_of_the_page_allows_its_files_only(api: Api) -> None:
    policy = api.get("/ui/").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert not re.search(r"<script(?![^>]*src=)|<style|style=|\son[a-z]+=", api.get("/ui/").text)


def test_only_a_navigation_opens_the_prompt_of_a_browser(guarded: Api) -> None:
    challenge = {
        mode: guarded.get("/api/v1/tree", headers={"Sec-Fetch-Mode": mode}).headers["www-authenticate"]
        for mode in ("navigate", "cors", "same-origin")
    }
    assert challenge["cors"] == challenge["same-origin"] == "Bearer"
    assert "Basic" in challenge["navigate"]
    assert "Basic" in guarded.get("/api/v1/tree").headers["www-authenticate"]
