"""Settings of the impl ``iceberg``: the properties of the Lance Iceberg text, and those that servers need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import (
    ConfigError,
    option,
    option_family,
    parse_boolean,
    parse_positive_int,
    read_secret,
    require_if_set,
)
from federator_connectors._http.settings import HttpSettings, parse_url

#: the names that Iceberg's engines use for properties of a namespace, by those of the Lance specs
NATIVE_PROPERTY_NAMES = {"database.location-uri": "location", "database.description": "comment", "database.owner": "owner"}
#: pattern of names that some servers refuse in a URL, as Jetty 12 does by default
REFUSED_NAMES = r".*[/\\%].*"


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas, without duplicates."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError("names separated by commas, without duplicates")
    return names


def _read_credential(text: str) -> str:
    credential = read_secret(text)
    client_id, _, secret = credential.partition(":")
    if not client_id or not secret:
        raise ValueError("client_id:client_secret")
    return credential


@dataclass(frozen=True, kw_only=True)
class IcebergApiSettings(HttpSettings):
    """Timeouts and concurrency of a server whose namespaces have Iceberg's REST API."""

    connect_timeout: int = option(
        "connect_timeout", 10_000, doc="Milliseconds to wait for a connection.", parse=parse_positive_int
    )
    read_timeout: int = option("read_timeout", 30_000, doc="Milliseconds to wait for a response.", parse=parse_positive_int)
    threads: int = option(
        "threads",
        4,
        doc="Concurrent requests of all listings and shards of one namespace: the server describes tables one by one.",
        parse=parse_positive_int,
    )

    @property
    def timeouts(self) -> tuple[float, float]:
        """The timeouts in seconds: to connect and to read."""
        return self.connect_timeout / 1000, self.read_timeout / 1000


@dataclass(frozen=True, kw_only=True)
class IcebergSettings(IcebergApiSettings):
    """Connection settings of one Iceberg REST server. Authentication uses a token, fetched tokens or AWS signatures."""

    endpoint: str = option(
        "endpoint", doc="URL of the server, without /v1, e.g. http://localhost:8181.", parse=parse_url, required=True
    )
    warehouses: tuple[str, ...] | None = option(
        "warehouses",
        doc="Warehouses at the root, separated by commas. A crawl needs them, because servers do not list them.",
        parse=parse_names,
    )
    headers: Mapping[str, str] = option_family(
        "header.*", doc="Headers sent with every request of the catalog, e.g. header.x-goog-user-project=my-project."
    )
    keeps_files: bool | None = option(
        "keeps_files",
        doc="Whether the server keeps the files of tables that are dropped without purging them, by its documentation. Default: a test "
        "before the first written table is deregistered.",
        parse=parse_boolean,
    )
    credential: str | None = option(
        "credential",
        doc="client_id:client_secret, for tokens that are fetched and renewed.",
        parse=_read_credential,
        secret=True,
    )
    scope: str = option("scope", "catalog", doc="Scope of fetched tokens.")
    token_url: str | None = option(
        "token_url", doc="URL of the token endpoint. Default: the server's own, <endpoint>/v1/oauth/tokens.", parse=parse_url
    )
    sigv4: bool = option(
        "sigv4",
        False,
        doc="Whether to sign requests with AWS Signature Version 4 and the credentials of the environment or profile.",
        parse=parse_boolean,
    )
    signing_region: str | None = option("signing_region", doc="AWS region of the signatures.")
    signing_name: str = option("signing_name", "glue", doc="AWS service of signatures: glue, s3tables or execute-api.")

    def check(self, where: str) -> None:
        """Raise ConfigError for two ways of authentication, and for a key without its certificate."""
        super().check(where)
        require_if_set(where, "signing_region", self.signing_region, "sigv4", self.sigv4)
        ways = {"auth_token": self.auth_token, "credential": self.credential, "sigv4": self.sigv4}
        used = [key for key, value in ways.items() if value]
        if len(used) > 1:
            raise ConfigError(f"{where}{used[0]}: cannot be used with {used[1]}", hint="set only one of them")
        if used and "authorization" in {name.lower() for name in self.headers}:
            raise ConfigError(f"{where}{used[0]}: cannot be used with header.authorization", hint="set only one of them")
