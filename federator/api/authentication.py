"""Who asks: the configured token, a token of the index, or a JWT; in ``Authorization`` or ``x-api-key``."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from federator.api.access import LOCAL, Caller, Role
from federator.api.problems import Refused
from federator.index import Index, tokens
from federator.model.scopes import EVERYTHING

if TYPE_CHECKING:
    from federator.api.oidc import Verifier

#: for so many seconds a credential counts as it was found; a revocation is obeyed by every process within them
REMEMBERED = 1.0
_KEPT = 10_000
_CONFIGURED = Caller("api", Role.ADMIN, EVERYTHING)


@dataclass(frozen=True, slots=True)
class _Known:
    caller: Caller
    until: float


class Authentication:
    """Makes callers of credentials. Without ``required``, who brings none is this machine's own user."""

    def __init__(
        self, index: Index, *, token: str | None, oidc: Verifier | None, required: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._index, self._oidc, self._required, self._clock = index, oidc, required, clock
        self._token = token.encode() if token is not None else None
        self._known: dict[str, _Known] = {}

    def at_once(self, headers: Headers) -> Caller | str:
        """The caller where that is known without asking anyone, else the credential to ask about. Raises Refused."""
        credential = _credential(headers)
        if credential is None:
            if self._required:
                raise Refused(401, "Unauthenticated", "a token is required: Authorization: Bearer <token>")
            return LOCAL
        # In constant time: the configured token is the one secret that is compared as it stands.
        if self._token is not None and hmac.compare_digest(credential.encode("utf-8", "surrogateescape"), self._token):
            return _CONFIGURED
        known = self._known.get(tokens.digest_of_token(credential))
        return known.caller if known is not None and self._clock() < known.until else credential

    def ask(self, credential: str) -> Caller:
        """The caller of a credential, by the index or the identity provider's keys. Blocks. Raises Refused, ServiceUnavailable."""
        digest, now = tokens.digest_of_token(credential), self._clock()
        self._known.pop(digest, None)
        if credential.startswith(tokens.PREFIX):
            known = self._stored(digest, now)
        elif self._oidc is not None and credential.count(".") == 2:
            known = _Known(self._oidc.caller(credential), now + REMEMBERED)
        else:
            raise Refused(401, "Unauthenticated", "the token is not one of ours")
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[digest] = known
        return known.caller

    def _stored(self, digest: str, now: float) -> _Known:
        found = tokens.find(self._index, digest)
        if found is None:
            raise Refused(401, "Unauthenticated", "the token is not one of ours")
        state = found.state(now)
        if state != "active":
            raise Refused(401, "Unauthenticated", f"the token {found.name!r} {'was' if state == 'revoked' else 'is'} {state}")
        until = min(now + REMEMBERED, found.expires_at if found.expires_at is not None else now + REMEMBERED)
        return _Known(Caller(f"token:{found.name}", Role.of(found.role), found.scopes), until)


def _credential(headers: Headers) -> str | None:
    """What the caller shows; None where it shows nothing. Raises Refused for what cannot be read."""
    given = headers.get("authorization")
    if given is None:
        key = headers.get("x-api-key")
        return key.strip() if key is not None else None
    scheme, _, text = given.partition(" ")
    if scheme.lower() == "bearer":
        return text.strip()
    if scheme.lower() == "basic":
        # What a browser can send for the page: the token as the password of any user.
        try:
            return base64.b64decode(text, validate=True).decode().partition(":")[2].strip()
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise Refused(401, "Unauthenticated", "a token is required: Authorization: Bearer <token>")
