"""Credentials, boto3 clients and paging of Glue.

Reads retry with botocore's adaptive mode, which also slows down when throttled. A write is sent once. If its response is lost, the
outcome is determined by reading; the write is never sent again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialResolver

from federator.connector import Internal, InvalidInput, Unsupported
from federator.connector.call_deadline import CallSlots
from federator.connector.operation import require_permission
from federator.connector.page_tokens import PageTokens
from federator_connectors._glue.assumed_role import Clock, RoleCredentials, RoleProvider
from federator_connectors._glue.call_limits import limit_duration, shared_call_limiter
from federator_connectors._glue.errors import translate_aws_errors
from federator_connectors._glue.responses import CheckedGlueClient, reject_malformed_listing
from federator_connectors._glue.settings import GlueSettings

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

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
# For Lake Formation. A user's request waits for its credentials, so it fails early.
CREDENTIALS_CONFIG = Config(
    connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2}, user_agent_extra=_AGENT
)


class Clients:
    """The clients of one source, created on first use. Thread-safe: Glue gets at most ``client.pool-size`` requests at once.

    No lock is held while STS is asked for the role's credentials, so that ``close`` does not wait for it.
    """

    def __init__(self, source: str, settings: GlueSettings, *, now: Clock = lambda: datetime.now(UTC)) -> None:
        self._source = source
        self._settings = settings
        self._connections = CallSlots(settings.pool_size)
        self._role = (
            RoleCredentials(self._assume_role, settings.assume_role_timeout_sec, now) if settings.assume_role_arn else None
        )
        # Sessions of boto3 are not thread-safe; their clients are. Reentrant, because a client needs the session.
        self._creating = threading.RLock()
        self._session: boto3.session.Session | None = None
        self._clients: dict[str, Any] = {}

    @property
    def reads(self) -> GlueClient:
        return cast("GlueClient", self._get_client("reads", lambda: self._create_glue_client(READ_CONFIG)))

    @property
    def writes(self) -> GlueClient:
        """The client for writes. A write raises, and is not sent, if ``connector.operation`` withdrew the permission to write."""
        create = partial(self._create_glue_client, WRITE_CONFIG, before_send=require_permission)
        return cast("GlueClient", self._get_client("writes", create))

    @property
    def lake_formation(self) -> Any:
        """The client of Lake Formation. Raise Unsupported for an API-compatible metastore: AWS must not receive its credentials."""
        settings = self._settings
        if settings.endpoint is not None and settings.lake_formation_endpoint is None:
            raise Unsupported(
                f"{self._source}: {settings.endpoint} has no Lake Formation that could issue credentials",
                hint="set glue.lake_formation_endpoint",
            )
        endpoint = settings.lake_formation_endpoint
        return self._get_client(
            "lake_formation", lambda: self._create_client(self.session, "lakeformation", endpoint, CREDENTIALS_CONFIG)
        )

    def _get_client(self, name: str, create: Callable[[], Any]) -> Any:
        """Return the client ``name``, which ``create`` makes on first use. Renew the role's credentials if they expire soon."""
        with translate_aws_errors(f"{self._source}: connecting"):
            if self._role is not None:
                # Renews the credentials if they expire soon. botocore would do so within the call, which has one of the connections
                # to Glue by then and would keep it while it waits for STS.
                self._role.get_frozen_credentials()
            if (client := self._clients.get(name)) is not None:
                return client
            with self._creating:
                client = self._clients.get(name) or create()
                self._clients[name] = client
                return client

    @property
    def has_sts(self) -> bool:
        """Whether STS may be called. An API-compatible metastore may have no STS, and AWS must not receive its credentials."""
        return self._settings.endpoint is None or self._settings.sts_endpoint is not None

    def get_account_id(self) -> str:
        """Return the account of the credentials, from STS. Raise InvalidInput if the metastore is not AWS and has no STS."""
        settings = self._settings
        if not self.has_sts:
            raise InvalidInput(
                f"{self._source}: the account of {settings.endpoint} is unknown, because it lists no catalogs",
                hint="set glue.catalog_id, the name of its root catalog, or glue.sts_endpoint",
            )
        with translate_aws_errors(f"{self._source}: asking STS for the account"):
            with self._creating:
                sts = self._create_sts_client(self.session, settings.region)
            return str(sts.get_caller_identity()["Account"])

    def close(self) -> None:
        """Close the connections of the created clients. Others are created when they are needed."""
        for name in list(self._clients):
            if (client := self._clients.pop(name, None)) is not None:
                client.close()

    @property
    def session(self) -> boto3.session.Session:
        """The boto3 session that provides the credentials."""
        with self._creating:
            if self._session is None:
                self._session = self._create_session()
            return self._session

    def _create_session(self) -> boto3.session.Session:
        if self._role is None:
            return self._create_base_session()
        core = _botocore_session()
        core.register_component("credential_provider", CredentialResolver([RoleProvider(self._role)]))
        region = self._settings.region or self._create_base_session().region_name
        return boto3.session.Session(botocore_session=core, region_name=region)

    def _create_base_session(self) -> boto3.session.Session:
        settings = self._settings
        return boto3.session.Session(
            botocore_session=_botocore_session(),
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            region_name=settings.region,
        )

    def _assume_role(self) -> dict[str, str]:
        settings = self._settings
        request: dict[str, Any] = {
            "RoleArn": settings.assume_role_arn,
            "RoleSessionName": settings.assume_role_session_name,
            "DurationSeconds": settings.assume_role_timeout_sec,
        }
        if settings.assume_role_external_id:
            request["ExternalId"] = settings.assume_role_external_id
        client = self._create_sts_client(self._create_base_session(), settings.assume_role_region or settings.region)
        try:
            credentials = client.assume_role(**request)["Credentials"]
        finally:
            client.close()
        return {
            "access_key": credentials["AccessKeyId"],
            "secret_key": credentials["SecretAccessKey"],
            "token": credentials["SessionToken"],
            "expiry_time": credentials["Expiration"].isoformat(),
        }

    def _create_glue_client(self, config: Config, *, before_send: Callable[[], None] = lambda: None) -> CheckedGlueClient:
        config = config.merge(Config(max_pool_connections=self._settings.pool_size))
        client = self._create_client(self.session, "glue", self._settings.endpoint, config)
        client.meta.events.register("before-parse", reject_malformed_listing)
        limiter = shared_call_limiter(self._source, client.meta.endpoint_url, self._settings.limits)
        limiter.attach(client, self._connections, before_send)
        return CheckedGlueClient(self._source, client)

    def _create_sts_client(self, session: boto3.session.Session, region: str | None) -> Any:
        return self._create_client(session, "sts", self._settings.sts_endpoint, READ_CONFIG, region)

    def _create_client(
        self, session: Any, service: str, endpoint: str | None, config: Config, region: str | None = None
    ) -> Any:
        try:
            client = session.client(service, region_name=region, endpoint_url=endpoint, config=config)
        except ValueError as error:
            raise InvalidInput(f"{self._source}: {error}", hint="check the endpoints and regions of the source") from None
        limit_duration(f"{self._source}: {client.meta.endpoint_url}", client, config)
        return client


@cache
def _data_loader() -> Any:
    return botocore.session.Session().get_component("data_loader")


def _botocore_session() -> botocore.session.Session:
    core = botocore.session.Session()
    # Reading Glue's service model takes a tenth of a second, so all opened catalogs share one loader.
    core.register_component("data_loader", _data_loader())
    return core


#: AWS's maximum number of items per page
PAGE_SIZE = 100


def iter_items(call: Callable[..., Any], key: str, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield the items under ``key`` of all pages, in the order of the service and without duplicate names.

    The service may send an item twice: a creation or a drop between two pages can move another item to the next page. Raise
    Internal for an endless listing, and for a page with an item twice: it may lack another one. AWS's own errors are not translated.
    """
    tokens = PageTokens(key)
    token: str | None = None
    names: set[str] = set()
    while True:
        response = call(**request, **({"NextToken": token} if token else {}))
        if len({item["Name"] for item in response[key]}) < len(response[key]):
            raise Internal(f"a page of {key} has a name twice")
        known = len(names)
        for item in response[key]:
            if item["Name"] not in names:
                names.add(item["Name"])
                yield item
        token = tokens.following(response.get("NextToken"), added=len(names) - known)
        if token is None:
            return
