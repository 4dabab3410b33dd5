"""The settings of both Hive connectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import ConfigError, Settings, boolean, option, positive, secret

DEFAULT_PORT = 9083
DEFAULT_POOL = 3

Endpoint = tuple[str, int]

_ENDPOINT = re.compile(r"(?:thrift://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+)(?::(?P<port>\d{1,5}))?/?")


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """``thrift://host:port[,thrift://host:port...]`` as pairs; the port defaults to 9083. Raises ValueError."""
    found = [_ENDPOINT.fullmatch(part.strip()) for part in text.split(",")]
    pairs = [(match["host"].strip("[]"), int(match["port"] or DEFAULT_PORT)) for match in found if match]
    if len(pairs) < len(found) or not all(0 < port < 65536 for _, port in pairs):
        raise ValueError("thrift://host:port, several separated by commas")
    return tuple(pairs)


NONE, PLAIN, KERBEROS = "none", "plain", "kerberos"


def authentication(text: str) -> str:
    """``none``, ``plain`` or ``kerberos``, in any case. Raises ValueError."""
    if text.lower() not in (NONE, PLAIN, KERBEROS):
        raise ValueError(f"one of {NONE}, {PLAIN}, {KERBEROS}")
    return text.lower()


@dataclass(frozen=True, kw_only=True)
class HiveSettings(Settings):
    """How to reach one metastore. ``uri`` is parsed into its endpoints, which are tried in order."""

    uri: tuple[Endpoint, ...] = option("uri", doc="thrift://host:port of the metastore; the port's default is 9083. Several, separated by commas, are tried in order.", parse=endpoints, required=True)  # fmt: skip  # noqa: E501
    pool_size: int = option("client.pool-size", DEFAULT_POOL, doc="Connections at most, and shards of a crawl read at once. Default: 3.", parse=positive)  # fmt: skip  # noqa: E501
    timeout: int = option("client.timeout", 60, doc="Seconds to wait for an answer; a connection is given up after 10 at most. Default: 60.", parse=positive)  # fmt: skip  # noqa: E501
    tls: bool = option("client.tls.enabled", False, doc="Whether to speak TLS, 1.2 or later. Default: false.", parse=boolean)
    tls_ca: str | None = option("client.tls.ca-file", doc="PEM file of the authorities that may sign the server's certificate. Default: the system's.")  # fmt: skip  # noqa: E501
    tls_certificate: str | None = option("client.tls.cert-file", doc="PEM file of our own certificate, for servers that ask for one. Default: none.")  # fmt: skip  # noqa: E501
    tls_key: str | None = option(
        "client.tls.key-file", doc="PEM file of our certificate's key. Default: the certificate's file."
    )
    tls_check_hostname: bool = option("client.tls.check-hostname", True, doc="Whether the certificate must be for the host in uri. Default: true.", parse=boolean)  # fmt: skip  # noqa: E501
    auth: str = option("client.auth", NONE, doc="How to log in: none, plain (user and password; use it with TLS) or kerberos. Default: none.", parse=authentication)  # fmt: skip  # noqa: E501
    user: str | None = option("client.user", doc="The user of plain.")
    password: str | None = option("client.password", doc="The password of plain.", parse=secret, secret=True)
    principal: str | None = option("client.kerberos.principal", doc="The metastore's principal, e.g. hive/_HOST@EXAMPLE.COM; _HOST stands for the host in uri.")  # fmt: skip  # noqa: E501
    keytab: str | None = option(
        "client.kerberos.keytab", doc="File with our own keys. Default: the ticket cache that kinit fills."
    )
    kerberos_user: str | None = option("client.kerberos.user", doc="Our own principal. Default: the first of the keytab or the ticket cache's.")  # fmt: skip  # noqa: E501

    def __post_init__(self) -> None:
        """Raises ConfigError for what is missing, or would silently have no effect."""
        needed = {PLAIN: {"client.user": self.user, "client.password": self.password},
                  KERBEROS: {"client.kerberos.principal": self.principal}}  # fmt: skip
        for key in (key for key, value in needed.get(self.auth, {}).items() if not value):
            raise ConfigError(f"{key}: required with client.auth = {self.auth}, and not set")
        plain = {"client.user": self.user, "client.password": self.password}
        kerberos = {"client.kerberos.principal": self.principal, "client.kerberos.keytab": self.keytab,
                    "client.kerberos.user": self.kerberos_user}  # fmt: skip
        tls = {"client.tls.ca-file": self.tls_ca, "client.tls.cert-file": self.tls_certificate, "client.tls.key-file": self.tls_key,
               "client.tls.check-hostname": not self.tls_check_hostname}  # fmt: skip
        _without_effect(plain, self.auth == PLAIN, "client.auth = plain")
        _without_effect(kerberos, self.auth == KERBEROS, "client.auth = kerberos")
        _without_effect(tls, self.tls, "client.tls.enabled = true")


def _without_effect(values: Mapping[str, object], applies: bool, condition: str) -> None:
    useless = [key for key, value in values.items() if value and not applies]
    if useless:
        raise ConfigError(f"{useless[0]}: has no effect", hint=f"it needs {condition}")


def pool_size(properties: Mapping[str, str]) -> int:
    """``client.pool-size`` of raw properties, bare or prefixed, without resolving anything; the default if it is no number."""
    given = next((value for key, value in properties.items() if key.endswith("client.pool-size")), "")
    return int(given) if re.fullmatch(r"[1-9][0-9]{0,3}", str(given)) else DEFAULT_POOL
