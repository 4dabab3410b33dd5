"""Authentication: map the credential of a request to a principal.

A credential is the configured token, a token of the index, or a JWT. It is sent in ``Authorization`` or ``x-api-key``.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from federator.api.principals import LOCAL_PRINCIPAL, Principal, Role
from federator.api.problems import RequestRejected
from federator.model.scopes import EVERYTHING
from federator.store import Index, tokens

if TYPE_CHECKING:
    from federator.api.oidc import JwtVerifier

#: how long a checked credential is cached; a revocation takes effect in every process within this time
CACHE_SECONDS = 1.0
_MAX_CACHED = 10_000
_HEADERS = ("authorization", "x-api-key")
_CONFIGURED_PRINCIPAL = Principal("api", Role.ADMIN, EVERYTHING)


@dataclass(frozen=True, slots=True)
class _CachedPrincipal:
    principal: Principal
    until: float


class Authenticator:
    """Map credentials to principals. Without ``required``, a request without a credential is from this machine's own user."""

    def __init__(
        self, index: Index, *, token: str | None, oidc: JwtVerifier | None, required: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._index, self._oidc, self._required, self._clock = index, oidc, required, clock
        self._token = token.encode() if token is not None else None
        self._known: dict[str, _CachedPrincipal] = {}

    def authenticate_cached(self, headers: Headers) -> Principal | str:
        """Return the principal if it is cached or configured, else the credential, which ``authenticate`` must check.

        Raise RequestRejected if a required credential is missing or malformed.
        """
        credential = _extract_credential(headers)
        if credential is None:
            if self._required:
                raise RequestRejected(401, "Unauthenticated", "a token is required: Authorization: Bearer <token>")
            return LOCAL_PRINCIPAL
        # Compare in constant time: only the configured token is compared in clear, not as a digest.
        if self._token is not None and hmac.compare_digest(credential.encode("utf-8", "surrogateescape"), self._token):
            return _CONFIGURED_PRINCIPAL
        cached = self._known.get(tokens.token_digest(credential))
        return cached.principal if cached is not None and self._clock() < cached.until else credential

    def authenticate(self, credential: str) -> Principal:
        """Check a credential with the index or the identity provider's keys, and return its principal. Blocks.

        Raise RequestRejected if the credential is not accepted, ServiceUnavailable if the provider's keys cannot be read.
        """
        digest, now = tokens.token_digest(credential), self._clock()
        self._known.pop(digest, None)
        if credential.startswith(tokens.PREFIX):
            cached = self._load_token(digest, now)
        elif self._oidc is not None and self.needs_provider(credential):
            cached = _CachedPrincipal(self._oidc.verify(credential), now + CACHE_SECONDS)
        else:
            raise RequestRejected(401, "Unauthenticated", "the token is unknown")
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        self._known[digest] = cached
        return cached.principal

    def needs_provider(self, credential: str) -> bool:
        """Whether checking a credential may read the keys of the identity provider."""
        return self._oidc is not None and not credential.startswith(tokens.PREFIX) and credential.count(".") == 2

    def _load_token(self, digest: str, now: float) -> _CachedPrincipal:
        token = tokens.find_token(self._index, digest)
        if token is None:
            raise RequestRejected(401, "Unauthenticated", "the token is unknown")
        state = token.state(now)
        if state != "active":
            raise RequestRejected(
                401, "Unauthenticated", f"the token {token.name!r} {'was' if state == 'revoked' else 'is'} {state}"
            )
        until = min(now + CACHE_SECONDS, token.expires_at if token.expires_at is not None else now + CACHE_SECONDS)
        return _CachedPrincipal(Principal(tokens.principal_name(token.name), Role.parse(token.role), token.scopes), until)


def _extract_credential(headers: Headers) -> str | None:
    """Return the credential of a request, None if it has none. ``Authorization`` counts before ``x-api-key``.

    Raise RequestRejected if the header is malformed, or there are several: a proxy may have checked another one.
    """
    for name in _HEADERS:
        if len(headers.getlist(name)) > 1:
            raise RequestRejected(400, "Bad request", f"a request has one {name} header")
    authorization = headers.get(_HEADERS[0])
    if authorization is None:
        key = headers.get(_HEADERS[1])
        return key.strip() if key is not None else None
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return text.strip()
    if scheme.lower() == "basic":
        # A browser can only send a user and a password: the password is the token, and the user is ignored.
        try:
            return base64.b64decode(text, validate=True).decode().partition(":")[2].strip()
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise RequestRejected(401, "Unauthenticated", "a token is required: Authorization: Bearer <token>")
