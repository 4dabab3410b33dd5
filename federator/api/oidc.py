"""Callers that an identity provider vouches for: JWTs (RFC 7519), verified with the keys that it publishes (RFC 7517)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.request import HTTPRedirectHandler, build_opener

import jwt
from jwt import PyJWK, PyJWKClient

from federator import logs
from federator.api.access import ROLES, Caller, Role
from federator.api.problems import Refused
from federator.connector import ServiceUnavailable
from federator.model.scopes import Scopes
from federator.settings import OidcSettings
from federator.settings.values import web_url

_DISCOVERY = "/.well-known/openid-configuration"
# A provider that does not answer is left alone for so long: no request of ours should wait for the one before it.
_LEFT_ALONE = 5.0
#: the ``kty`` (RFC 7518, section 6.1) that an algorithm needs, by the algorithm's first letters
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_LONGEST_NAME = 200
_LONGEST_DOCUMENT = 1_000_000
_log = logs.get(__name__)


class Verifier:
    """Makes callers of JWTs. The keys are kept for five minutes, and asked for again, once in ``cooldown`` seconds, when a token
    names one that is not among them: so a rotation is noticed, and a flood of made-up keys is not passed on."""

    def __init__(self, settings: OidcSettings, *, cooldown: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._cooldown, self._clock = settings, cooldown, clock
        self._keys: PyJWKClient | None = None
        self._failure: tuple[float, ServiceUnavailable] | None = None

    def caller(self, token: str) -> Caller:
        """Who a JWT is. Raises Refused: 401 for a token that is not to be trusted, 403 for one without a role here; and
        ServiceUnavailable where the provider's keys cannot be had."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in settings.algorithms:
                raise jwt.InvalidAlgorithmError(f"the algorithm {header.get('alg')!r} is not allowed")
            key = self._key(header.get("kid"))
            if key.key_type != _KEY_TYPES[header["alg"][:2]]:
                raise jwt.InvalidAlgorithmError(f"the algorithm {header['alg']!r} is not that of its key")
            claims = jwt.decode(
                token, key.key, algorithms=list(settings.algorithms), audience=settings.audience,
                issuer=settings.issuer, leeway=settings.leeway, options={"require": ["exp", "iss", "aud"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise _refused(str(error)) from None
        return Caller(f"oidc:{self._name(claims)}", self._role(claims), self._scopes(claims))

    def _key(self, kid: object) -> PyJWK:
        if not isinstance(kid, str):
            raise _refused("it names no key")
        if self._failure is not None and self._clock() - self._failure[0] < _LEFT_ALONE:
            raise self._failure[1]
        try:
            client = self._client()
            known = client.get_signing_keys()
            return client.match_kid(known, kid) or client.get_signing_key(kid)
        except jwt.PyJWKClientConnectionError as error:
            raise self._unreachable(error) from None
        except jwt.PyJWKClientError as error:
            if self._has_keys():
                raise _refused("the provider does not publish its key") from None
            raise self._unreachable(error) from None
        except (jwt.PyJWKSetError, OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from None

    def _client(self) -> PyJWKClient:
        if self._keys is None:
            url = self._settings.jwks_url or self._discovered()
            self._keys = PyJWKClient(url, timeout=self._settings.timeout, cooldown_duration=self._cooldown)
        return self._keys

    def _discovered(self) -> str:
        """The address of the keys. Raises OSError, HTTPException, and ValueError for a document that is not this issuer's."""
        url = self._settings.issuer.rstrip("/") + _DISCOVERY
        with build_opener(_NoRedirect).open(url, timeout=self._settings.timeout) as answer:
            document = json.loads(answer.read(_LONGEST_DOCUMENT))
        if not isinstance(document, dict) or document.get("issuer") != self._settings.issuer:
            raise ValueError(f"{url} is not the document of the issuer {self._settings.issuer}")
        return web_url(str(document.get("jwks_uri")))

    def _has_keys(self) -> bool:
        try:
            return self._keys is not None and bool(self._keys.get_signing_keys())
        except (jwt.PyJWTError, ValueError):
            return False

    def _unreachable(self, error: Exception) -> ServiceUnavailable:
        _log.error("identity provider unreachable", issuer=self._settings.issuer, error=repr(error))
        where = self._settings.jwks_url or self._settings.issuer
        failure = ServiceUnavailable(f"the identity provider's keys cannot be read from {where}", hint="the log says why")
        self._failure = (self._clock(), failure)
        return failure

    def _name(self, claims: Mapping[str, Any]) -> str:
        name = _claim(claims, self._settings.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise _refused(f"its claim {self._settings.name_claim!r} is no name")
        return name

    def _role(self, claims: Mapping[str, Any]) -> Role:
        known: Mapping[str, str] = self._settings.roles or {role: role for role in ROLES}
        values = _texts(_claim(claims, self._settings.role_claim))
        roles = [Role.of(known[value]) for value in values if value in known]
        if not roles:
            raise Refused(
                403, "Permission denied", f"no value of the token's claim {self._settings.role_claim!r} is a role here"
            )
        return max(roles)

    def _scopes(self, claims: Mapping[str, Any]) -> Scopes:
        try:
            return Scopes.parse(_texts(_claim(claims, self._settings.scopes_claim)))
        except ValueError as error:
            raise _refused(f"its claim {self._settings.scopes_claim!r}: {error}") from None


class _NoRedirect(HTTPRedirectHandler):
    """What is trusted is at the configured address, or nowhere."""

    def redirect_request(self, *_: object) -> None:
        return None


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """A claim by its name, or inside others: ``realm_access.roles``. A name with dots of its own is found first."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _texts(value: object) -> Iterator[str]:
    """The texts of a list, or the words of one text."""
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
    yield from (word for word in words if isinstance(word, str))


def _refused(why: str) -> Refused:
    return Refused(401, "Unauthenticated", f"the token is not accepted: {why}")
