"""Authentication at Polaris: a fixed token or renewed tokens, and the header of the realm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from federator_connectors._http.authentication import Authentication, FixedHeaders
from federator_connectors._http.client_credentials import TokenClient, shared_token
from federator_connectors._polaris.errors import error_for_token_response
from federator_connectors._polaris.settings import PolarisSettings

_TOKENS = "/api/catalog/v1/oauth/tokens"


def build_authentication(source: str, settings: PolarisSettings) -> Authentication:
    """Build the authentication of a source's requests."""
    if settings.client_id is None or settings.client_secret is None:
        return _RealmAuthentication(FixedHeaders.bearer(settings.auth_token), settings.realm)
    client = TokenClient(
        source=source, url=settings.token_url or settings.endpoint + _TOKENS, client_id=settings.client_id,
        secret=settings.client_secret, scope=settings.scope, error_of=error_for_token_response, timeouts=settings.timeouts,
        limits=settings.limits, tls=settings.tls, headers=tuple(_realm(settings.realm).items()),
    )  # fmt: skip
    return _RealmAuthentication(shared_token(client), settings.realm)


@dataclass(frozen=True)
class _RealmAuthentication:
    """An authentication with an additional header that names the realm."""

    inner: Authentication
    realm: str | None

    def headers(self) -> Mapping[str, str]:
        return {**self.inner.headers(), **_realm(self.realm)}

    def discard_refused_token(self, sent: Mapping[str, str], /) -> bool:
        return self.inner.discard_refused_token(sent)

    def secrets(self) -> tuple[str, ...]:
        return self.inner.secrets()


def _realm(name: str | None) -> dict[str, str]:
    return {"Polaris-Realm": name} if name else {}
