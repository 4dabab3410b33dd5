"""Settings of the impl ``rest``: the keys of Lance's own REST client, and the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import (
    ConfigError,
    ConnectorSettings,
    one_of,
    option,
    option_family,
    parse_boolean,
    parse_positive_int,
    read_secret,
    require_if_set,
)

LANCE, GENERAL = "lance", "general"


def _parse_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("a URL that starts with http:// or https://")
    return text


@dataclass(frozen=True, kw_only=True)
class RestSettings(ConnectorSettings):
    """Connection settings of one server. ``uri`` is the URL before ``/v1`` (lance) or before the operation's name (general)."""

    uri: str = option("uri", doc="URL of the server, without /v1.", parse=_parse_url, required=True)
    protocol: str = option("protocol", LANCE, doc="lance: the official REST namespace protocol; general: POST /<operationId>.", parse=one_of(LANCE, GENERAL))  # fmt: skip  # noqa: E501
    delimiter: str = option("delimiter", "$", doc="Separator of the names of an object id in URLs (lance). Names that contain it cannot be addressed.")  # fmt: skip  # noqa: E501
    headers: Mapping[str, str] = option_family("header.*", doc="Headers sent with every request, e.g. header.x-tenant=a.")
    auth_token: str | None = option("auth_token", doc="Bearer token.", parse=read_secret, secret=True)
    api_key: str | None = option("api_key", doc="Key for the header x-api-key.", parse=read_secret, secret=True)
    tls_ca: str | None = option("tls.ssl_ca_cert", doc="File with trusted certificates. Default: the system's.")
    tls_certificate: str | None = option("tls.cert_file", doc="File with the client certificate.")
    tls_key: str | None = option("tls.key_file", doc="File with the key of the client certificate.")
    tls_verify: bool = option(
        "tls.verify", True, doc="Whether to verify the server's certificate. false is for tests only.", parse=parse_boolean
    )
    page_size: int | None = option("page_size", doc="Requested names per page of a listing. Default: the server's page size.", parse=parse_positive_int)  # fmt: skip  # noqa: E501
    depth: int | None = option("depth", doc="Levels of namespaces above each table, for a server with a fixed number, such as Gravitino's: 2. Default: any number.", parse=parse_positive_int)  # fmt: skip  # noqa: E501
    pool_size: int = option(
        "client.pool-size",
        4,
        doc="Maximum number of connections of one namespace, and of each of the two shards that a crawl reads at once.",
        parse=parse_positive_int,
    )
    connect_timeout_ms: int = option(
        "connect_timeout_ms", 10_000, doc="Milliseconds to wait for a connection.", parse=parse_positive_int
    )
    read_timeout_ms: int = option(
        "read_timeout_ms", 60_000, doc="Milliseconds to wait for a response.", parse=parse_positive_int
    )
    keeps_properties: bool | None = option("keeps_properties", doc="Whether the server returns a table's properties as they were set, also for registered tables. Default: false for lance, because pylance's reference server drops them; true for general.", parse=parse_boolean)  # fmt: skip  # noqa: E501
    drop_keeps_data: bool = option("drop_keeps_data", False, doc="general: whether the server's DropTable removes only the declaration. If false, tables cannot be deregistered.", parse=parse_boolean)  # fmt: skip  # noqa: E501

    @property
    def timeouts(self) -> tuple[float, float]:
        """The timeouts in seconds: to connect and to read."""
        return self.connect_timeout_ms / 1000, self.read_timeout_ms / 1000

    @property
    def returns_properties(self) -> bool:
        """``keeps_properties``, with the protocol's default."""
        return self.protocol == GENERAL if self.keeps_properties is None else self.keeps_properties

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers of every request, including credentials."""
        token = {"Authorization": f"Bearer {self.auth_token}"} if self.auth_token else {}
        key = {"x-api-key": self.api_key} if self.api_key else {}
        return {**self.headers, **token, **key}

    def check(self, where: str) -> None:
        """Raise ConfigError for settings that contradict each other."""
        if not self.delimiter.strip(".") or "/" in self.delimiter:
            # The delimiter alone is the id of the root; one or two dots would be a relative path in the URL.
            raise ConfigError(
                f"{where}delimiter: {self.delimiter!r} is not allowed", hint="allowed: a text without / that is not only dots"
            )
        require_if_set(where, "tls.cert_file", self.tls_certificate, "tls.key_file", self.tls_key)
        header_names = {name.lower() for name in self.headers}
        for name, setting, key in (("authorization", self.auth_token, "auth_token"), ("x-api-key", self.api_key, "api_key")):
            if setting and name in header_names:
                message = f"{where}{key} and {where}header.{name} are mutually exclusive"
                raise ConfigError(message, hint="set only one of them")
