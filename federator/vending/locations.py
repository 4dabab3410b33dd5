"""Locations that credentials can be limited to: the directory of one table in a bucket or container.

An ambiguous location is refused: Lance and the store could read its text as the names of different objects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from federator.connector import InvalidInput, Unsupported
from federator.connector.storage_options import lance_scheme
from federator.model import is_ambiguous, to_lance_uri

S3_SCHEMES, GCS_SCHEMES, AZURE_SCHEMES = ("s3", "s3+ddb"), ("gs",), ("az", "abfss")
# Error messages do not show names that these patterns refuse, because the text could contain a password.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
# The end of the name of a directory bucket (S3 Express). A session of such a bucket is always valid for the whole bucket.
_DIRECTORY_BUCKET = "--x-s3"


@dataclass(frozen=True, slots=True)
class TablePrefix:
    """The prefix of the names of a table's objects in a bucket, or in an Azure container.

    ``key`` is the prefix, without a slash at its ends. ``host`` is the host of an Azure location (``account.dfs.core.windows.net``);
    empty if the location does not name one.
    """

    bucket: str
    key: str
    host: str = ""


def has_scheme(location: str, schemes: tuple[str, ...]) -> bool:
    """Return whether Lance opens a location under one of these schemes."""
    return lance_scheme(location) in schemes


def parse_prefix(location: str) -> TablePrefix:
    """Return the prefix of the objects at a table's location.

    Raise Unsupported for a kind of storage without credentials for single tables. Raise InvalidInput for an ambiguous location, an
    invalid name or a whole bucket.
    """
    scheme, _, rest = to_lance_uri(location).partition("://")
    authority, _, key = rest.partition("/")
    scheme, key = scheme.lower(), key.rstrip("/")
    if scheme == "s3+ddb":
        raise Unsupported("no credentials are vended for tables with a commit lock in DynamoDB: they would also need its table")
    if scheme not in (*S3_SCHEMES, *GCS_SCHEMES, *AZURE_SCHEMES):
        raise Unsupported("no credentials are vended for this kind of storage")
    bucket, _, host = authority.partition("@")
    # Of these schemes, only abfss has a host: abfss://container@host/key.
    has_valid_host = bool(host) == (scheme == "abfss")
    if not has_valid_host or not (_CONTAINER if scheme in AZURE_SCHEMES else _BUCKET).fullmatch(bucket):
        raise InvalidInput("no credentials are vended for a location without a valid name of a bucket")
    if bucket.endswith(_DIRECTORY_BUCKET):
        raise Unsupported("no credentials are vended for directory buckets: their sessions are valid for the whole bucket")
    if not key:
        raise InvalidInput(f"no credentials are vended for the whole bucket {bucket}")
    if "%" in key or is_ambiguous(location):
        raise InvalidInput(
            "no credentials are vended for a location with %, ?, #, \\, empty or relative levels: other objects could be meant"
        )
    return TablePrefix(bucket, key, host)


def parse_storage_account(host: str) -> str:
    """Return the storage account of an Azure host (``account.dfs.core.windows.net``). Raise InvalidInput if its name is invalid."""
    account = (urlsplit(f"//{host}").hostname or "").partition(".")[0]
    if not _ACCOUNT.fullmatch(account):
        raise InvalidInput("no credentials are vended for a location without a valid name of a storage account")
    return account
