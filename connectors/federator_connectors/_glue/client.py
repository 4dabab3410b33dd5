"""Credentials, boto3 clients and paging of Glue.

Reads retry with botocore's adaptive mode, which also slows down when throttled. A write is sent once. If its response is lost, the
outcome is determined by reading; the write is never sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialProvider, CredentialResolver, RefreshableCredentials

from federator.connector import InvalidInput, Unsupported
from federator.connector.operation import require_permission
from federator.connector.tokens import PageTokens
from federator_connectors._glue.call_limits import shared_call_limiter
from federator_connectors._glue.errors import translate_aws_errors
from federator_connectors._glue.responses import CheckedGlueClient
from federator_connectors._glue.settings import GlueSettings

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

Clock = Callable[[], datetime]

CONNECT_TIMEOUT_SECONDS = 10
#: of the single attempt of a write
WRITE_TIMEOUT_SECONDS = 30
#: of each attempt of a read
READ_TIMEOUT_SECONDS = 60

_AGENT = "lance-federator"
READ_CONFIG = Config(
    connect_timeout=CONNECT_TIMEOUT_SECONDS,
    read_timeout=READ_TIMEOUT_SECONDS,
    retries={"mode": "adaptive", "total_max_attempts": 4},
    user_agent_extra=_AGENT,
)
# total_max_attempts, unlike max_attempts, counts the first attempt.
WRITE_CONFIG = Config(
    connect_timeout=CONNECT_TIMEOUT_SECONDS,
    read_timeout=WRITE_TIMEOUT_SECONDS,
    retries={"mode": "standard", "total_max_attempts": 1},
    user_agent_extra=_AGENT,
)
# A request of a user waits for these credentials.
CREDENTIALS_CONFIG = Config(
    connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2}, user_agent_extra=_AGENT
)


class Clients:
    """The clients of one source, created on first use.

    ``functools.cached_property`` is not used: before Python 3.12 it holds one lock for all sources, and the creation of a client may
    call STS.
    """

    def __init__(self, source: str, settings: GlueSettings, *, now: Clock = lambda: datetime.now(UTC)) -> None:
        self._source = source
        self._settings = settings
        self._now = now
        self._session: boto3.session.Session | None = None
        self._reads: GlueClient | None = None
        self._writes: GlueClient | None = None
        self._lake_formation: Any = None

    @property
    def reads(self) -> GlueClient:
        if self._reads is None:
            self._reads = self._glue(READ_CONFIG)
        return self._reads

    @property
    def writes(self) -> GlueClient:
        """The client of one write. Raise if the operation may not write any more."""
        require_permission()
        if self._writes is None:
            self._writes = self._glue(WRITE_CONFIG)
        return self._writes

    @property
    def lake_formation(self) -> Any:
        """The client of Lake Formation. Raise Unsupported for an API-compatible metastore: AWS must not receive its credentials."""
        settings = self._settings
        if settings.endpoint is not None and settings.lake_formation_endpoint is None:
            raise Unsupported(
                f"{self._source}: {settings.endpoint} has no Lake Formation that could issue credentials",
                hint="set glue.lake_formation_endpoint",
            )
        if self._lake_formation is None:
            with translate_aws_errors(f"{self._source}: connecting"):
                self._lake_formation = self.session.client(
                    "lakeformation", endpoint_url=settings.lake_formation_endpoint, config=CREDENTIALS_CONFIG
                )
        return self._lake_formation

    @property
    def has_sts(self) -> bool:
        """Whether STS may be called. An API-compatible metastore may have no STS, and AWS must not receive its credentials."""
        return self._settings.endpoint is None or self._settings.sts_endpoint is not None

    def account_id(self) -> str:
        """Return the account of the credentials, from STS. Raise InvalidInput if the metastore is not AWS and has no STS."""
        settings = self._settings
        if not self.has_sts:
            raise InvalidInput(
                f"{self._source}: the account of {settings.endpoint} is unknown, because it lists no catalogs",
                hint="set glue.catalog_id, the name of its root catalog, or glue.sts_endpoint",
            )
        with translate_aws_errors(f"{self._source}: asking STS for the account"):
            return str(_build_sts_client(self.session, settings, settings.region).get_caller_identity()["Account"])

    def close(self) -> None:
        """Close the connections of the created clients."""
        for client in (self._reads, self._writes, self._lake_formation):
            if client is not None:
                client.close()
        self._reads = self._writes = self._lake_formation = None

    @property
    def session(self) -> boto3.session.Session:
        """The boto3 session that provides the credentials."""
        if self._session is None:
            self._session = self._create_session()
        return self._session

    def _create_session(self) -> boto3.session.Session:
        settings = self._settings
        base = boto3.session.Session(
            botocore_session=_botocore_session(),
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            region_name=settings.region,
        )
        if settings.assume_role_arn is None:
            return base
        core = _botocore_session()
        core.register_component("credential_provider", CredentialResolver([_AssumedRole(base, settings, self._now)]))
        return boto3.session.Session(botocore_session=core, region_name=settings.region or base.region_name)

    def _glue(self, config: Config) -> GlueClient:
        with translate_aws_errors(f"{self._source}: connecting"):
            try:
                client = self.session.client("glue", endpoint_url=self._settings.endpoint, config=config)
            except ValueError as error:
                raise InvalidInput(f"{self._source}: {error}", hint="check glue.endpoint and glue.region") from None
        shared_call_limiter(self._source, client.meta.endpoint_url, self._settings.limits).attach(client)
        return cast("GlueClient", CheckedGlueClient(self._source, client))


@cache
def _data_loader() -> Any:
    return botocore.session.Session().get_component("data_loader")


def _botocore_session() -> botocore.session.Session:
    core = botocore.session.Session()
    # Reading Glue's service model takes a tenth of a second, so all opened catalogs share one loader.
    core.register_component("data_loader", _data_loader())
    return core


class _AssumedRole(CredentialProvider):
    """Credentials of the role, fetched at the first use and again before they expire."""

    METHOD = "assume-role"
    CANONICAL_NAME = "custom-assume-role"

    def __init__(self, base: boto3.session.Session, settings: GlueSettings, now: Clock) -> None:
        super().__init__()
        self._base = base
        self._settings = settings
        self._now = now

    def load(self) -> RefreshableCredentials:
        first = self._fetch()
        # botocore's default margins, 15 and 10 minutes, would renew a session of 15 minutes at every call.
        session_seconds = self._settings.assume_role_timeout_sec
        return RefreshableCredentials(
            first["access_key"],
            first["secret_key"],
            first["token"],
            datetime.fromisoformat(first["expiry_time"]),
            refresh_using=self._fetch,
            method=self.METHOD,
            time_fetcher=self._now,
            advisory_timeout=min(900, session_seconds // 4),
            mandatory_timeout=min(600, session_seconds // 6),
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
        client = _build_sts_client(self._base, settings, settings.assume_role_region or settings.region)
        credentials = client.assume_role(**request)["Credentials"]
        return {
            "access_key": credentials["AccessKeyId"],
            "secret_key": credentials["SecretAccessKey"],
            "token": credentials["SessionToken"],
            "expiry_time": credentials["Expiration"].isoformat(),
        }


def _build_sts_client(session: boto3.session.Session, settings: GlueSettings, region: str | None) -> Any:
    return session.client("sts", region_name=region, endpoint_url=settings.sts_endpoint, config=READ_CONFIG)


#: AWS's maximum number of items per page
PAGE = 100


def iter_items(call: Callable[..., Any], key: str, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield the items under ``key`` of all pages, in the order of the service and without duplicate names.

    The service may send an item twice: a creation or a drop between two pages can move another item to the next page. Raise
    Internal for an endless listing. AWS's own errors are not translated.
    """
    tokens = PageTokens(key)
    token: str | None = None
    names: set[str] = set()
    while True:
        response = call(**request, **({"NextToken": token} if token else {}))
        known = len(names)
        for item in response[key]:
            if item["Name"] not in names:
                names.add(item["Name"])
                yield item
        token = tokens.following(response.get("NextToken"), added=len(names) - known)
        if token is None:
            return
