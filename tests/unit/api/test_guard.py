"""Access checks, and the headers of each response."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from federator.api.app import create_app
from federator.connector import ConfigError
from federator.settings import Settings
from federator.store import Index
from tests.unit.api.conftest import Api

TOKEN = "a-token-of-ours"


@pytest.fixture
def guarded(index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv("API_TOKEN", TOKEN)
    return Api(create_app(settings_of(serve={"host": "0.0.0.0", "token": "${API_TOKEN}"})), base="http://federator.corp")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "federator.corp"])
def test_another_host_than_loopback_needs_a_token(settings_of: Callable[..., Settings], host: str) -> None:
    with pytest.raises(ConfigError, match=r"\[serve\] token: required to listen on"):
        create_app(settings_of(serve={"host": host}))


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("clear", "must not stand in the file"),
        ("${NOT_SET}", "NOT_SET is not set"),
        ("file:/none", "a readable file"),
        ("${EMPTY}", "is empty"),
    ],
)
def test_a_token_that_is_none_keeps_it_from_starting(
    settings_of: Callable[..., Settings], token: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", "")
    with pytest.raises(ConfigError, match=message) as refused:
        create_app(settings_of(serve={"token": token}))
    assert "clear" not in str(refused.value)


def test_a_token_may_come_from_a_file(index: Index, settings_of: Callable[..., Settings], tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    api = Api(create_app(settings_of(serve={"token": f"file:{tmp_path}/token"})))
    assert api.get("/api/v1/tree").status_code == 401
    assert api.get("/api/v1/tree", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


BAD = (
    None,
    "",
    "Bearer",
    "Bearer ",
    "Bearer wrong",
    f"Bearer {TOKEN}x",
    f"bearer  {TOKEN[:-1]}",
    TOKEN,
    "Basic !!",
    "Basic bm8=",
)


@pytest.mark.parametrize("authorization", BAD)
def test_without_the_token_there_is_nothing(guarded: Api, authorization: str | None) -> None:
    for url in ("/docs", "/openapi.json", "/api/v1/tree", "/api/v1/runs", "/nope"):
        response = guarded.get(url, headers={} if authorization is None else {"Authorization": authorization})
        assert (response.status_code, response.json()["title"]) == (401, "Unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")


def test_with_the_token_there_is_everything(guarded: Api) -> None:
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    for values in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        for url in ("/ui/", "/docs", "/openapi.json", "/api/v1/tree"):
            assert guarded.get(url, headers={"Authorization": values}).status_code == 200


def test_probes_need_no_token(guarded: Api) -> None:
    assert guarded.get("/healthz").status_code == guarded.get("/readyz").status_code == 200


OWN_HOSTS = ("127.0.0.1:8042", "localhost", "LOCALHOST:1", "[::1]:8042", "127.1.2.3")
FOREIGN_HOSTS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8042",
    "192.0.2.1",
    "",
    "[::1",
    "127.0.0.1@evil.example",
    "evil@127.0.0.1",
)


@pytest.mark.parametrize(("host", "status"), [*((host, 200) for host in OWN_HOSTS), *((host, 421) for host in FOREIGN_HOSTS)])
def test_on_loopback_the_host_header_names_this_machine(api: Api, host: str, status: int) -> None:
    response = api.get("/api/v1/tree", headers={"Host": host})
    assert response.status_code == status
    assert (response.headers["content-type"] == "application/problem+json") == (status == 421)
    assert ("let the proxy send Host: localhost" in response.text) == (status == 421)


def test_pages_of_other_origins_do_not_write(api: Api) -> None:
    body = {"kind": "crawl"}
    for origin in ("http://evil.example", "null", "", "http://[", "http://a]b", api.base.removeprefix("http:")):
        refusal = api.post("/api/v1/runs", json=body, headers={"Origin": origin})
        assert refusal.status_code == 403
        assert "behind a proxy" in refusal.json()["hint"]
    assert api.post("/api/v1/runs", json=body, headers={"Origin": api.base}).status_code == 202
    response = api.get("/api/v1/tree", headers={"Origin": "http://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    plain = api.post("/api/v1/runs", content='{"kind":"crawl"}', headers={"Content-Type": "text/plain"})
    assert plain.status_code == 400


@pytest.mark.parametrize("url", ["/", "/ui/", "/docs", "/api/v1/tree", "/nope", "/healthz"])
def test_every_answer_carries_the_security_headers(api: Api, url: str) -> None:
    headers = api.get(url).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "geolocation=()" in headers["permissions-policy"]
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_errors_of_the_server_itself_carry_them_too(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr(Index, "read", breaks)
    for url, kind in (("/api/v1/sources", "application/problem+json"), ("/v1/table", "application/json")):
        response = api.get(url)
        assert (response.status_code, response.headers["content-type"], "hunter2" in response.text) == (500, kind, False)
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("url", "code"),
    [("/api/v1/runs", None), ("/v1/table/lake%24t/declare", 13), ("/GetTable", None), ("/api/v1/reports", None)],
)
def test_a_body_beyond_the_limit_is_a_problem_like_any_other(api: Api, url: str, code: int | None) -> None:
    response = api.post(url, content=b"x" * 1_000_001, headers={"Content-Type": "application/json"})
    kind = "application/problem+json" if code is None else "application/json"
    assert (response.status_code, response.headers["content-type"], response.json().get("code")) == (413, kind, code)
    assert response.json()["instance"] == url
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("url", ["/", "/api/v1/tree?depth=2", "/v1/table", "/openapi.json", "/healthz", "/api/v1/tree?path=no"])
def test_a_head_is_a_get_without_its_body(api: Api, url: str) -> None:
    whole, head = api.get(url), api.ask("HEAD", url)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert {**head.headers, "date": ""} == {**whole.headers, "date": ""}


@pytest.mark.parametrize(
    ("url", "methods"),
    [
        ("/api/v1/runs", "GET, POST, HEAD, OPTIONS"), ("/api/v1/tree", "GET, HEAD, OPTIONS"), ("/GetTable", "POST, OPTIONS"),
        ("/v1/table/lake%24a%2Fb/declare", "POST, OPTIONS"), ("/v1/table", "GET, HEAD, OPTIONS"),
    ],
)  # fmt: skip
def test_options_names_every_method_and_a_wrong_one_is_refused(api: Api, url: str, methods: str) -> None:
    request, wrong = api.ask("OPTIONS", url), api.ask("DELETE", url)
    assert (request.status_code, request.headers["allow"], request.content) == (204, methods, b"")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, methods)
    assert api.ask("OPTIONS", "/api/v1/nope").status_code == 404


@pytest.mark.parametrize("url", ["/ui/", "/docs"])
def test_pages_need_no_other_server_and_run_only_their_own_code(api: Api, url: str) -> None:
    response = api.get(url)
    assert response.headers["content-type"].startswith("text/html")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", response.text)
    assert " on" not in "".join(re.findall(r"<[a-z][^>]*\son[a-z]+=", response.text))
    for block in re.findall(r"<(?:script|style)>(.*?)</", response.text, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert f"sha256-{digest}" in response.headers["content-security-policy"]
