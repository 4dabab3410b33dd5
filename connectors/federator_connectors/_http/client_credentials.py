"""OAuth2 client credentials: tokens that are fetched from a token endpoint, shared by a process, and renewed."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote_plus

from federator.connector import CallLimits, Internal
from federator_connectors._http.authentication import AccessToken, RefreshingToken
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import ErrorOf, TlsOptions


@dataclass(frozen=True, kw_only=True)
class TokenClient:
    """Fetches tokens for one client from one token endpoint, whose refusals ``error_of`` maps."""

    source: str
    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str
    error_of: ErrorOf
    #: seconds, to connect and to read
    timeouts: tuple[float, float]
    limits: CallLimits
    tls: TlsOptions
    #: send the credentials in the header Authorization instead of the form
    in_header: bool = False
    #: additional headers of the request; pairs, because a client is the key of a cache
    headers: tuple[tuple[str, str], ...] = ()

    def fetch(self) -> AccessToken:
        """Fetch a new token. Raise Unauthenticated, ServiceUnavailable, Internal."""
        connect, read = self.timeouts
        http = HttpClient(
            self.source, self.url, error_of=self.error_of, authentication=_FixedHeaders(self.secret, self._headers()),
            limits=self.limits, tls=self.tls, connect_timeout=connect, read_timeout=read,
        )  # fmt: skip
        form = {"grant_type": "client_credentials", "scope": self.scope}
        if not self.in_header:
            form |= {"client_id": self.client_id, "client_secret": self.secret}
        try:
            # Repeatable: a second request only creates a second token.
            fields = http.send("POST", "", about="signing in", form=form, repeatable=True).json_object
        finally:
            http.close()
        token, lifetime = fields.get("access_token"), fields.get("expires_in")
        if not isinstance(token, str) or not token:
            raise Internal(f"{self.source}: signing in: the server's response has no access_token")
        return AccessToken(token, float(lifetime) if isinstance(lifetime, int | float) else None)

    def _headers(self) -> dict[str, str]:
        if not self.in_header:
            return dict(self.headers)
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.secret)}"
        return {**dict(self.headers), "Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


@cache
def shared_token(client: TokenClient) -> RefreshingToken:
    """Return the process-wide token of a client. All its catalogs share it: an API server opens a catalog per request."""
    return RefreshingToken(client.fetch)


@dataclass(frozen=True)
class _FixedHeaders:
    """The headers of a token request, which has no token yet. The secret is redacted from all errors."""

    secret: str = field(repr=False)
    fixed: Mapping[str, str]

    def headers(self) -> Mapping[str, str]:
        return self.fixed

    def discard_refused_token(self, _: Mapping[str, str], /) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        return (self.secret, self.fixed.get("Authorization", "").removeprefix("Basic "))
