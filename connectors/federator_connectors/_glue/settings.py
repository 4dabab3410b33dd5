"""Settings of the impl ``glue``: all properties of the Lance Glue spec, ``sts_endpoint``, ``lake_formation_endpoint``,
``client.pool-size`` and ``drop_cascades``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from federator.connector import ConnectorSettings, one_of, option, parse_positive_int, read_secret, require_if_set


def _parse_session_seconds(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 900 <= int(text) <= 43200:
        raise ValueError("a whole number of seconds from 900 to 43200, as AWS STS allows")
    return int(text)


def _parse_region(text: str) -> str:
    if not re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", text):
        raise ValueError("the name of a region, such as eu-west-1")
    return text


@dataclass(frozen=True, kw_only=True)
class GlueSettings(ConnectorSettings):
    """Connection settings of one Glue Data Catalog.

    If no credentials are set, AWS's own chain is used: environment, profile, web identity, container, instance.
    """

    catalog_id: str | None = option(
        "catalog_id",
        doc="Id of the root catalog: an account number, or the id of a child catalog. Default: the account of the credentials.",
    )
    endpoint: str | None = option("endpoint", doc="URL of the Glue service, for API-compatible metastores and VPC endpoints.")
    region: str | None = option("region", doc="AWS region. Default: that of the environment or profile.", parse=_parse_region)
    access_key_id: str | None = option("access_key_id", doc="Static credentials: the key's id.", parse=read_secret, secret=True)
    secret_access_key: str | None = option(
        "secret_access_key", doc="Static credentials: the key.", parse=read_secret, secret=True
    )
    session_token: str | None = option(
        "session_token",
        doc="Session token of temporary credentials. Requires the key and its id.",
        parse=read_secret,
        secret=True,
    )
    assume_role_arn: str | None = option("assume_role_arn", doc="Role to assume with the credentials above.")
    assume_role_region: str | None = option(
        "assume_role_region", doc="Region of STS. Default: ``region``.", parse=_parse_region
    )
    assume_role_external_id: str | None = option(
        "assume_role_external_id", doc="External id that the role's trust policy requires."
    )
    assume_role_session_name: str = option(
        "assume_role_session_name", "lance-federator", doc="Session name, shown in CloudTrail."
    )
    assume_role_timeout_sec: int = option(
        "assume_role_timeout_sec",
        3600,
        doc="Duration of a session in seconds. A session is renewed before it expires.",
        parse=_parse_session_seconds,
    )
    sts_endpoint: str | None = option(
        "sts_endpoint",
        doc="URL of STS (not in the Lance spec). Default: AWS_ENDPOINT_URL_STS if set, else the region's STS.",
    )
    lake_formation_endpoint: str | None = option(
        "lake_formation_endpoint",
        doc="URL of Lake Formation (not in the Lance spec). Default: the region's; none if ``endpoint`` is set.",
    )
    pool_size: int = option(
        "client.pool-size", 10,
        doc="Maximum number of concurrent requests to Glue of one namespace (not in the Lance spec). A request waits for a connection.",
        parse=parse_positive_int,
    )  # fmt: skip

    drop_cascades: str = option(
        "drop_cascades",
        "ask",
        doc="ask: DropNamespace is refused unless the request confirms that Glue drops a database with all its tables; confirmed: no confirmation is needed.",  # noqa: E501
        parse=one_of("ask", "confirmed"),
    )

    @property
    def drops_confirmed(self) -> bool:
        """Whether DropNamespace needs no confirmation in the request."""
        return self.drop_cascades == "confirmed"

    def check(self, where: str) -> None:
        """Raise ConfigError for incomplete credentials."""
        key_id, key, token = self.access_key_id, self.secret_access_key, self.session_token
        require_if_set(where, "secret_access_key", key, cause="access_key_id", cause_value=key_id)
        require_if_set(where, "access_key_id", key_id, cause="secret_access_key", cause_value=key)
        require_if_set(where, "access_key_id", key_id, cause="session_token", cause_value=token)
