"""Temporary credentials of a table from Lake Formation.

Source: the Lake Formation API reference, ``GetTemporaryGlueTableCredentials``; AWS Glue, "Specifying resource ARNs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from federator.connector import (
    ConcurrentModification,
    Internal,
    PermissionDenied,
    TableNotFound,
    TemporaryCredentials,
    Unauthenticated,
    Unsupported,
    s3_credentials,
)
from federator.connector.storage_options import lance_scheme
from federator.model import Path, TableRecord, canonical_location
from federator_connectors._glue.client import Clients
from federator_connectors._glue.errors import translate_aws_errors

SESSION_SECONDS = 3600
_READ = ("SELECT",)
_WRITE = ("SELECT", "INSERT", "DELETE")
_CATALOG_ID = re.compile(r"(?P<account>[0-9]{12})(?::(?P<catalogs>.+))?")
_CREDENTIAL_FIELDS = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")


def issue_credentials(
    clients: Clients, catalog_id: str, path: Path, record: TableRecord, *, writes: bool
) -> TemporaryCredentials:
    """Return credentials for a table. ``catalog_id`` is that of its catalog; ``path`` is its canonical path.

    Raise PermissionDenied if Lake Formation refuses, also if the source's role has only a part of the table's columns or cells: its
    credentials would open the files of the whole table.
    """
    if lance_scheme(record.location or "") != "s3":
        raise Unsupported(f"{record.source}: Lake Formation issues credentials for tables in S3 only, and not for {record.key}")
    client = clients.lake_formation
    request = {
        "TableArn": table_arn(client.meta.partition, client.meta.region_name, catalog_id, path),
        "Permissions": list(_WRITE if writes else _READ),
        "DurationSeconds": SESSION_SECONDS,
    }
    about = f"{record.source}: credentials of Lake Formation for {record.key}"
    try:
        with translate_aws_errors(about, missing=TableNotFound):
            response = client.get_temporary_glue_table_credentials(**request)
    except Unauthenticated as error:
        # The spec's code 16 is for the operations of the Lance Glue spec.
        raise PermissionDenied(error.message, hint=error.hint) from None
    return parse_credentials(response, record, about)


def parse_credentials(response: Mapping[str, Any], record: TableRecord, about: str) -> TemporaryCredentials:
    """Return the credentials of a response. Raise Internal if it has none, ConcurrentModification if they are for another location."""
    missing = [name for name in _CREDENTIAL_FIELDS if not response.get(name)]
    if missing:
        raise Internal(f"{about}: the response has no {', '.join(missing)}")
    paths = {canonical_location(path) for path in response.get("VendedS3Path") or ()}
    if paths - {canonical_location(record.location or "")}:
        raise ConcurrentModification(f"{about}: they are for another location")
    expires_at = response["Expiration"].timestamp()
    return s3_credentials(response["AccessKeyId"], response["SecretAccessKey"], response["SessionToken"], expires_at)


def table_arn(partition: str, region: str, catalog_id: str, path: Path) -> str:
    """Return the ARN of a table. Raise Unsupported if its catalog's id does not contain an account."""
    match = _CATALOG_ID.fullmatch(catalog_id)
    if match is None:
        raise Unsupported(f"the table has no ARN, because the id of its catalog {catalog_id!r} does not start with an account")
    names = [match["catalogs"]] if match["catalogs"] else []
    return f"arn:{partition}:glue:{region}:{match['account']}:table/{'/'.join([*names, *path[-2:]])}"
