"""Sessions of browsers: the principal of each, and the CSRF token that its writes need."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from federator.api.authentication import CACHE_SECONDS
from federator.api.claims import Grant, grant_principal
from federator.api.cookies import Cookie
from federator.api.principals import Principal
from federator.api.problems import RequestRejected
from federator.connector import PermissionDenied
from federator.runtime.base64url import encode_base64url
from federator.settings import OidcSettings
from federator.settings.oidc import SignInSettings
from federator.store import Index, sessions

CSRF_HEADER = "X-CSRF-Token"
#: seconds after a person entered credentials in which its session may do what a stolen session must not
FRESH_SECONDS = 300.0
_MAX_CACHED = 10_000
# The time of the last request is written at most this often.
_USE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """An authenticated session: the secret in its cookie, and its principal."""

    secret: str = field(repr=False)
    principal: Principal
    #: when the person last entered credentials at the identity provider; None if it did not say so
    authenticated_at: float | None = None

    @property
    def csrf_token(self) -> str:
        """Derived from the secret, which scripts cannot read: only pages of the service learn it, from ``/api/v1/me``."""
        return encode_base64url(hmac.digest(self.secret.encode(), b"csrf", hashlib.sha256))


def require_fresh_sign_in(session: BrowserSession | None, action: str) -> None:
    """Raise PermissionDenied unless a session's person has entered credentials in the last five minutes."""
    if session is None or time.time() - (session.authenticated_at or 0.0) > FRESH_SECONDS:
        raise PermissionDenied(
            f"{action} needs a sign-in with a browser in the last five minutes, with credentials entered again",
            hint="sign in at /auth/login?fresh=true",
        )


class SessionAuthenticator:
    """Map session cookies to principals. Sessions are cached for a second, like tokens."""

    def __init__(
        self, index: Index, settings: OidcSettings, sign_in: SignInSettings, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._index, self.settings, self._clock = index, settings, clock
        self._origin = sign_in.origin
        self.cookie = Cookie("session", sign_in)
        self.limits = sessions.SessionLimits(sign_in.session_lifetime, sign_in.idle_timeout, sign_in.max_sessions)
        self._known: dict[str, tuple[float, BrowserSession]] = {}

    def authenticate_cached(self, secret: str) -> BrowserSession | None:
        """Return the session with a secret without blocking. None if ``authenticate`` must read it."""
        cached = self._known.get(secret)
        return cached[1] if cached is not None and self._clock() < cached[0] else None

    def authenticate(self, secret: str) -> BrowserSession:
        """Return the session with a secret. Blocks. Raise RequestRejected (401) if it has ended, (403) if its claims have no role."""
        self._known.pop(secret, None)
        now, idle = self._clock(), self.limits.idle_timeout
        session = sessions.find_session(self._index, secret, now=now, idle_timeout=idle)
        if session is None:
            raise RequestRejected(401, "Unauthenticated", "the session has ended: sign in again")
        principal = grant_principal(self.settings, Grant(session.name, session.role_values, session.scopes))
        if now - session.used_at >= min(_USE_SECONDS, idle / 4):
            sessions.record_use(self._index, secret, now=now)
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        result = BrowserSession(secret, principal, session.authenticated_at)
        self._known[secret] = (min(now + CACHE_SECONDS, session.expires_at), result)
        return result

    def require_own_page(self, session: BrowserSession, headers: Headers) -> None:
        """Raise RequestRejected (403) unless a page of the service sent the request: its origin and the session's CSRF token."""
        token = headers.get(CSRF_HEADER, "").encode()
        if headers.getlist("origin") != [self._origin] or not hmac.compare_digest(token, session.csrf_token.encode()):
            raise RequestRejected(
                403,
                "Permission denied",
                f"a write of a signed-in person needs the header {CSRF_HEADER} and the origin {self._origin}",
            )

    def sign_in(self, grant: Grant, principal: Principal, *, replaced: str | None) -> str:
        """Create a session and return its secret. ``replaced``: the secret of the browser's earlier session."""
        detail = {"role": principal.role.name.lower(), "scopes": list(principal.scopes.texts)}
        return sessions.create_session(
            self._index, grant.name, role_values=grant.values, scopes=grant.scopes, limits=self.limits,
            now=self._clock(), replaced=replaced, actor=principal.name, detail=detail,
            authenticated_at=grant.authenticated_at,
        )  # fmt: skip

    def sign_out(self, session: BrowserSession) -> None:
        """End a session: in this process at once, in other ones within a second."""
        sessions.delete_session(self._index, session.secret, actor=session.principal.name)
        self._known.pop(session.secret, None)
