"""OIDC authentication: JWTs (RFC 7519), verified with the published keys of an identity provider (RFC 7517)."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.request import Request

import jwt
from jwt import PyJWK, PyJWKClient

from federator import logs
from federator.api.claims import Grant, grant_principal, read_authentication_time, read_grant, reject_token
from federator.api.identity_provider import PROVIDER_ERRORS, RETRY_SECONDS, fetch_document, fetch_json
from federator.api.principals import Principal
from federator.connector import ServiceUnavailable
from federator.runtime.base64url import encode_base64url
from federator.settings import OidcSettings
from federator.settings.field_types import check_web_url

#: the key type ``kty`` (RFC 7518, section 6.1) of an algorithm, by the algorithm's first two letters
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
#: NIST SP 800-131A: shorter keys are not allowed for signatures
_MIN_RSA_BITS = 2048
_log = logs.get_logger(__name__)


class JwtVerifier:
    """Maps JWTs to principals.

    The provider's keys are cached for five minutes. A token with an unknown key causes a reload, at most once in ``cooldown``
    seconds. So a key rotation is noticed, and many tokens with invented keys do not overload the provider.
    """

    def __init__(self, settings: OidcSettings, *, cooldown: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._cooldown, self._clock = settings, cooldown, clock
        self._keys: PyJWKClient | None = None
        self._failure: tuple[float, ServiceUnavailable] | None = None

    def verify(self, token: str) -> Principal:
        """Return the principal of a JWT.

        Raise RequestRejected with 401 if the token is not valid, and with 403 if no claim of it gives a role. Raise
        ServiceUnavailable if the provider's keys cannot be read.
        """
        claims = self._decode(token, self._settings.audience, ("exp", "iss", "aud"))
        return grant_principal(self._settings, read_grant(self._settings, claims))

    def verify_id_token(self, token: str, *, client_id: str, nonce: str, access_token: str | None) -> Grant:
        """Return the grant of an id token, checked as OpenID Connect Core 1.0, section 3.1.3.7 requires.

        Raise RequestRejected if the token is not valid or was not issued for this sign-in. Raise ServiceUnavailable if the provider's
        keys cannot be read.
        """
        claims = self._decode(token, client_id, ("exp", "iat", "iss", "aud", "sub", "nonce"))
        audiences, party = claims["aud"], claims.get("azp")
        if party != client_id and (party is not None or (isinstance(audiences, list) and len(audiences) > 1)):
            raise reject_token("it was issued to another client (azp)")
        if not isinstance(claims["nonce"], str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
            raise reject_token("it belongs to another sign-in (nonce)")
        digest = claims.get("at_hash")
        if digest is not None and (access_token is None or digest != _half_hash(token, access_token)):
            raise reject_token("it belongs to another access token (at_hash)")
        authenticated_at = read_authentication_time(claims, latest=time.time() + self._settings.leeway)
        return replace(read_grant(self._settings, claims), authenticated_at=authenticated_at)

    def _decode(self, token: str, audience: str, required: Sequence[str]) -> dict[str, Any]:
        """Return the claims of a token with a valid signature, issuer, audience and times."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in settings.algorithms:
                raise jwt.InvalidAlgorithmError(f"the algorithm {header.get('alg')!r} is not allowed")
            key = self._key(header.get("kid"))
            if key.key_type != _KEY_TYPES[header["alg"][:2]]:
                raise jwt.InvalidAlgorithmError(f"the algorithm {header['alg']!r} does not fit the type of its key")
            if key.key_type == "RSA" and key.key.key_size < _MIN_RSA_BITS:
                raise jwt.InvalidKeyError(f"its RSA key has {key.key.key_size} bits, and at least {_MIN_RSA_BITS} are required")
            claims: dict[str, Any] = jwt.decode(
                token, key.key, algorithms=list(settings.algorithms), audience=audience,
                issuer=settings.issuer, leeway=settings.leeway, options={"require": list(required)},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise reject_token(str(error)) from None
        return claims

    def _key(self, kid: object) -> PyJWK:
        if not isinstance(kid, str | None):
            raise reject_token("the key id (kid) in its header is not a text")
        if self._failure is not None and self._clock() - self._failure[0] < RETRY_SECONDS:
            raise self._failure[1]
        try:
            client = self._client()
            keys = client.get_signing_keys()
            if kid is None:
                # OpenID Connect Core 1.0, section 10.1: a key id is required only if the provider has several keys.
                if len(keys) > 1:
                    raise reject_token("its header has no key id (kid), and the provider publishes several keys")
                return keys[0]
            return client.match_kid(keys, kid) or client.get_signing_key(kid)
        except jwt.PyJWKClientConnectionError as error:
            raise self._unreachable(error) from None
        except jwt.PyJWKClientError as error:
            if self._has_keys():
                raise reject_token("the provider does not publish its key") from None
            raise self._unreachable(error) from None
        except (jwt.PyJWKSetError, *PROVIDER_ERRORS) as error:
            raise self._unreachable(error) from None

    def _client(self) -> PyJWKClient:
        if self._keys is None:
            url = self._settings.jwks_url or check_web_url(str(fetch_document(self._settings).get("jwks_uri")))
            self._keys = _LimitedKeyClient(url, timeout=self._settings.timeout, cooldown_duration=self._cooldown)
        return self._keys

    def _has_keys(self) -> bool:
        try:
            return self._keys is not None and bool(self._keys.get_signing_keys())
        except (jwt.PyJWTError, ValueError):
            return False

    def _unreachable(self, error: Exception) -> ServiceUnavailable:
        _log.error("identity provider unreachable", issuer=self._settings.issuer, error=repr(error))
        where = self._settings.jwks_url or self._settings.issuer
        failure = ServiceUnavailable(
            f"the identity provider's keys cannot be read from {where}", hint="see the log for the error"
        )
        self._failure = (self._clock(), failure)
        return failure


class _LimitedKeyClient(PyJWKClient):
    """PyJWT's client, with the limits of all requests to the provider: size and time of the response, and no redirects."""

    def fetch_data(self) -> Any:
        try:
            keys = fetch_json(Request(self.uri, headers=self.headers), self.timeout)  # noqa: S310  # https, or on loopback
        except PROVIDER_ERRORS as error:
            raise jwt.PyJWKClientConnectionError(f"the keys cannot be read: {error!r}") from None
        # As PyJWT does: only keys that were read replace those in the cache.
        if self.jwk_set_cache is not None:
            self.jwk_set_cache.put(keys)
        self._last_successful_fetch = time.monotonic()
        return keys


def _half_hash(token: str, access_token: str) -> str:
    """Return the ``at_hash`` of an access token: the left half of its hash by the id token's algorithm."""
    algorithm: str = jwt.get_unverified_header(token)["alg"]
    digest = hashlib.new("sha512" if algorithm == "EdDSA" else f"sha{algorithm[2:]}", access_token.encode()).digest()
    return encode_base64url(digest[: len(digest) // 2])
