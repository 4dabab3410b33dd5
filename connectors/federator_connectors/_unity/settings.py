"""Settings of the impl ``unity``: all properties of the Lance Unity spec, and ``tls.*``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from federator.connector import option, parse_positive_int
from federator_connectors._http.settings import ClientCredentialsSettings, parse_url

#: pattern of locations: one outside of this host's file system is accepted without the characters that a URI cannot have
LOCATIONS = r"""(?s:(?:file:)?/.*)|(?:[^\x00-\x20\x7f"<>\\^`{|}\[\]%]|%[0-9A-Fa-f]{2})+"""
# From here on, milliseconds are meant: nobody waits a quarter of an hour for a connection.
_LEAST_DOUBTFUL_SECONDS = 1000


def _parse_api_path(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9._~/-]*", text):
        raise ValueError("a path that starts with /, such as /api/2.1/unity-catalog")
    return text.rstrip("/")


def _parse_name(text: str) -> str:
    if not re.fullmatch(r"[^\x00-\x20./\x7f]{1,255}", text):
        raise ValueError("the name of a catalog, without periods, slashes or white space")
    return text


@dataclass(frozen=True, kw_only=True)
class UnitySettings(ClientCredentialsSettings):
    """Connection settings of a Unity server, or of one of its catalogs."""

    endpoint: str = option("endpoint", doc="URL of the server, e.g. http://localhost:8080.", parse=parse_url, required=True)
    scope: str = option("scope", "all-apis", doc="Scope of fetched tokens.")
    token_url: str | None = option(
        "token_url",
        doc="URL of the token endpoint. Default: that of a Databricks workspace, <endpoint>/oidc/v1/token.",
        parse=parse_url,
    )
    catalog: str | None = option(
        "catalog",
        doc="The only catalog: the first level of every identifier. Default: all catalogs of the server.",
        parse=_parse_name,
    )
    api_path: str = option("api_path", "/api/2.1/unity-catalog", doc="Prefix of all API paths.", parse=_parse_api_path)
    connect_timeout: int = option("connect_timeout", 10, doc="Connect timeout in seconds.", parse=parse_positive_int)
    read_timeout: int = option("read_timeout", 60, doc="Seconds to wait for a response.", parse=parse_positive_int)
    connect_timeout_ms: int | None = option(
        "connect_timeout_ms", doc="Connect timeout in milliseconds, instead of connect_timeout.", parse=parse_positive_int
    )
    read_timeout_ms: int | None = option(
        "read_timeout_ms", doc="Milliseconds to wait for a response, instead of read_timeout.", parse=parse_positive_int
    )

    @property
    def has_token(self) -> bool:
        """Return whether requests have a token. Without one nobody is denied anything."""
        return bool(self.auth_token or self.client_id)

    @property
    def timeouts(self) -> tuple[float, float]:
        """Seconds to wait for a connection, and for a response."""
        connect, read = self.connect_timeout_ms, self.read_timeout_ms
        return connect / 1000 if connect else self.connect_timeout, read / 1000 if read else self.read_timeout

    def list_doubts(self) -> list[str]:
        """Return a text for each timeout in seconds that must be meant as milliseconds, as in the newer version of the spec."""
        seconds = {"connect_timeout": self.connect_timeout, "read_timeout": self.read_timeout}
        return [
            f"unity.{key} is in seconds, and {value} are more than {value // 60} minutes: unity.{key}_ms is in milliseconds"
            for key, value in seconds.items()
            if value >= _LEAST_DOUBTFUL_SECONDS
        ]
