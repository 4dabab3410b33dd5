"""Credentials from AWS STS, or a compatible server: AssumeRole with a session policy for the prefix of one table.

Source: AWS Security Token Service API reference, ``AssumeRole``.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from federator.connector import (
    CatalogError,
    ConfigError,
    ConnectorSettings,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    TemporaryCredentials,
    Throttled,
    s3_credentials,
)
from federator.connector.options import resolve_reference
from federator.connector.storage_options import option_name
from federator.runtime.redaction import redact_known_secrets
from federator.vending.credentials import TableGrant, VendedCredentials
from federator.vending.locations import S3_SCHEMES, has_scheme, parse_prefix
from federator.vending.s3_policy import build_session_policy

if TYPE_CHECKING:
    from federator.settings import SourceSettings, StsSettings

_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 3, 10, 2
_SESSION_NAME_LENGTH = 64
_ROLE_ARN = re.compile(r"arn:[a-z-]+:iam::[0-9]*:[^\s:]+")
_NOTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]})
_THROTTLED = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown"})
_REFUSED = frozenset({
    "AccessDenied", "AccessDeniedException", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "InvalidAccessKeyId",
    "SignatureDoesNotMatch", "UnrecognizedClientException", "RegionDisabledException",
})  # fmt: skip
_TOO_LARGE = frozenset({"PackedPolicyTooLarge", "MalformedPolicyDocument"})


class StsVendor:
    """Vends credentials of the source's role. The credentials that assume it are the source's ``storage.*``."""

    method = "sts"

    def __init__(self, source: SourceSettings, settings: ConnectorSettings, *, now: Callable[[], float] = time.time) -> None:
        if source.sts is None:
            raise ConfigError(f"[sources.{source.name}.sts]: required, because vend is sts")
        self._source = source.name
        self._sts: StsSettings = source.sts
        self._settings = settings
        self._now = now
        self._client: Any = None
        self._creating = threading.Lock()

    @property
    def role_arn(self) -> str:
        """The role, with its reference resolved. Raise ConfigError."""
        where = f"[sources.{self._source}.sts] role_arn"
        role_arn = resolve_reference(self._sts.role_arn, where=where)
        if not _ROLE_ARN.fullmatch(role_arn):
            raise ConfigError(f"{where}: {role_arn!r} is not the ARN of a role", hint="arn:aws:iam::123456789012:role/NAME")
        return role_arn

    def applies_to(self, location: str) -> bool:
        return has_scheme(location, S3_SCHEMES)

    def issue(self, grant: TableGrant) -> VendedCredentials:
        issued_at, role_arn, name = self._now(), self.role_arn, session_name(grant.principal)
        named = role_arn.split(":")[1]
        # Compatible servers, whose roles have partitions of their own (arn:minio:), know buckets only in that of AWS.
        partition = named if named.startswith("aws") else "aws"
        policy = build_session_policy(
            parse_prefix(grant.location), grant.access, partition=partition, kms_key=self._sts.kms_key
        )
        issued = self._assume_role(role_arn, policy, name)
        return VendedCredentials(issued.options, issued_at, issued.expires_at, f"{role_arn} as {name}", self.method)

    def check(self) -> str:
        """Assume the role with a policy that denies everything."""
        role_arn = self.role_arn
        self._assume_role(role_arn, _NOTHING, "lance-federator-doctor")
        return f"{role_arn} can be assumed"

    def _assume_role(self, role_arn: str, policy: str, name: str) -> TemporaryCredentials:
        request = {
            "RoleArn": role_arn,
            "RoleSessionName": name,
            "Policy": policy,
            "DurationSeconds": int(self._sts.duration),
        }
        if self._sts.external_id is not None:
            request["ExternalId"] = resolve_reference(self._sts.external_id, where=f"[sources.{self._source}.sts] external_id")
        with _translate_errors(f"{self._source}: assuming {role_arn}"):
            issued = self._get_client().assume_role(**request)["Credentials"]
        keys = (issued["AccessKeyId"], issued["SecretAccessKey"], issued["SessionToken"])
        return s3_credentials(*keys, issued["Expiration"].timestamp(), region=self._region)

    @property
    def _region(self) -> str | None:
        return self._storage.get("region") or self._storage.get("default_region")

    @property
    def _storage(self) -> Mapping[str, str]:
        return {option_name(key): text for key, text in self._settings.storage.items() if text}

    def _get_client(self) -> Any:
        with self._creating:
            if self._client is None:
                self._client = self._build_client()
        return self._client

    def _build_client(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise ConfigError(
                f"[sources.{self._source}] vend: boto3 is not installed", hint="pip install 'lance-federator[sts]'"
            ) from error
        storage, where = self._storage, f"[sources.{self._source}]"
        if "access_key_id" in storage and "secret_access_key" in storage:
            session = boto3.session.Session(
                aws_access_key_id=storage["access_key_id"],
                aws_secret_access_key=storage["secret_access_key"],
                aws_session_token=storage.get("session_token"),
            )
        elif self._settings.ambient_credentials:
            session = boto3.session.Session()
        else:
            raise ConfigError(
                f"{where} vend: storage.* has no credentials that could assume {self.role_arn}",
                hint="set storage.access_key_id and storage.secret_access_key, or ambient_credentials = true",
            )
        endpoint = self._sts.endpoint
        if endpoint is None and any(name in storage for name in ("endpoint", "endpoint_url")):
            # AWS must not receive the credentials of another store.
            raise ConfigError(
                f"{where} vend: storage.endpoint is set, and [sources.{self._source}.sts] endpoint is not",
                hint="set the URL of the STS that belongs to the store",
            )
        config = Config(
            connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, user_agent_extra="lance-federator",
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        )  # fmt: skip
        region = self._sts.region or self._region or session.region_name or "us-east-1"
        return session.client("sts", region_name=region, endpoint_url=endpoint, config=config)


def session_name(principal: str) -> str:
    """Return the name of a principal as a session name of STS: ``token:ci`` is ``token=ci``.

    A name that had to be changed more ends with a part of its SHA-256, so that different principals have different names.
    """
    simple = principal.replace(":", "=", 1)
    name = re.sub(r"[^A-Za-z0-9_+=,.@-]", "-", simple)
    if name == simple and 2 <= len(name) <= _SESSION_NAME_LENGTH:
        return name
    digest = hashlib.sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: _SESSION_NAME_LENGTH - len(digest) - 1]}-{digest}"


@contextmanager
def _translate_errors(about: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004 - botocore's name

    try:
        yield
    except ClientError as error:
        code, message = (str(error.response.get("Error", {}).get(key, "")) for key in ("Code", "Message"))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        raise _error_class(code, status)(f"{about}: {redact_known_secrets(f'{code}: {message}')}") from None
    except (HTTPClientError, ConnectionError) as error:
        # The texts of these errors can contain the request.
        raise ServiceUnavailable(f"{about}: {type(error).__name__}") from None
    except BotoCoreError as error:
        raise Internal(f"{about}: {type(error).__name__}") from None


def _error_class(code: str, status: int) -> type[CatalogError]:
    if code in _THROTTLED:
        return Throttled
    if code in _REFUSED:
        return PermissionDenied
    if code in _TOO_LARGE:
        return InvalidInput
    return ServiceUnavailable if status >= 500 else Internal
