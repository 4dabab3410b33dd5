"""Temporary credentials of an object store, under the names of Lance's storage options.

pylance, lancedb, lance-ray and lance-spark give storage options to the same library. Its versions read one of two spellings, so both
are returned, except for Google Cloud Storage, where only ``google_storage_token`` is read again when credentials are renewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TemporaryCredentials:
    """Credentials that expire. ``expires_at`` is in seconds since the epoch."""

    options: Mapping[str, str] = field(repr=False)
    expires_at: float


def s3_credentials(
    access_key_id: str, secret_access_key: str, session_token: str, expires_at: float, *, region: str | None = None
) -> TemporaryCredentials:
    """Credentials of a session of AWS, or of a compatible server."""
    options = {"access_key_id": access_key_id, "secret_access_key": secret_access_key, "session_token": session_token}
    if region:
        options["region"] = region
    return TemporaryCredentials(options | {f"aws_{key}": text for key, text in options.items()}, expires_at)


def gcs_credentials(token: str, expires_at: float) -> TemporaryCredentials:
    """An access token of Google Cloud Storage."""
    return TemporaryCredentials({"google_storage_token": token}, expires_at)


def azure_credentials(account_name: str, sas_token: str, expires_at: float) -> TemporaryCredentials:
    """A shared access signature (SAS) of an Azure storage account. It may start with a question mark."""
    options = {"account_name": account_name, "sas_token": sas_token.removeprefix("?")}
    return TemporaryCredentials(options | {f"azure_storage_{key}": text for key, text in options.items()}, expires_at)
