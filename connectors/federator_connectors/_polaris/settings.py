"""What a source of impl ``polaris`` is configured with: every property of the Lance Polaris spec, and what a real server needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from federator.connector import ConfigError, Limits, option, positive, secret
from federator_connectors._http.tls import TlsSettings

_URL = re.compile(r"https?://[^\s/?#]+[^\s?#]*")


def _url(text: str) -> str:
    if not _URL.fullmatch(text):
        raise ValueError("a URL that starts with http:// or https://")
    return text.rstrip("/")


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise ValueError("a whole number from 0 to 999")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError("names separated by commas, each once")
    return names


@dataclass(frozen=True, kw_only=True)
class PolarisSettings(TlsSettings):
    """Signs in by ``auth_token``, or by ``client_id`` and ``client_secret``, which fetch tokens and renew them."""

    endpoint: str = option("endpoint", doc="URL of the Polaris server, e.g. http://localhost:8181.", parse=_url, required=True)
    auth_token: str | None = option("auth_token", doc="Bearer token.", parse=secret, secret=True)
    client_id: str | None = option("client_id", doc="Principal's client id, for tokens that are fetched and renewed.")
    client_secret: str | None = option("client_secret", doc="The client's secret.", parse=secret, secret=True)
    scope: str = option("scope", "PRINCIPAL_ROLE:ALL", doc="Scope of fetched tokens: the principal roles to act in.")
    token_url: str | None = option(
        "token_url",
        doc="Where tokens are fetched. Default: the server's own, <endpoint>/api/catalog/v1/oauth/tokens.",
        parse=_url,
    )
    realm: str | None = option("realm", doc="Realm, sent as the header Polaris-Realm. Default: the server's default realm.")
    catalogs: tuple[str, ...] | None = option(
        "catalogs",
        doc="Catalogs at the root, separated by commas, for principals who may not list them. Default: all that are listed.",
        parse=_names,
    )
    connect_timeout: int = option("connect_timeout", 10_000, doc="Milliseconds to wait for a connection.", parse=positive)
    read_timeout: int = option("read_timeout", 30_000, doc="Milliseconds to wait for an answer.", parse=positive)
    max_retries: int = option("max_retries", 3, doc="Times a failed reading request is sent again.", parse=_count)
    threads: int = option(
        "threads", 4, doc="Requests at once of one listing or shard: Polaris describes tables one by one.", parse=positive
    )
    page_size: int | None = option(
        "page_size",
        doc="Entries asked for in one page, where the server pages. Default: none, and pages are followed all the same.",
        parse=positive,
    )

    @property
    def limits(self) -> Limits:
        return replace(super().limits, attempts=self.max_retries + 1)

    def check(self, where: str) -> None:
        """Raises ConfigError for two ways to sign in, or half of one, and for a key without its certificate."""
        if (self.client_id is None) != (self.client_secret is None):
            missing = "client_secret" if self.client_secret is None else "client_id"
            raise ConfigError(f"{where}{missing}: required, since the other half of the sign-in is set")
        if self.auth_token is not None and self.client_id is not None:
            raise ConfigError(
                f"{where}auth_token: set together with client_id", hint="one way to sign in, the token or the client"
            )
        self.check_tls(where)
