"""User delegation SAS for the directory of one table in an Azure storage account, by azure-identity and azure-storage-blob.

The source's service principal requests a user delegation key. The SAS is signed with it in this process.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from federator.connector import (
    CatalogError,
    ConfigError,
    ConnectorSettings,
    Internal,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unsupported,
    azure_credentials,
)
from federator.connector.storage_options import option_name
from federator.runtime.redaction import redact_known_secrets
from federator.runtime.text import first_line
from federator.vending.credentials import Access, TableGrant, VendedCredentials
from federator.vending.locations import AZURE_SCHEMES, has_scheme, parse_prefix, parse_storage_account

if TYPE_CHECKING:
    from federator.settings import SourceSettings

_SESSION_SECONDS = 3600
#: the key is valid from this time before now, because clocks differ
_SKEW_SECONDS = 300
# In the order that Azure requires: read, create, write, delete, list.
_PERMISSIONS = {Access.READ: "rl", Access.WRITE: "rcwdl"}
# The first retry of azure-storage-blob comes after 15 seconds, also after a refusal.
_NO_RETRIES = {"retry_total": 0, "connection_timeout": 3, "read_timeout": 10}
#: namespace of the correlation ids that stand for principals in the logs of the storage account
_PRINCIPALS = uuid.UUID("6b2f9a52-3f5e-5c0e-9f0b-6c1a9a4d7e10")


def correlation_id(principal: str) -> str:
    """Return the id of a principal in the logs of the storage account (``scid``)."""
    return str(uuid.uuid5(_PRINCIPALS, principal))


class AzureVendor:
    """Vends user delegation SAS of the source's service principal, whose secret is in the source's ``storage.*``."""

    method = "azure"

    def __init__(self, source: SourceSettings, settings: ConnectorSettings, *, now: Callable[[], float] = time.time) -> None:
        self._source = source.name
        self._settings = settings
        self._now = now
        self._credential: Any = None
        self._creating = threading.Lock()

    def applies_to(self, location: str) -> bool:
        return has_scheme(location, AZURE_SCHEMES)

    def issue(self, grant: TableGrant) -> VendedCredentials:
        prefix, issued_at = parse_prefix(grant.location), self._now()
        account, url = self._resolve_account(prefix.host)
        # Azure counts in seconds.
        expires_at, session = float(int(issued_at) + _SESSION_SECONDS), correlation_id(grant.principal)
        with self._translate_errors(account):
            from azure.storage.blob import generate_blob_sas

            sas = generate_blob_sas(
                account, prefix.bucket, prefix.key, is_directory=True,
                user_delegation_key=self._delegation_key(url, issued_at, expires_at), permission=_PERMISSIONS[grant.access],
                expiry=_moment(expires_at), protocol="https", correlation_id=session,
            )  # fmt: skip
        issued = azure_credentials(account, sas, expires_at)
        return VendedCredentials(
            issued.options, issued_at, issued.expires_at, f"the account {account}, correlation id {session}", self.method
        )

    def check(self) -> str:
        """Request a key for the configured account. Without one, request a token only."""
        if "account_name" not in self._storage:
            with self._translate_errors("the account of each table"):
                self._get_credential().get_token("https://storage.azure.com/.default")
            return "the service principal can sign in"
        account, url = self._resolve_account("")
        with self._translate_errors(account):
            self._delegation_key(url, self._now(), self._now() + _SKEW_SECONDS)
        return f"{account} issues user delegation keys"

    @property
    def _storage(self) -> Mapping[str, str]:
        return {option_name(key): text for key, text in self._settings.storage.items() if text}

    def _resolve_account(self, host: str) -> tuple[str, str]:
        """Return the storage account at a host and the URL of its blobs. With an empty host, it is the configured account.

        Raise ConfigError for incomplete or unsafe settings, and Unsupported for an account that is not the configured one.
        """
        storage, where = self._storage, f"[sources.{self._source}] vend"
        configured, endpoint = storage.get("account_name"), storage.get("endpoint")
        account = parse_storage_account(host) if host else configured
        if account is None:
            raise ConfigError(f"{where}: the storage account of az:// locations is unknown", hint="set storage.account_name")
        if configured not in (None, account):
            raise Unsupported(f"no credentials are vended for tables in other accounts than {configured}")
        suffix = host.partition(".")[2].replace("dfs.", "blob.", 1) or "blob.core.windows.net"
        url = endpoint or f"https://{account}.{suffix}"
        if not url.startswith("https://"):
            raise ConfigError(f"{where}: storage.endpoint must be an https URL, because tokens are sent to it")
        return account, url

    def _delegation_key(self, url: str, issued_at: float, expires_at: float) -> Any:
        from azure.storage.blob import BlobServiceClient

        with BlobServiceClient(url, credential=self._get_credential(), **_NO_RETRIES) as client:
            return client.get_user_delegation_key(_moment(issued_at - _SKEW_SECONDS), _moment(expires_at))

    def _get_credential(self) -> Any:
        with self._creating:
            if self._credential is None:
                self._credential = self._build_credential()
        return self._credential

    def _build_credential(self) -> Any:
        from azure.identity import ClientSecretCredential, DefaultAzureCredential

        storage = self._storage
        tenant = storage.get("tenant_id") or storage.get("authority_id")
        keys = (tenant, storage.get("client_id"), storage.get("client_secret"))
        # A configured authority is not looked up at Microsoft's public one.
        host = storage.get("authority_host")
        authority = {"authority": host, "disable_instance_discovery": True} if host else {}
        if all(keys):
            return ClientSecretCredential(*keys, **authority, **_NO_RETRIES)
        if self._settings.ambient_credentials:
            return DefaultAzureCredential(**authority)
        raise ConfigError(
            f"[sources.{self._source}] vend: storage.* has no service principal that could request a user delegation key",
            hint="set storage.azure_storage_tenant_id, azure_storage_client_id and azure_storage_client_secret, "
            "or ambient_credentials = true",
        )

    @contextmanager
    def _translate_errors(self, account: str) -> Iterator[None]:
        try:
            import azure.identity
            import azure.storage.blob  # noqa: F401
            from azure.core import exceptions
        except ImportError as error:
            raise ConfigError(
                f"[sources.{self._source}] vend: azure-identity or azure-storage-blob is not installed",
                hint="pip install 'lance-federator[azure]'",
            ) from error
        about = f"{self._source}: a user delegation SAS for {account}"
        try:
            yield
        except exceptions.HttpResponseError as error:
            status = error.status_code or (403 if isinstance(error, exceptions.ClientAuthenticationError) else 500)
            raise _error_class(status)(f"{about}: {redact_known_secrets(first_line(error))}") from None
        except exceptions.AzureError as error:
            # The texts of these errors can contain the request.
            raise ServiceUnavailable(f"{about}: {type(error).__name__}") from None


def _error_class(status: int) -> type[CatalogError]:
    if status == 429:
        return Throttled
    if status >= 500:
        return ServiceUnavailable
    return PermissionDenied if status in (400, 401, 403) else Internal


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)
