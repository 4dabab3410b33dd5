"""What a source of impl ``rest`` is configured with: the keys of Lance's own REST client, and the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import ConfigError, Settings, boolean, family, option, positive, secret

LANCE, GENERAL = "lance", "general"


def _protocol(text: str) -> str:
    if text not in (LANCE, GENERAL):
        raise ValueError(f"one of {LANCE}, {GENERAL}")
    return text


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("a URL that starts with http:// or https://")
    return text


@dataclass(frozen=True, kw_only=True)
class RestSettings(Settings):
    """``uri`` is the address before ``/v1`` (lance) or before the operation's name (general)."""

    uri: str = option("uri", doc="URL of the server, without /v1.", parse=_url, required=True)
    protocol: str = option("protocol", LANCE, doc="lance: the official REST namespace protocol; general: POST /<operationId>.", parse=_protocol)  # fmt: skip  # noqa: E501
    delimiter: str = option("delimiter", "$", doc="What joins the names of an identifier in URLs (lance). A name that holds it cannot be addressed.")  # fmt: skip  # noqa: E501
    headers: Mapping[str, str] = family("header.*", doc="Headers of every request, e.g. header.x-tenant=a.")
    auth_token: str | None = option("auth_token", doc="Bearer token.", parse=secret, secret=True)
    api_key: str | None = option("api_key", doc="Key for the header x-api-key.", parse=secret, secret=True)
    tls_ca: str | None = option("tls.ssl_ca_cert", doc="File of the certificates to trust. Default: what the system trusts.")
    tls_certificate: str | None = option("tls.cert_file", doc="File of the client's certificate.")
    tls_key: str | None = option("tls.key_file", doc="File of the client's key.")
    tls_verify: bool = option("tls.verify", True, doc="false takes any server certificate: for tests only.", parse=boolean)
    page_size: int | None = option("page_size", doc="Names to ask for in one page of a listing. Default: as many as the server gives.", parse=positive)  # fmt: skip  # noqa: E501
    pool_size: int = option("client.pool-size", 4, doc="Tables described at once by each shard of a crawl.", parse=positive)
    keeps_properties: bool | None = option("keeps_properties", doc="Whether the server returns a table's properties as they were set, also of registered ones. Default: false for lance, since pylance's reference server drops them; true for general.", parse=boolean)  # fmt: skip  # noqa: E501
    drop_keeps_data: bool = option("drop_keeps_data", False, doc="general: the server's DropTable removes the declaration only. Without it tables are not deregistered.", parse=boolean)  # fmt: skip  # noqa: E501

    @property
    def returns_properties(self) -> bool:
        return self.protocol == GENERAL if self.keeps_properties is None else self.keeps_properties

    @property
    def all_headers(self) -> dict[str, str]:
        """What goes with every request, credentials included."""
        token = {"Authorization": f"Bearer {self.auth_token}"} if self.auth_token else {}
        key = {"x-api-key": self.api_key} if self.api_key else {}
        return {**self.headers, **token, **key}

    def check(self, where: str) -> None:
        """Raises ConfigError for what cannot work together."""
        if not self.delimiter.strip(".") or "/" in self.delimiter:
            # As the root's identifier, dots alone would be a step in the URL's path.
            raise ConfigError(
                f"{where}delimiter: {self.delimiter!r} is not allowed", hint="allowed: a text without / that is not only dots"
            )
        if self.tls_key and not self.tls_certificate:
            raise ConfigError(f"{where}tls.cert_file: required, since tls.key_file is set")
        given = {name.lower() for name in self.headers}
        for name, setting, key in (("authorization", self.auth_token, "auth_token"), ("x-api-key", self.api_key, "api_key")):
            if setting and name in given:
                raise ConfigError(f"{where}{key} and {where}header.{name} differ", hint="they are one setting: keep one")
