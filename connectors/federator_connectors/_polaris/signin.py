"""Signing in to Polaris: a fixed token, or client credentials for tokens that are renewed; and the realm, where one is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from federator.connector import Internal, Limits
from federator_connectors._http.answer import Tls
from federator_connectors._http.client import HttpClient
from federator_connectors._http.signin import FetchedToken, FixedHeaders, SignIn, Token
from federator_connectors._polaris.errors import error_of_token
from federator_connectors._polaris.settings import PolarisSettings

_TOKENS = "/api/catalog/v1/oauth/tokens"


def sign_in(source: str, settings: PolarisSettings) -> SignIn:
    """How requests of a source are signed in."""
    if settings.client_id is None or settings.client_secret is None:
        return _InRealm(FixedHeaders.bearer(settings.auth_token), settings.realm)
    url = settings.token_url or settings.endpoint + _TOKENS
    timeouts = (settings.connect_timeout / 1000, settings.read_timeout / 1000)
    client = _Client(
        source, url, settings.client_id, settings.client_secret, settings.scope, settings.realm, timeouts, settings.limits, settings.tls
    )  # fmt: skip
    return _InRealm(_shared(client), settings.realm)


@dataclass(frozen=True)
class _Client:
    """Who fetches tokens, and where."""

    source: str
    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str
    realm: str | None
    #: seconds, to connect and to read
    timeouts: tuple[float, float]
    limits: Limits
    tls: Tls

    def fetch(self) -> Token:
        """A new token. Raises Unauthenticated, ServiceUnavailable, Internal."""
        connect, read = self.timeouts
        http = HttpClient(
            self.source, self.url, error_of=error_of_token, sign_in=_Hidden(self.secret, self.realm), limits=self.limits,
            tls=self.tls, connect_timeout=connect, read_timeout=read,
        )  # fmt: skip
        form = {
            "grant_type": "client_credentials",
            "client_id": self.client_id,
            "client_secret": self.secret,
            "scope": self.scope,
        }
        try:
            # Asking twice gives two tokens, which harms nobody.
            told = http.send("POST", "", about="signing in", form=form, repeatable=True).fields
        finally:
            http.close()
        token, life = told.get("access_token"), told.get("expires_in")
        if not isinstance(token, str) or not token:
            raise Internal(f"{self.source}: signing in: the server's answer holds no access_token")
        return Token(token, float(life) if isinstance(life, int | float) else None)


@cache
def _shared(client: _Client) -> FetchedToken:
    """One token of this process for all catalogs opened alike: an API server opens one for each request under way."""
    return FetchedToken(client.fetch)


@dataclass(frozen=True)
class _InRealm:
    """A sign-in with the header that names the realm."""

    inner: SignIn
    realm: str | None

    def headers(self) -> Mapping[str, str]:
        return {**self.inner.headers(), **_realm(self.realm)}

    def refused(self) -> bool:
        return self.inner.refused()

    def secrets(self) -> tuple[str, ...]:
        return self.inner.secrets()


@dataclass(frozen=True)
class _Hidden:
    """No sign-in yet, but a secret that no error may repeat."""

    secret: str = field(repr=False)
    realm: str | None

    def headers(self) -> Mapping[str, str]:
        return _realm(self.realm)

    def refused(self) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        return (self.secret,)


def _realm(name: str | None) -> dict[str, str]:
    return {"Polaris-Realm": name} if name else {}
