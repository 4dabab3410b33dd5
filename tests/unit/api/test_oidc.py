"""JWTs of an identity provider: real keys, served over HTTP, rotated and removed."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from federator.api.app import create_app
from federator.api.oidc import JwtVerifier
from federator.api.principals import Principal, Role
from federator.api.problems import RequestRejected
from federator.connector import ConfigError, ServiceUnavailable
from federator.model.scopes import Scopes
from federator.settings import OidcSettings, Settings
from federator.store import Index
from tests.unit.api.conftest import Api

AUDIENCE = "federator"


@dataclass
class Provider:
    """An identity provider on loopback: a discovery document, and the public keys of those that it signs with."""

    url: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    requested_paths: list[str] = field(default_factory=list)

    def publish(self, *names: str) -> None:
        self.answers["/keys"] = (200, json.dumps({"keys": [self._public(name) for name in names]}).encode())

    def _public(self, name: str) -> dict[str, Any]:
        key = self.keys[name]
        algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
        return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": name, "use": "sig"}

    def token(self, key: str = "rsa", *, algorithm: str = "RS256", kid: str | None = None, **claims: Any) -> str:
        """A signed token; a claim of None is left out."""
        message = {
            "iss": self.url, "aud": AUDIENCE, "sub": "anna", "exp": time.time() + 600, "iat": time.time(), "roles": ["analysts"],
            "federator_scopes": ["lake$sales", "copy"],
        } | claims  # fmt: skip
        message = {name: value for name, value in message.items() if value is not None}
        return jwt.encode(message, self.keys[key], algorithm=algorithm, headers={"kid": kid or key})


@pytest.fixture(scope="module")
def pairs() -> dict[str, Any]:
    return {
        "rsa": rsa.generate_private_key(65537, 2048), "other": rsa.generate_private_key(65537, 2048),
        "ec": ec.generate_private_key(ec.SECP256R1()),
    }  # fmt: skip


@pytest.fixture
def provider(pairs: dict[str, Any]) -> Iterator[Provider]:
    result = Provider(keys=pairs)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            result.requested_paths.append(self.path)
            status, body = result.answers.get(self.path, (404, b"{}"))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    result.url = f"http://127.0.0.1:{server.server_port}"
    document = {"issuer": result.url, "jwks_uri": f"{result.url}/keys"}
    result.answers["/.well-known/openid-configuration"] = (200, json.dumps(document).encode())
    result.publish("rsa", "ec")
    yield result
    server.shutdown()
    server.server_close()


def verifier(
    provider: Provider, *, cooldown: float = 0.0, clock: Callable[[], float] = lambda: 0.0, **more: Any
) -> JwtVerifier:
    raw: dict[str, Any] = {"issuer": provider.url, "audience": AUDIENCE, "roles": {"analysts": "viewer", "ops": "operator"}}
    return JwtVerifier(OidcSettings(**raw | more), cooldown=cooldown, clock=clock)


def test_a_token_of_each_kind_of_key_makes_a_caller(provider: Provider) -> None:
    who = verifier(provider)
    anna = Principal("oidc:anna", Role.VIEWER, Scopes.parse(["lake$sales", "copy"]))
    assert who.verify(provider.token()) == anna
    assert who.verify(provider.token("ec", algorithm="ES256")) == anna
    assert provider.requested_paths == ["/.well-known/openid-configuration", "/keys"]
    straight = verifier(provider, jwks_url=f"{provider.url}/keys", algorithms=["PS256"])
    assert straight.verify(provider.token(algorithm="PS256")) == anna


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"roles": ["analysts", "ops", "guests"]}, (Role.OPERATOR, ("copy", "lake$sales"))),
        ({"roles": "ops"}, (Role.OPERATOR, ("copy", "lake$sales"))),
        ({"federator_scopes": "lake$sales copy$a"}, (Role.VIEWER, ("copy$a", "lake$sales"))),
        ({"federator_scopes": ""}, (Role.VIEWER, ())),
        # RFC 6749, 3.3: a space separates, and nothing else.
        ({"federator_scopes": "lake$a\u00a0copy lake$b\tcopy"}, (Role.VIEWER, ("lake$a\u00a0copy", "lake$b\tcopy"))),
        ({"federator_scopes": ["*"]}, (Role.VIEWER, ("*",))),
        ({"federator_scopes": ["lake$a b"]}, (Role.VIEWER, ("lake$a b",))),
        ({"federator_scopes": None}, (Role.VIEWER, ())),
        ({"federator_scopes": 7}, (Role.VIEWER, ())),
        ({"aud": ["someone", AUDIENCE]}, (Role.VIEWER, ("copy", "lake$sales"))),
    ],
)
def test_claims_become_role_and_scopes(
    provider: Provider, claims: dict[str, Any], expected: tuple[Role, tuple[str, ...]]
) -> None:
    caller = verifier(provider).verify(provider.token(**claims))
    assert (caller.role, caller.scopes.texts) == expected


def test_claims_may_lie_inside_others_and_names_are_as_configured(provider: Provider) -> None:
    who = verifier(provider, role_claim="realm.roles", roles={}, scopes_claim="https://x.y/scopes", name_claim="email")
    claims: dict[str, Any] = {"realm": {"roles": ["admin", "other"]}, "https://x.y/scopes": ["copy"], "email": "a@b.c"}
    assert who.verify(provider.token(**claims)) == Principal("oidc:a@b.c", Role.ADMIN, Scopes.parse(["copy"]))


LATE, EARLY = {"exp": 1_000_000_000}, {"nbf": 4_000_000_000}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"aud": "another"}, "Audience"), ({"aud": None}, "aud"), ({"iss": "http://127.0.0.1:1"}, "issuer"), ({"iss": None}, "iss"),
    (LATE, "expired"), ({"exp": None}, "exp"), (EARLY, "not yet valid"), ({"iat": 4_000_000_000}, "not yet valid"),
    ({"sub": None}, "is not a valid name"), ({"sub": ""}, "is not a valid name"), ({"sub": "x" * 201}, "is not a valid name"),
    ({"sub": "a\nb"}, "is not a valid name"),
    ({"federator_scopes": ["lake$$x"]}, "is not a valid scope"), ({"federator_scopes": [""]}, "is not a valid scope"),
    ({"federator_scopes": "copy  lake"}, "is not a valid scope"), ({"federator_scopes": "copy "}, "is not a valid scope"),
]  # fmt: skip


@pytest.mark.parametrize(("claims", "message"), REFUSED)
def test_claims_that_do_not_hold_are_refused(provider: Provider, claims: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestRejected, match=message) as refused:
        verifier(provider).verify(provider.token(**claims))
    assert refused.value.status == 401


def test_a_token_without_a_role_here_is_somebody_who_may_do_nothing(provider: Provider) -> None:
    for roles in (["guests"], [], None, "admin", 7):
        with pytest.raises(RequestRejected, match="contains no known role") as refused:
            verifier(provider).verify(provider.token(roles=roles))
        assert refused.value.status == 403


def test_a_short_rsa_key_is_refused(provider: Provider) -> None:
    provider.keys = {**provider.keys, "short": rsa.generate_private_key(65537, 1024)}
    provider.publish("rsa", "short")
    who = verifier(provider)
    assert who.verify(provider.token()).name == "oidc:anna"
    with pytest.raises(RequestRejected, match="1024 bits") as refused:
        who.verify(provider.token("short"))
    assert refused.value.status == 401


def test_only_the_allowed_algorithms_with_the_published_key_are_taken(provider: Provider) -> None:
    who = verifier(provider)
    claims = {"iss": provider.url, "aud": AUDIENCE, "exp": time.time() + 600, "sub": "eve", "roles": ["analysts"]}
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": "rsa"})
    symmetric = _keyed_with_the_public_key(claims, provider.keys["rsa"])
    forged = provider.token("other", kid="rsa")
    swapped = provider.token("ec", algorithm="ES256", kid="rsa")
    head, body, signature = provider.token().split(".")
    nameless = jwt.encode({"iss": provider.url}, provider.keys["rsa"], algorithm="RS256")
    for token in (
        unsigned, symmetric, forged, swapped, provider.token(algorithm="RS512"), nameless, f"{head}.{body}.",
        f"{head}.{body[:-2]}.{signature}", "a.b.c", "..", provider.token("other"),
        provider.token(kid="ec"),
    ):  # fmt: skip
        with pytest.raises(RequestRejected, match="the token is not accepted") as refused:
            who.verify(token)
        assert refused.value.status == 401
    _, body, signature = provider.token("ec", algorithm="ES256").split(".")
    larger = base64.urlsafe_b64encode(b'{"alg":"ES384","kid":"ec"}').rstrip(b"=").decode()
    with pytest.raises(RequestRejected, match="the token is not accepted"):
        verifier(provider, algorithms=["ES384"]).verify(f"{larger}.{body}.{signature}")
    for name in ("none", "HS256", "RS1"):
        with pytest.raises(ValueError, match="algorithms"):
            verifier(provider, algorithms=[name])


def _keyed_with_the_public_key(claims: dict[str, Any], key: rsa.RSAPrivateKey) -> str:
    """HS256 with what everybody knows as its secret: what takes it has let the token choose how it is verified."""
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT", "kid": "rsa"}, claims)]
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.digest(pem, signed, "sha256")
    return b".".join((signed, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


def test_a_rotated_key_is_asked_for_once_and_made_up_ones_are_not_passed_on(provider: Provider) -> None:
    who, cautious = verifier(provider), verifier(provider, cooldown=3600.0)
    assert who.verify(provider.token()) == cautious.verify(provider.token())
    provider.publish("other")
    assert who.verify(provider.token("other")).name == "oidc:anna"
    with pytest.raises(RequestRejected, match="does not publish its key"):
        who.verify(provider.token("rsa"))
    before = len(provider.requested_paths)
    for number in range(5):
        with pytest.raises(RequestRejected, match="does not publish its key"):
            cautious.verify(provider.token(kid=f"made-up-{number}"))
    assert len(provider.requested_paths) == before


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/keys", (500, b"")), ("/keys", (200, b"not json")), ("/keys", (200, b"[]")), ("/keys", (200, b'{"keys": []}')),
        ("/keys", (302, b"/elsewhere")), ("/.well-known/openid-configuration", (404, b"")),
        ("/.well-known/openid-configuration", (200, b'{"issuer": "http://evil", "jwks_uri": "http://evil/keys"}')),
        ("/.well-known/openid-configuration", (200, b"[")), ("/.well-known/openid-configuration", (302, b"/keys")),
    ],
)  # fmt: skip
def test_keys_that_cannot_be_had_are_the_services_trouble_not_the_callers(
    provider: Provider, path: str, answer: tuple[int, bytes]
) -> None:
    clock = [0.0]
    who = verifier(provider, clock=lambda: clock[0])
    good = provider.answers[path]
    provider.answers[path] = answer
    with pytest.raises(ServiceUnavailable, match="keys cannot be read"):
        who.verify(provider.token())
    request = len(provider.requested_paths)
    provider.answers[path] = good
    # Left alone for a moment: a provider that hangs does not hold every request.
    with pytest.raises(ServiceUnavailable):
        who.verify(provider.token())
    assert len(provider.requested_paths) == request
    clock[0] = 6.0
    assert who.verify(provider.token()).name == "oidc:anna"


def test_keys_beyond_a_megabyte_are_not_read(provider: Provider) -> None:
    _, keys = provider.answers["/keys"]
    for padding, is_read in ((900_000, True), (1_000_000, False)):
        provider.answers["/keys"] = (200, keys + b" " * padding)
        if is_read:
            assert verifier(provider).verify(provider.token()).name == "oidc:anna"
        else:
            with pytest.raises(ServiceUnavailable):
                verifier(provider).verify(provider.token())


def test_discovery_leads_to_no_unsafe_url(provider: Provider) -> None:
    for location in ("file:///etc/passwd", "http://192.0.2.1/keys", "ftp://127.0.0.1/keys", "", "//x"):
        document = {"issuer": provider.url, "jwks_uri": location}
        provider.answers["/.well-known/openid-configuration"] = (200, json.dumps(document).encode())
        with pytest.raises(ServiceUnavailable):
            verifier(provider).verify(provider.token())
    assert set(provider.requested_paths) == {"/.well-known/openid-configuration"}


def test_it_signs_in_over_http(provider: Provider, index: Index, settings_of: Callable[..., Settings]) -> None:
    oidc = {"issuer": provider.url, "audience": AUDIENCE, "roles": {"analysts": "viewer"}}
    api = Api(create_app(settings_of(serve={"host": "0.0.0.0", "oidc": oidc})), base="http://federator.corp")
    assert api.get("/api/v1/tree").status_code == 401
    token = provider.token(federator_scopes=["lake$sales"])
    for headers in ({"Authorization": f"Bearer {token}"}, {"x-api-key": token}):
        assert [node["id"] for node in api.json("/api/v1/tree?path=lake", headers=headers)["nodes"]] == ["lake$sales"]
    refused = api.post("/api/v1/runs", json={"kind": "crawl"}, headers={"x-api-key": token})
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "this operation needs the role operator; oidc:anna has viewer",
    )
    provider.answers.clear()
    down = Api(create_app(settings_of(serve={"oidc": oidc}))).get(
        "/api/v1/tree", headers={"x-api-key": provider.token(sub="eve")}
    )
    assert (down.status_code, down.json()["code"]) == (503, 17)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"issuer": "http://idp.example.com"}, "issuer"), ({"audience": ""}, "audience"), ({"jwks_url": "file:///keys"}, "jwks_url"),
        ({"algorithms": ["none"]}, "algorithms"), ({"algorithms": []}, "algorithms"), ({"roles": {"x": "owner"}}, "roles"),
        ({"nope": 1}, "nope: unknown key; allowed: issuer, audience"),
    ],
)  # fmt: skip
def test_settings_that_would_let_anyone_in_are_refused(
    settings_of: Callable[..., Settings], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_of(serve={"oidc": {"issuer": "https://idp.example.com", "audience": "a"} | change})
