"""Who may ask: tokens of the index, in every header that carries one; how often; and from which pages."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from sqlalchemy import update
from starlette.datastructures import Headers

from federator.api.access import LOCAL, Caller, Role
from federator.api.app import create_app
from federator.api.authentication import REMEMBERED, Authentication
from federator.api.limits import Limits
from federator.api.problems import Refused
from federator.index import Index, tokens
from federator.index import tables as t
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import Settings
from tests.api.conftest import Api

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


def made(index: Index, name: str = "ci", role: str = "viewer", scope: str = "*", lifetime: float | None = 3600) -> str:
    return tokens.create(index, name, role=role, scopes=Scopes.parse([scope]), lifetime=lifetime, actor="tests")[0]


def test_a_token_is_taken_wherever_it_stands(served: Api, index: Index) -> None:
    for secret in (CONFIGURED, made(index)):
        basic = base64.b64encode(f"anyone:{secret}".encode()).decode()
        for headers in (
            {"Authorization": f"Bearer {secret}"}, {"authorization": f"bearer  {secret}"}, {"Authorization": f"Basic {basic}"},
            {"x-api-key": secret}, {"X-Api-Key": f" {secret} "}, {"Authorization": f"Bearer {secret}", "x-api-key": "other"},
        ):  # fmt: skip
            assert served.get("/api/v1/tree", headers=headers).status_code == 200, headers


def test_what_is_no_token_is_told_so_in_the_words_of_the_protocol_asked(served: Api, index: Index) -> None:
    secret = made(index)
    for given in (f"{secret}x", secret[:-1], "lft_", "lft_" + "A" * 43, secret.removeprefix("lft_"), "a.b.c", "ä", ""):
        for headers in ({"x-api-key": given.encode()}, {"Authorization": b"Bearer " + given.encode()}):
            answer = served.get("/api/v1/tree", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, 16)
            assert answer.headers["www-authenticate"].startswith("Bearer")
    answer = served.get("/v1/table", headers={"x-api-key": "wrong"})
    assert (answer.status_code, answer.json()["code"], answer.json()["instance"]) == (401, 16, "/v1/table")
    assert secret not in answer.text


def test_an_expired_and_a_revoked_token_are_over(index: Index, settings_of: Callable[..., Settings]) -> None:
    api = Api(create_app(settings_of(serve={"auth": "required"})))
    kept, old, ended = made(index, "kept"), made(index, "old"), made(index, "ended")
    with index.write() as connection:
        connection.execute(update(t.token).where(t.token.c.name == "old").values(expires_at=1.0))
    # Another process, as far as the app can tell.
    tokens.revoke(index, "ended", actor="boss")
    told = {secret: api.get("/api/v1/tree", headers={"x-api-key": secret}) for secret in (kept, old, ended)}
    assert [answer.status_code for answer in told.values()] == [200, 401, 401]
    assert "the token 'old' is expired" in told[old].text
    assert "the token 'ended' was revoked" in told[ended].text


def test_a_revocation_and_an_expiry_are_obeyed_within_a_second(index: Index) -> None:
    clock = Clock()
    who = Authentication(index, token=None, oidc=None, required=True, clock=clock)
    secret = made(index, "ci", "writer", "lake$sales", lifetime=None)
    shown = Headers({"x-api-key": secret})
    assert who.at_once(shown) == secret
    expected = Caller("token:ci", Role.WRITER, Scopes.parse(["lake$sales"]))
    assert who.ask(secret) == who.at_once(shown) == expected
    tokens.revoke(index, "ci", actor="boss")
    assert who.at_once(shown) == expected
    clock.now += REMEMBERED
    assert who.at_once(shown) == secret
    with pytest.raises(Refused, match="was revoked"):
        who.ask(secret)
    assert REMEMBERED <= 1.0
    short = made(index, "short", lifetime=3600)
    with index.write() as connection:
        connection.execute(update(t.token).where(t.token.c.name == "short").values(expires_at=clock.now + REMEMBERED / 2))
    assert isinstance(who.ask(short), Caller)
    clock.now += REMEMBERED / 2
    assert who.at_once(Headers({"x-api-key": short})) == short
    with pytest.raises(Refused, match="is expired"):
        who.ask(short)


def test_on_loopback_who_brings_nothing_is_this_machines_user_unless_a_credential_is_required(
    index: Index, settings_of: Callable[..., Settings]
) -> None:
    auto, required = Api(create_app(settings_of())), Api(create_app(settings_of(serve={"auth": "required"})))
    secret = made(index, scope="copy")
    assert auto.post("/api/v1/runs", json={"kind": "crawl"}).json()["actor"] == LOCAL.name
    assert required.get("/api/v1/tree").status_code == 401
    for api in (auto, required):
        assert api.get("/api/v1/tree", headers={"x-api-key": "wrong"}).status_code == 401
        assert api.json("/api/v1/tree", headers={"x-api-key": secret})["nodes"] == []
        assert api.post("/api/v1/runs", json={"kind": "crawl"}, headers={"x-api-key": secret}).status_code == 403
    open_to_all = Api(create_app(settings_of(serve={"host": "0.0.0.0", "auth": "required"})), base="http://federator.corp")
    assert open_to_all.get("/api/v1/tree").status_code == 401
    assert open_to_all.get("/api/v1/tree", headers={"x-api-key": secret}).status_code == 200


def test_the_index_that_does_not_answer_lets_nobody_in(served: Api, index: Index) -> None:
    secret = made(index)
    assert served.get("/api/v1/tree", headers={"x-api-key": secret}).status_code == 200
    fresh = made(index, "fresh")
    with index.write() as connection:
        t.token.drop(connection)
    answer = served.get("/api/v1/tree", headers={"x-api-key": fresh})
    assert (answer.status_code, answer.json()["title"]) == (503, "Index unavailable")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_bucket_fills_again_at_its_rate() -> None:
    clock = Clock()
    limits = Limits(2.0, 3, clock=clock)
    assert [limits.take("a") for _ in range(4)] == [0, 0, 0, 1]
    assert limits.take("b") == 0
    clock.now += 0.5
    assert [limits.take("a"), limits.take("a")] == [0, 1]
    clock.now += 1000
    assert [limits.take("a") for _ in range(4)] == [0, 0, 0, 1]
    slow = Limits(0.1, 1, clock=clock)
    assert [slow.take("a"), slow.take("a")] == [0, 10]
    clock.now += 4
    assert slow.take("a") == 6
    free = Limits(None, 1, clock=clock)
    assert [free.take("a") for _ in range(100)] == [0] * 100


def test_buckets_of_those_who_went_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("federator.api.limits._KEPT", 3)
    clock = Clock()
    limits = Limits(1.0, 2, clock=clock)
    for name in ("a", "a", "b", "c"):
        limits.take(name)
    clock.now += 2
    assert limits.take("d") == 0
    assert list(limits._buckets) == ["d"]
    for name in ("e", "f", "g"):
        limits.take(name)
    assert list(limits._buckets) == ["e", "f", "g"]


def test_who_asks_too_often_waits_and_others_do_not(index: Index, settings_of: Callable[..., Settings]) -> None:
    api = Api(create_app(settings_of(serve={"requests_per_second": 0.001, "burst": 2})))
    one, other = ({"x-api-key": made(index, name)} for name in ("one", "other"))
    assert [api.get("/api/v1/tree", headers=one).status_code for _ in range(3)] == [200, 200, 429]
    refused = api.get("/v1/table", headers=one)
    assert (refused.status_code, refused.json()["code"]) == (429, 21)
    assert 1 <= int(refused.headers["retry-after"]) <= 1000
    assert api.get("/healthz", headers=one).status_code == 200
    assert api.get("/api/v1/tree", headers=other).status_code == 200
    # This machine's own user is not counted, and who guesses is by its address.
    assert [api.get("/api/v1/tree").status_code for _ in range(4)] == [200] * 4
    guesses = [api.get("/api/v1/tree", headers={"x-api-key": f"guess-{n}"}).status_code for n in range(3)]
    assert guesses == [401, 401, 429]


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    answer = api.post("/api/v1/runs", content=b"x" * 1_000_001, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


ORIGIN = "https://page.example.com"
PREFLIGHT = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


def test_pages_of_other_origins_are_let_in_by_name_only(index: Index, settings_of: Callable[..., Settings]) -> None:
    closed = Api(create_app(settings_of(serve={"auth": "required"})))
    refused = closed.ask("OPTIONS", "/api/v1/runs", headers=PREFLIGHT)
    assert refused.status_code == 401
    assert not [name for name in refused.headers if name.startswith("access-control")]
    api = Api(create_app(settings_of(serve={"auth": "required", "cors_origins": [ORIGIN]})))
    asked = api.ask("OPTIONS", "/api/v1/runs", headers=PREFLIGHT)
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "access-control-allow-credentials" not in asked.headers
    mine = {"Origin": ORIGIN, "x-api-key": made(index, role="operator")}
    written = api.post("/api/v1/runs", json={"kind": "crawl"}, headers=mine)
    assert (written.status_code, written.headers["access-control-allow-origin"]) == (202, ORIGIN)
    other = {"Origin": "https://evil.example.com"}
    assert api.ask("OPTIONS", "/api/v1/runs", headers=PREFLIGHT | other).status_code == 400
    foreign = api.post("/api/v1/runs", json={"kind": "crawl"}, headers=mine | other)
    assert (foreign.status_code, "access-control-allow-origin" in foreign.headers) == (403, False)


def test_the_configured_token_sees_and_may_do_everything(served: Api, index: Index) -> None:
    who = Authentication(index, token=CONFIGURED, oidc=None, required=True)
    assert who.at_once(Headers({"x-api-key": CONFIGURED})) == Caller("api", Role.ADMIN, EVERYTHING)
    assert served.get("/metrics", headers={"x-api-key": CONFIGURED}).status_code == 200
