"""Settings of both Hive connectors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from federator.connector import ConfigError, ConnectorSettings, one_of, option, parse_boolean, parse_positive_int, read_secret

DEFAULT_PORT = 9083
DEFAULT_POOL = 3

Endpoint = tuple[str, int]

_ENDPOINT = re.compile(r"(?:thrift://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+)(?::(?P<port>\d{1,5}))?/?")


def parse_endpoints(text: str) -> tuple[Endpoint, ...]:
    """Parse ``thrift://host:port[,thrift://host:port...]`` into pairs; the port defaults to 9083. Raise ValueError."""
    matches = [_ENDPOINT.fullmatch(part.strip()) for part in text.split(",")]
    pairs = [(match["host"].strip("[]"), int(match["port"] or DEFAULT_PORT)) for match in matches if match]
    if len(pairs) < len(matches) or not all(0 < port < 65536 for _, port in pairs):
        raise ValueError("thrift://host:port, several separated by commas")
    return tuple(pairs)


BELOW_DATABASE, BELOW_ROOT = "database", "root"
READ_ONLY, ORIGINS = "read-only", "origins"


def parse_ugi(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse ``user:group1,group2`` into the user and the groups. Raise ValueError."""
    user, _, groups = text.partition(":")
    if not user:
        raise ValueError("user:group1,group2")
    return user, tuple(filter(None, (group.strip() for group in groups.split(","))))


NONE, PLAIN, KERBEROS = "none", "plain", "kerberos"


@dataclass(frozen=True, kw_only=True)
class HiveSettings(ConnectorSettings):
    """Connection settings of one metastore. ``uri`` is parsed into endpoints, which are tried in order."""

    uri: tuple[Endpoint, ...] = option("uri", doc="thrift://host:port of the metastore; the port's default is 9083. Several, separated by commas, are tried in order.", parse=parse_endpoints, required=True)  # fmt: skip  # noqa: E501
    pool_size: int = option("client.pool-size", DEFAULT_POOL, doc="Maximum number of connections, and of shards that a crawl reads concurrently. Default: 3.", parse=parse_positive_int)  # fmt: skip  # noqa: E501
    timeout: int = option("client.timeout", 60, doc="Seconds to wait for a response; connecting takes at most 10. Default: 60.", parse=parse_positive_int)  # fmt: skip  # noqa: E501
    tls: bool = option(
        "client.tls.enabled", False, doc="Whether to use TLS, 1.2 or later. Default: false.", parse=parse_boolean
    )
    tls_ca: str | None = option("client.tls.ca-file", doc="PEM file of the authorities that may sign the server's certificate. Default: the system's.")  # fmt: skip  # noqa: E501
    tls_certificate: str | None = option("client.tls.cert-file", doc="PEM file of the client certificate, for servers that request one. Default: none.")  # fmt: skip  # noqa: E501
    tls_key: str | None = option(
        "client.tls.key-file", doc="PEM file of the client certificate's key. Default: the certificate's file."
    )
    tls_check_hostname: bool = option("client.tls.check-hostname", True, doc="Whether the certificate must be for the host in uri. Default: true.", parse=parse_boolean)  # fmt: skip  # noqa: E501
    auth: str = option("client.auth", NONE, doc="How to log in: none, plain (user and password; use it with TLS) or kerberos. Default: none.", parse=one_of(NONE, PLAIN, KERBEROS))  # fmt: skip  # noqa: E501
    user: str | None = option("client.user", doc="User name for client.auth = plain.")
    password: str | None = option("client.password", doc="Password for client.auth = plain.", parse=read_secret, secret=True)
    principal: str | None = option("client.kerberos.principal", doc="The metastore's principal, e.g. hive/_HOST@EXAMPLE.COM; _HOST stands for the host in uri.")  # fmt: skip  # noqa: E501
    keytab: str | None = option(
        "client.kerberos.keytab", doc="Keytab file of the client. Default: the ticket cache that kinit fills."
    )
    kerberos_user: str | None = option("client.kerberos.user", doc="Principal of the client. Default: the first of the keytab, or that of the ticket cache.")  # fmt: skip  # noqa: E501

    ugi: tuple[str, tuple[str, ...]] | None = option("ugi", doc="User and groups for a metastore without login, as user:group1,group2; sent with set_ugi. Default: none, and the metastore acts as its own user.", parse=parse_ugi)  # fmt: skip  # noqa: E501
    default_location: str = option("default_location", BELOW_DATABASE, doc="Location of a table or database without one. database: <the database's location>/<table>.lance; root: <root>/[<catalog>/]<database>.db[/<table>], without the catalog if it is hive, also if root is the working directory.", parse=one_of(BELOW_DATABASE, BELOW_ROOT))  # fmt: skip  # noqa: E501
    storage_managed: str = option("storage_managed", READ_ONLY, doc="Lance tables with managed_by = storage that lack EXTERNAL=TRUE, as lance-namespace-impls declares them. read-only: listed and described; origins: mirrors copy them, too. They are never changed or deregistered.", parse=one_of(READ_ONLY, ORIGINS))  # fmt: skip  # noqa: E501

    listing_filtered: bool = option("listing_filtered", False, doc="Whether the metastore hides objects from the source's principal. Then a namespace whose tables all become absent at once is held. Default: false.", parse=parse_boolean)  # fmt: skip  # noqa: E501

    def check(self, where: str) -> None:
        """Raise ConfigError for a key that is missing, or that would silently have no effect."""
        plain = {"client.user": self.user, "client.password": self.password}
        kerberos = {"client.kerberos.principal": self.principal, "client.kerberos.keytab": self.keytab,
                    "client.kerberos.user": self.kerberos_user}  # fmt: skip
        tls = {"client.tls.ca-file": self.tls_ca, "client.tls.cert-file": self.tls_certificate, "client.tls.key-file": self.tls_key,
               "client.tls.check-hostname": not self.tls_check_hostname}  # fmt: skip
        required = {PLAIN: list(plain), KERBEROS: ["client.kerberos.principal"]}.get(self.auth, [])
        missing = [key for key in required if not (plain | kerberos)[key]]
        if missing:
            raise ConfigError(f"{where}{missing[0]}: required with client.auth = {self.auth}, and not set")
        for values, applies, condition in (
            (plain, self.auth == PLAIN, "client.auth = plain"),
            (kerberos, self.auth == KERBEROS, "client.auth = kerberos"),
            (tls, self.tls, "client.tls.enabled = true"),
            ({"ugi": self.ugi}, self.auth == NONE, "client.auth = none"),
        ):
            unused = [key for key, value in values.items() if value and not applies]
            if unused:
                raise ConfigError(f"{where}{unused[0]}: has no effect", hint=f"it needs {condition}")
