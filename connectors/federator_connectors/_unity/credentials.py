"""Temporary credentials of a table from Unity's responses. Pure functions.

Source: the Unity Catalog REST API, ``temporary-table-credentials``. Databricks adds ``url``, the location that they are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from federator.connector import (
    ConcurrentModification,
    TemporaryCredentials,
    Unsupported,
    azure_credentials,
    gcs_credentials,
    s3_credentials,
)
from federator.connector.storage_options import lance_scheme
from federator.model import TableRecord, canonical_location, to_lance_uri

READ, READ_WRITE = "READ", "READ_WRITE"


def parse_credentials(fields: Mapping[str, Any], record: TableRecord) -> TemporaryCredentials:
    """Return the credentials of a response for the table's store.

    Raise Unsupported if the response has none for this store, or if they do not expire: the open-source server can be configured
    with long-lived keys, which it returns here. Raise ConcurrentModification if they are for another location.
    """
    location, millis = record.location or "", fields.get("expiration_time")
    if fields.get("url") and canonical_location(fields["url"]) != canonical_location(location):
        raise ConcurrentModification(f"{record.source}: the credentials of {record.key} are for another location")
    scheme = lance_scheme(location)
    expires_at = (millis or 0) / 1000
    aws, sas, token = (fields.get(key) for key in ("aws_temp_credentials", "azure_user_delegation_sas", "gcp_oauth_token"))
    issued: TemporaryCredentials | None = None
    if scheme == "s3" and aws and aws.get("session_token"):
        issued = s3_credentials(aws["access_key_id"], aws["secret_access_key"], aws["session_token"], expires_at)
    elif scheme == "abfss" and sas:
        account = (urlsplit(to_lance_uri(location)).hostname or "").partition(".")[0]
        issued = azure_credentials(account, sas["sas_token"], expires_at)
    elif scheme == "gs" and token:
        issued = gcs_credentials(token["oauth_token"], expires_at)
    if issued is None or not millis:
        kind = scheme or "files"
        raise Unsupported(f"{record.source}: the server issued no temporary credentials for {record.key} ({kind})")
    return issued
