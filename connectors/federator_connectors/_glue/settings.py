"""What a source of impl ``glue`` is configured with: every property of the Lance Glue spec, and ``sts_endpoint``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from federator.connector import ConfigError, Settings, option, secret


def _session_seconds(text: str) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0
    if not 900 <= number <= 43200:
        raise ValueError("a whole number of seconds from 900 to 43200, as AWS STS allows")
    return number


def _drop_cascades(text: str) -> str:
    if text not in ("ask", "confirmed"):
        raise ValueError("ask or confirmed")
    return text


@dataclass(frozen=True, kw_only=True)
class GlueSettings(Settings):
    """Without any credentials here, AWS's own chain finds them: environment, profile, web identity, container, instance."""

    catalog_id: str | None = option(
        "catalog_id",
        doc="The catalog that is the root: an account's number, or a child catalog's id. Default: the caller's account.",
    )
    endpoint: str | None = option("endpoint", doc="URL of the Glue service, for API-compatible metastores and VPC endpoints.")
    region: str | None = option("region", doc="AWS region. Default: that of the environment or profile.")
    access_key_id: str | None = option("access_key_id", doc="Static credentials: the key's id.", parse=secret, secret=True)
    secret_access_key: str | None = option("secret_access_key", doc="Static credentials: the key.", parse=secret, secret=True)
    session_token: str | None = option(
        "session_token", doc="Token of temporary credentials, beside the key and its id.", parse=secret, secret=True
    )
    assume_role_arn: str | None = option("assume_role_arn", doc="Role to assume with the credentials above.")
    assume_role_region: str | None = option("assume_role_region", doc="Region of STS. Default: ``region``.")
    assume_role_external_id: str | None = option(
        "assume_role_external_id", doc="External id that the role's trust policy wants."
    )
    assume_role_session_name: str = option(
        "assume_role_session_name", "lance-federator", doc="Name of the session, seen in CloudTrail."
    )
    assume_role_timeout_sec: int = option(
        "assume_role_timeout_sec", 3600, doc="Seconds that a session lasts; renewed before its end.", parse=_session_seconds
    )
    sts_endpoint: str | None = option(
        "sts_endpoint",
        doc="URL of STS (not in the Lance spec). Default: the region's own, or what AWS_ENDPOINT_URL_STS says.",
    )

    drop_cascades: str = option(
        "drop_cascades",
        "ask",
        doc="ask: DropNamespace is refused unless the request confirms that Glue drops a database with all its tables; confirmed: no request has to.",  # noqa: E501
        parse=_drop_cascades,
    )

    @property
    def drops_confirmed(self) -> bool:
        return self.drop_cascades == "confirmed"

    def check(self, where: str) -> None:
        """Raises ConfigError for credentials that are given by halves."""
        if (self.access_key_id is None) != (self.secret_access_key is None):
            missing = "secret_access_key" if self.secret_access_key is None else "access_key_id"
            raise ConfigError(f"{where}{missing}: required, since the other half of the key is set")
        if self.session_token is not None and self.access_key_id is None:
            raise ConfigError(f"{where}access_key_id: required, since session_token is set")
