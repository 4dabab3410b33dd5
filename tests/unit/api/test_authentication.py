"""Authentication: tokens of the index in each header, request limits, and allowed web origins."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update
from starlette.datastructures import Headers

from federator.api.app import create_app
from federator.api.authentication import CACHE_SECONDS, Authenticator
from federator.api.principals import LOCAL_PRINCIPAL, Principal, Role
from federator.api.problems import RequestRejected
from federator.api.rate_limit import RequestRateLimiter
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import Settings
from federator.store import Index, tokens
from federator.store import tables as t
from tests.unit.api.conftest import Api

CONFIGURED = "the-configured-one"


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def served(index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv("API_TOKEN", CONFIGURED)
    return Api(create_app(settings_of(serve={"token": "${API_TOKEN}"})))


def create_token(index: Index, name: str = "ci", role: str = "viewer", scope: str = "*", lifetime: float | None = 3600) -> str:
    return tokens.create_token(index, name, role=role, scopes=Scopes.parse([scope]), lifetime=lifetime, actor="tests")[0]


def test_a_token_is_accepted_in_each_header(served: Api, index: Index) -> None:
    for secret in (CONFIGURED, create_token(index)):
        basic = base64.b64encode(f"anyone:{secret}".encode()).decode()
        for headers in (
            {"Authorization": f"Bearer {secret}"}, {"authorization": f"bearer  {secret}"}, {"Authorization": f"Basic {basic}"},
            {"x-api-key": secret}, {"X-Api-Key": f" {secret} "}, {"Authorization": f"Bearer {secret}", "x-api-key": "other"},
        ):  # fmt: skip
            assert served.get("/api/v1/tree", headers=headers).status_code == 200, headers


def test_a_header_that_is_there_twice_is_refused(served: Api, index: Index) -> None:
    """A proxy may have checked the other one."""
    own, other = create_token(index), create_token(index, "other", role="admin")
    for name, form in (("Authorization", "Bearer {}"), ("x-api-key", "{}")):
        for first, second in ((own, other), (other, own), (own, own), (own, "")):
            headers = [(name, form.format(first)), (name.lower(), form.format(second))]
            response = served.get("/api/v1/me", headers=headers)
            assert (response.status_code, "name" in response.json()) == (400, False), headers


def test_an_invalid_token_gets_an_error_in_the_form_of_the_protocol(served: Api, index: Index) -> None:
    secret = create_token(index)
    for values in (f"{secret}x", secret[:-1], "lft_", "lft_" + "A" * 43, secret.removeprefix("lft_"), "a.b.c", "ä", ""):
        for headers in ({"x-api-key": values.encode()}, {"Authorization": b"Bearer " + values.encode()}):
            response = served.get("/api/v1/tree", headers=headers)
            assert (response.status_code, response.json()["code"]) == (401, 16)
            assert response.headers["www-authenticate"].startswith("Bearer")
    response = served.get("/v1/table", headers={"x-api-key": "wrong"})
    assert (response.status_code, response.json()["code"], response.json()["instance"]) == (401, 16, "/v1/table")
    assert secret not in response.text


def test_an_expired_and_a_revoked_token_are_over(index: Index, settings_of: Callable[..., Settings]) -> None:
    api = Api(create_app(settings_of(serve={"auth": "required"})))
    stored, old, ended = create_token(index, "kept"), create_token(index, "old"), create_token(index, "ended")
    with index.write() as connection:
        connection.execute(update(t.token).where(t.token.c.name == "old").values(expires_at=1.0))
    # Another process, as far as the app can tell.
    tokens.revoke_token(index, "ended", actor="boss")
    response = {secret: api.get("/api/v1/tree", headers={"x-api-key": secret}) for secret in (stored, old, ended)}
    assert [answer.status_code for answer in response.values()] == [200, 401, 401]
    assert "the token 'old' is expired" in response[old].text
    assert "the token 'ended' was revoked" in response[ended].text


def test_a_revocation_and_an_expiry_are_obeyed_within_a_second(index: Index) -> None:
    clock = Clock()
    who = Authenticator(index, token=None, oidc=None, required=True, clock=clock)
    secret = create_token(index, "ci", "writer", "lake$sales", lifetime=None)
    shown = Headers({"x-api-key": secret})
    assert who.authenticate_cached(shown) == secret
    expected = Principal("token:ci", Role.WRITER, Scopes.parse(["lake$sales"]))
    assert who.authenticate(secret) == who.authenticate_cached(shown) == expected
    tokens.revoke_token(index, "ci", actor="boss")
    assert who.authenticate_cached(shown) == expected
    clock.now += CACHE_SECONDS
    assert who.authenticate_cached(shown) == secret
    with pytest.raises(RequestRejected, match="was revoked"):
        who.authenticate(secret)
    assert CACHE_SECONDS <= 1.0
    short = create_token(index, "short", lifetime=3600)
    with index.write() as connection:
        connection.execute(update(t.token).where(t.token.c.name == "short").values(expires_at=clock.now + CACHE_SECONDS / 2))
    assert isinstance(who.authenticate(short), Principal)
    clock.now += CACHE_SECONDS / 2
    assert who.authenticate_cached(Headers({"x-api-key": short})) == short
    with pytest.raises(RequestRejected, match="is expired"):
        who.authenticate(short)


def test_on_loopback_no_credential_means_the_local_user_unless_one_is_required(
    index: Index, settings_of: Callable[..., Settings]
) -> None:
    auto, required = Api(create_app(settings_of())), Api(create_app(settings_of(serve={"auth": "required"})))
    secret = create_token(index, scope="copy")
    assert auto.post("/api/v1/runs", json={"kind": "crawl"}).json()["actor"] == LOCAL_PRINCIPAL.name
    assert required.get("/api/v1/tree").status_code == 401
    for api in (auto, required):
        assert api.get("/api/v1/tree", headers={"x-api-key": "wrong"}).status_code == 401
        assert api.json("/api/v1/tree", headers={"x-api-key": secret})["nodes"] == []
        assert api.post("/api/v1/runs", json={"kind": "crawl"}, headers={"x-api-key": secret}).status_code == 403
    open_to_all = Api(create_app(settings_of(serve={"host": "0.0.0.0", "auth": "required"})), base="http://federator.corp")
    assert open_to_all.get("/api/v1/tree").status_code == 401
    assert open_to_all.get("/api/v1/tree", headers={"x-api-key": secret}).status_code == 200


def test_the_index_that_does_not_answer_lets_nobody_in(served: Api, index: Index) -> None:
    secret = create_token(index)
    assert served.get("/api/v1/tree", headers={"x-api-key": secret}).status_code == 200
    fresh = create_token(index, "fresh")
    with index.write() as connection:
        t.token.drop(connection)
    response = served.get("/api/v1/tree", headers={"x-api-key": fresh})
    assert (response.status_code, response.json()["title"]) == (503, "Index unavailable")
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_bucket_fills_again_at_its_rate() -> None:
    clock = Clock()
    limits = RequestRateLimiter(2.0, 3, clock=clock)
    assert [limits.try_acquire("a") for _ in range(4)] == [0, 0, 0, 1]
    assert limits.try_acquire("b") == 0
    clock.now += 0.5
    assert [limits.try_acquire("a"), limits.try_acquire("a")] == [0, 1]
    clock.now += 1000
    assert [limits.try_acquire("a") for _ in range(4)] == [0, 0, 0, 1]
    slow = RequestRateLimiter(0.1, 1, clock=clock)
    assert [slow.try_acquire("a"), slow.try_acquire("a")] == [0, 10]
    clock.now += 4
    assert slow.try_acquire("a") == 6
    free = RequestRateLimiter(None, 1, clock=clock)
    assert [free.try_acquire("a") for _ in range(100)] == [0] * 100


def test_unused_rate_buckets_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("federator.api.rate_limit._MAX_BUCKETS", 3)
    clock = Clock()
    limits = RequestRateLimiter(1.0, 2, clock=clock)
    for name in ("a", "a", "b", "c"):
        limits.try_acquire(name)
    clock.now += 2
    assert limits.try_acquire("d") == 0
    assert list(limits._buckets) == ["d"]
    for name in ("e", "f", "g"):
        limits.try_acquire(name)
    assert list(limits._buckets) == ["e", "f", "g"]


def test_who_asks_too_often_waits_and_others_do_not(index: Index, settings_of: Callable[..., Settings]) -> None:
    api = Api(create_app(settings_of(serve={"requests_per_second": 0.001, "burst": 2})))
    first, other = ({"x-api-key": create_token(index, name)} for name in ("one", "other"))
    assert [api.get("/api/v1/tree", headers=first).status_code for _ in range(3)] == [200, 200, 429]
    refused = api.get("/v1/table", headers=first)
    assert (refused.status_code, refused.json()["code"]) == (429, 21)
    assert 1 <= int(refused.headers["retry-after"]) <= 1000
    assert api.get("/healthz", headers=first).status_code == 200
    assert api.get("/api/v1/tree", headers=other).status_code == 200
    # This machine's own user is not counted, and who guesses is by its address.
    assert [api.get("/api/v1/tree").status_code for _ in range(4)] == [200] * 4
    guesses = [api.get("/api/v1/tree", headers={"x-api-key": f"guess-{n}"}).status_code for n in range(3)]
    assert guesses == [401, 401, 429]


def test_guesses_beyond_the_limit_are_refused_before_they_are_looked_up(
    index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    find_token = tokens.find_token

    def find(index: Index, digest: str) -> Any:
        looked_up.append(digest)
        return find_token(index, digest)

    monkeypatch.setattr(tokens, "find_token", find)
    api = Api(create_app(settings_of(serve={"requests_per_second": 0.001, "burst": 3})))
    valid = {"x-api-key": create_token(index, "one")}
    assert api.get("/api/v1/tree", headers=valid).status_code == 200
    guesses = [api.get("/api/v1/tree", headers={"x-api-key": f"lft_guess-{n}"}).status_code for n in range(9)]
    assert guesses == [401] * 3 + [429] * 6, "the valid token was not counted"
    assert len(looked_up) == 4
    # A valid token that is still cached is no guess.
    assert api.get("/api/v1/tree", headers=valid).status_code in (200, 429)


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    response = api.post("/api/v1/runs", content=b"x" * 1_000_001, headers={"Content-Type": "application/json"})
    assert response.status_code == 413


ORIGIN = "https://page.example.com"
PREFLIGHT = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


def test_pages_of_other_origins_are_let_in_by_name_only(index: Index, settings_of: Callable[..., Settings]) -> None:
    closed = Api(create_app(settings_of(serve={"auth": "required"})))
    refused = closed.ask("OPTIONS", "/api/v1/runs", headers=PREFLIGHT)
    assert refused.status_code == 401
    assert not [name for name in refused.headers if name.startswith("access-control")]
    api = Api(create_app(settings_of(serve={"auth": "required", "cors_origins": [ORIGIN]})))
    request = api.ask("OPTIONS", "/api/v1/runs", headers=PREFLIGHT)
    assert (request.status_code, request.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "access-control-allow-credentials" not in request.headers
    mine = {"Origin": ORIGIN, "x-api-key": create_token(index, role="operator")}
    written = api.post("/api/v1/runs", json={"kind": "crawl"}, headers=mine)
    assert (written.status_code, written.headers["access-control-allow-origin"]) == (202, ORIGIN)
    other = {"Origin": "https://evil.example.com"}
    assert api.ask("OPTIONS", "/api/v1/runs", headers=PREFLIGHT | other).status_code == 400
    foreign = api.post("/api/v1/runs", json={"kind": "crawl"}, headers=mine | other)
    assert (foreign.status_code, "access-control-allow-origin" in foreign.headers) == (403, False)


def test_the_configured_token_sees_and_may_do_everything(served: Api, index: Index) -> None:
    who = Authenticator(index, token=CONFIGURED, oidc=None, required=True)
    assert who.authenticate_cached(Headers({"x-api-key": CONFIGURED})) == Principal("api", Role.ADMIN, EVERYTHING)
    assert served.get("/metrics", headers={"x-api-key": CONFIGURED}).status_code == 200
