"""Credentials and boto3 clients.

Reads retry with botocore's adaptive mode, which also slows down when throttled. A write is sent once: whether a write whose
answer was lost took place is found out by reading, never by sending it again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialProvider, CredentialResolver, RefreshableCredentials

from federator.connector import InvalidInput
from federator_connectors._glue.errors import calling
from federator_connectors._glue.limits import in_force
from federator_connectors._glue.responses import Checked
from federator_connectors._glue.settings import GlueSettings

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

Clock = Callable[[], datetime]

#: seconds; a write is given up after this, and a read after this for each attempt
CONNECT_TIMEOUT = 10
WRITE_TIMEOUT = 30
READ_TIMEOUT = 60

_AGENT = "lance-federator"
READS = Config(
    connect_timeout=CONNECT_TIMEOUT,
    read_timeout=READ_TIMEOUT,
    retries={"mode": "adaptive", "total_max_attempts": 4},
    user_agent_extra=_AGENT,
)
# total_max_attempts, unlike max_attempts, counts the first attempt.
WRITES = Config(
    connect_timeout=CONNECT_TIMEOUT,
    read_timeout=WRITE_TIMEOUT,
    retries={"mode": "standard", "total_max_attempts": 1},
    user_agent_extra=_AGENT,
)


class Clients:
    """The clients of one source, made when they are first needed.

    Not by ``functools.cached_property``: before Python 3.12 that holds one lock for all sources, and making a client may ask STS.
    """

    def __init__(self, source: str, settings: GlueSettings, *, now: Clock = lambda: datetime.now(UTC)) -> None:
        self._source = source
        self._settings = settings
        self._now = now
        self._session: boto3.session.Session | None = None
        self._reads: GlueClient | None = None
        self._writes: GlueClient | None = None

    @property
    def reads(self) -> GlueClient:
        if self._reads is None:
            self._reads = self._glue(READS)
        return self._reads

    @property
    def writes(self) -> GlueClient:
        if self._writes is None:
            self._writes = self._glue(WRITES)
        return self._writes

    @property
    def sts_known(self) -> bool:
        """A metastore of someone's own need have no STS, and credentials for it are not to be shown to AWS."""
        return self._settings.endpoint is None or self._settings.sts_endpoint is not None

    def account_id(self) -> str:
        """The caller's account, by STS. Raises InvalidInput where the metastore is not AWS and has no STS."""
        settings = self._settings
        if not self.sts_known:
            raise InvalidInput(
                f"{self._source}: the account of {settings.endpoint} is unknown: it lists no catalogs",
                hint="set glue.catalog_id, the name of its root catalog, or glue.sts_endpoint",
            )
        with calling(f"{self._source}: asking STS for the account"):
            return str(_sts(self.session, settings, settings.region).get_caller_identity()["Account"])

    def close(self) -> None:
        """Closes the connections of the clients that were made."""
        for client in (self._reads, self._writes):
            if client is not None:
                client.close()
        self._reads = self._writes = None

    @property
    def session(self) -> boto3.session.Session:
        """Where the credentials come from."""
        if self._session is None:
            self._session = self._started()
        return self._session

    def _started(self) -> boto3.session.Session:
        settings = self._settings
        base = boto3.session.Session(
            botocore_session=_core(),
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            region_name=settings.region,
        )
        if settings.assume_role_arn is None:
            return base
        core = _core()
        core.register_component("credential_provider", CredentialResolver([_AssumedRole(base, settings, self._now)]))
        return boto3.session.Session(botocore_session=core, region_name=settings.region or base.region_name)

    def _glue(self, config: Config) -> GlueClient:
        with calling(f"{self._source}: connecting"):
            try:
                client = self.session.client("glue", endpoint_url=self._settings.endpoint, config=config)
            except ValueError as error:
                raise InvalidInput(f"{self._source}: {error}", hint="check glue.endpoint and glue.region") from None
        in_force(self._source, client.meta.endpoint_url, self._settings.limits).bind(client)
        return cast("GlueClient", Checked(self._source, client))


@cache
def _loader() -> Any:
    return botocore.session.Session().get_component("data_loader")


def _core() -> botocore.session.Session:
    core = botocore.session.Session()
    # Reading Glue's model costs a tenth of a second, which every opened catalog would pay anew.
    core.register_component("data_loader", _loader())
    return core


class _AssumedRole(CredentialProvider):
    """Credentials of the role, fetched when first used and again before they expire."""

    METHOD = "assume-role"
    CANONICAL_NAME = "custom-assume-role"

    def __init__(self, base: boto3.session.Session, settings: GlueSettings, now: Clock) -> None:
        super().__init__()
        self._base = base
        self._settings = settings
        self._now = now

    def load(self) -> RefreshableCredentials:
        first = self._fetch()
        # botocore's own margins, 15 and 10 minutes, would renew a session of 15 minutes with every call.
        margin = self._settings.assume_role_timeout_sec
        return RefreshableCredentials(
            first["access_key"],
            first["secret_key"],
            first["token"],
            datetime.fromisoformat(first["expiry_time"]),
            refresh_using=self._fetch,
            method=self.METHOD,
            time_fetcher=self._now,
            advisory_timeout=min(900, margin // 4),
            mandatory_timeout=min(600, margin // 6),
        )

    def _fetch(self) -> dict[str, str]:
        settings = self._settings
        request: dict[str, Any] = {
            "RoleArn": settings.assume_role_arn,
            "RoleSessionName": settings.assume_role_session_name,
            "DurationSeconds": settings.assume_role_timeout_sec,
        }
        if settings.assume_role_external_id:
            request["ExternalId"] = settings.assume_role_external_id
        client = _sts(self._base, settings, settings.assume_role_region or settings.region)
        given = client.assume_role(**request)["Credentials"]
        return {
            "access_key": given["AccessKeyId"],
            "secret_key": given["SecretAccessKey"],
            "token": given["SessionToken"],
            "expiry_time": given["Expiration"].isoformat(),
        }


def _sts(session: boto3.session.Session, settings: GlueSettings, region: str | None) -> Any:
    return session.client("sts", region_name=region, endpoint_url=settings.sts_endpoint, config=READS)
