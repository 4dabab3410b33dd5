"""Settings shared by the connectors of catalogs with an HTTP API."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from federator.connector import (
    CallLimits,
    ConfigError,
    ConnectorSettings,
    option,
    parse_boolean,
    parse_positive_int,
    read_secret,
    require_if_set,
)
from federator.model import canonical_location
from federator_connectors._http.response import TlsOptions


def parse_url(text: str) -> str:
    """Return a URL without its trailing slashes. Raise ValueError for a user, a password, a query or a fragment."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        usable = False
    if not usable or re.search(r"[\s?#]", text):
        raise ValueError("a URL that starts with http:// or https://, without user and password")
    return text.rstrip("/")


def canonicalize_url(url: str) -> str:
    """Return one spelling of a URL that ``parse_url`` accepts: as a location (``canonical_location``), without empty path segments."""
    scheme, separator, rest = canonical_location(url).partition("://")
    return scheme + separator + "/".join(filter(None, rest.split("/")))


def _parse_readable_file(text: str) -> str:
    if not (Path(text).is_file() and os.access(text, os.R_OK)):
        raise ValueError("the path of a readable file")
    return text


def _parse_retries(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise ValueError("a whole number from 0 to 999")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class HttpSettings(ConnectorSettings):
    """Bearer token, retries, connections, verification of the server, and the client certificate."""

    auth_token: str | None = option("auth_token", doc="Bearer token. Default: none.", parse=read_secret, secret=True)
    max_retries: int = option("max_retries", 3, doc="Maximum number of retries of a failed read. Writes are never retried.", parse=_parse_retries)  # fmt: skip  # noqa: E501
    pool_size: int = option(
        "client.pool-size", 10, doc="Maximum number of connections of one namespace. A request waits for one.",
        parse=parse_positive_int,
    )  # fmt: skip
    tls_verify: bool = option(
        "tls.verify", True, doc="Whether to verify the server's certificate. false is for tests only.", parse=parse_boolean
    )
    tls_ca: str | None = option("tls.ca_file", doc="File with trusted certificates. Default: the system's.", parse=_parse_readable_file)  # fmt: skip  # noqa: E501
    tls_certificate: str | None = option("tls.cert_file", doc="File with the client certificate.", parse=_parse_readable_file)
    tls_key: str | None = option(
        "tls.key_file",
        doc="File with the key of the client certificate. Default: the certificate's file.",
        parse=_parse_readable_file,
    )

    @property
    def limits(self) -> CallLimits:
        return replace(super().limits, attempts=self.max_retries + 1)

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(verify=self.tls_verify, ca=self.tls_ca, certificate=self.tls_certificate, key=self.tls_key)

    def check(self, where: str) -> None:
        """Raise ConfigError for a key without its certificate."""
        require_if_set(where, "tls.cert_file", self.tls_certificate, "tls.key_file", self.tls_key)


@dataclass(frozen=True, kw_only=True)
class ClientCredentialsSettings(HttpSettings):
    """A fixed token, or tokens that are fetched and renewed with ``client_id`` and ``client_secret``."""

    client_id: str | None = option("client_id", doc="Client id of the principal, for tokens that are fetched and renewed.")
    client_secret: str | None = option("client_secret", doc="Secret of the client.", parse=read_secret, secret=True)

    def check(self, where: str) -> None:
        """Raise ConfigError for two or incomplete credentials, and for a key without its certificate."""
        super().check(where)
        require_if_set(where, "client_secret", self.client_secret, "client_id", self.client_id)
        require_if_set(where, "client_id", self.client_id, "client_secret", self.client_secret)
        if self.auth_token and self.client_id:
            raise ConfigError(
                f"{where}auth_token: cannot be used with client_id",
                hint="set either auth_token, or client_id and client_secret",
            )
