"""Settings of the impl ``polaris``: the properties of the Lance Polaris spec, and the additional ones of real servers."""

from __future__ import annotations

from dataclasses import dataclass

from federator.connector import option, parse_positive_int
from federator_connectors._http.settings import ClientCredentialsSettings, parse_url
from federator_connectors._iceberg.settings import IcebergApiSettings, parse_names

#: patterns of names that some versions of Polaris were observed to refuse; a pattern matches the complete name
REFUSED_NAMES = (
    r"\s.*|.*\s|.*/.*",  # since 1.5
    r".*[:#*+].*",  # since 1.6
    r".*[ \\\[\]{}|\"<>^`].*",  # 1.4.1, namespaces of catalogs with FILE storage
)


@dataclass(frozen=True, kw_only=True)
class PolarisSettings(IcebergApiSettings, ClientCredentialsSettings):
    """Connection settings of one Polaris server."""

    endpoint: str = option(
        "endpoint", doc="URL of the Polaris server, e.g. http://localhost:8181.", parse=parse_url, required=True
    )
    scope: str = option("scope", "PRINCIPAL_ROLE:ALL", doc="Scope of fetched tokens: the principal roles to use.")
    token_url: str | None = option(
        "token_url",
        doc="URL of the token endpoint. Default: the server's own, <endpoint>/api/catalog/v1/oauth/tokens.",
        parse=parse_url,
    )
    realm: str | None = option("realm", doc="Realm, sent as the header Polaris-Realm. Default: the server's default realm.")
    catalogs: tuple[str, ...] | None = option(
        "catalogs",
        doc="Catalogs at the root, separated by commas, for principals who may not list them. Default: all listed catalogs.",
        parse=parse_names,
    )
    page_size: int | None = option(
        "page_size",
        doc="Requested entries per page, if the server pages. Default: the server's; all pages are read in any case.",
        parse=parse_positive_int,
    )
