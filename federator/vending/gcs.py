"""Tokens of Google Cloud Storage that are downscoped to the prefix of one table, by google-auth.

The source's service account signs in with its key. Google's STS exchanges its token for one with a credential access boundary.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.connector import (
    ConfigError,
    ConnectorSettings,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    gcs_credentials,
)
from federator.connector.storage_options import option_name
from federator.runtime.redaction import redact_known_secrets
from federator.vending.credentials import TableGrant, VendedCredentials
from federator.vending.gcs_boundary import build_access_boundary
from federator.vending.locations import GCS_SCHEMES, has_scheme, parse_prefix

if TYPE_CHECKING:
    from federator.settings import SourceSettings

_TIMEOUT_SECONDS = 10
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
# Options that name a file with the key of a service account.
_KEY_FILES = ("service_account", "service_account_path", "application_credentials")


class GcsVendor:
    """Vends downscoped tokens of the source's service account. Its key is in the source's ``storage.*``."""

    method = "gcs"

    def __init__(self, source: SourceSettings, settings: ConnectorSettings, *, now: Callable[[], float] = time.time) -> None:
        self._source = source.name
        self._settings = settings
        self._now = now

    def applies_to(self, location: str) -> bool:
        return has_scheme(location, GCS_SCHEMES)

    def issue(self, grant: TableGrant) -> VendedCredentials:
        boundary = build_access_boundary(parse_prefix(grant.location), grant.access)
        issued_at, request = self._now(), _Request()
        with self._translate_errors(request):
            from google.auth import downscoped

            rule = downscoped.AccessBoundaryRule(
                available_resource=boundary.resource,
                available_permissions=list(boundary.permissions),
                availability_condition=downscoped.AvailabilityCondition(boundary.expression),
            )
            source, account = self._source_credentials()
            token = downscoped.Credentials(
                source, downscoped.CredentialAccessBoundary([rule]), universe_domain=source.universe_domain
            )
            token.refresh(request)
        issued = gcs_credentials(token.token, token.expiry.replace(tzinfo=UTC).timestamp())
        return VendedCredentials(issued.options, issued_at, issued.expires_at, account, self.method)

    def check(self) -> str:
        """Sign in."""
        request = _Request()
        with self._translate_errors(request):
            source, account = self._source_credentials()
            source.refresh(request)
        return f"{account} can sign in"

    def _source_credentials(self) -> tuple[Any, str]:
        """Return new credentials of the source, and their name. Raise ConfigError."""
        from google.oauth2 import service_account

        storage = {option_name(key): text for key, text in self._settings.storage.items() if text}
        where = f"[sources.{self._source}] vend"
        path = next((storage[name] for name in _KEY_FILES if name in storage), None)
        try:
            text = Path(path).read_text(encoding="utf-8") if path else storage.get("service_account_key")
            if text:
                credentials = service_account.Credentials.from_service_account_info(_parse_key(text), scopes=_SCOPES)
                return credentials, str(credentials.service_account_email)
        except (OSError, ValueError) as error:
            # The error could contain a part of the key.
            raise ConfigError(f"{where}: the key of the service account cannot be read ({type(error).__name__})") from None
        if not self._settings.ambient_credentials:
            raise ConfigError(
                f"{where}: storage.* has no service account whose token could be downscoped",
                hint="set storage.google_service_account_key, or ambient_credentials = true",
            )
        import google.auth

        credentials, _ = google.auth.default(scopes=list(_SCOPES))
        return credentials, str(getattr(credentials, "service_account_email", "") or "the credentials of the machine")

    @contextmanager
    def _translate_errors(self, request: _Request) -> Iterator[None]:
        try:
            from google.auth import exceptions
        except ImportError as error:
            raise ConfigError(
                f"[sources.{self._source}] vend: google-auth is not installed", hint="pip install 'lance-federator[gcs]'"
            ) from error
        about = f"{self._source}: a downscoped token"
        try:
            yield
        except exceptions.TransportError as error:
            # The texts of these errors can contain the request.
            raise ServiceUnavailable(f"{about}: {type(error).__name__}") from None
        except exceptions.GoogleAuthError as error:
            kind = {429: Throttled}.get(request.status, ServiceUnavailable if request.status >= 500 else PermissionDenied)
            # The second argument of google-auth's errors is the whole response.
            raise kind(f"{about}: {redact_known_secrets(str(error.args[0]) if error.args else type(error).__name__)}") from None


def _parse_key(text: str) -> Mapping[str, Any]:
    info = json.loads(text)
    if not isinstance(info, dict) or info.get("type") != "service_account":
        raise ValueError("not the key of a service account")
    return info


class _Request:
    """The transport of google-auth, with a time limit for each request. ``status`` is that of the last response."""

    def __init__(self) -> None:
        self._send: Any = None
        self.status = 0

    def __call__(self, url: str, method: str = "GET", body: Any = None, headers: Any = None, **_: Any) -> Any:
        if self._send is None:
            from google.auth.transport.requests import Request

            self._send = Request()
        response = self._send(url=url, method=method, body=body, headers=headers, timeout=_TIMEOUT_SECONDS)
        self.status = response.status
        return response
