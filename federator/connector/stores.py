"""Where a directory can be: the file systems and object stores of ``pyarrow.fs``, opened with Lance's own storage options.

Keys may have Lance's prefixes (``aws_``, ``azure_storage_``, ``azure_``, ``google_``) or not.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import quote, urlsplit

from federator.connector.errors import (
    CatalogError,
    ConfigError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.connector.options import boolean
from federator.model import local_path

_CONNECT_SECONDS, _REQUEST_SECONDS = 10, 30
# Lance reads a location as a URL: it decodes percent signs, cuts at "?" and "#", turns a backslash into a slash, and drops
# control characters and a last space. Everything else stays readable, since other catalogs take a location as it stands.
_UNSAFE = re.compile(r"[%?#\\\x00-\x1f\x7f]| $")


@dataclass(frozen=True)
class Place:
    """A file system of ``pyarrow.fs``, the path within it, and what turns such a path into a location.

    ``container`` is what ``prefix`` already says of a path. ``tree``: directories exist without anything in them.
    """

    system: Any
    base: str
    prefix: str
    container: str = ""
    local: bool = False
    tree: bool = False

    def location(self, *names: str) -> str:
        """The location of something inside, as Lance opens it."""
        path = "/".join((self.base, *names)).removeprefix(self.container)
        return self.prefix + _UNSAFE.sub(lambda match: quote(match[0], safe=""), path)


def place(root: str, storage: Mapping[str, str]) -> Place:
    """Raises ConfigError where a library or a setting is missing, InvalidInput and Unsupported for what is no directory."""
    if is_local(root):
        return _local(root)
    scheme = root.partition("://")[0].lower()
    if scheme not in _STORES:
        raise Unsupported(
            f"{root}: {scheme}:// is no storage that can be listed", hint=f"a path, or one of {', '.join(_STORES)}"
        )
    return _STORES[scheme](root, scheme, storage)


def is_local(root: str) -> bool:
    return "://" not in root or root.lower().startswith("file:")


def _local(root: str) -> Place:
    from pyarrow.fs import LocalFileSystem

    # A relative path means the directory that this process runs in, by the Lance spec.
    path = local_path(root) if root.lower().startswith("file:") else None
    base = FilePath(path or root).absolute().as_posix()
    return Place(LocalFileSystem(), base.rstrip("/"), "file://", local=True, tree=True)


def _s3(root: str, scheme: str, storage: Mapping[str, str]) -> Place:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    base = _bucket_and_prefix(root)
    options = _options(storage, "aws_")
    endpoint = options.get("endpoint") or options.get("endpoint_url")
    region = options.get("region") or options.get("default_region")
    if not region and not endpoint:
        region = resolve_s3_region(base.split("/")[0])
    secure = not boolean(options.get("allow_http", "false")) or bool(endpoint and endpoint.startswith("https:"))
    arguments = {
        "access_key": options.get("access_key_id"),
        "secret_key": options.get("secret_access_key"),
        "session_token": options.get("session_token") or options.get("token"),
        "anonymous": boolean(options.get("skip_signature", "false")),
        "region": region,
        "endpoint_override": endpoint,
        "scheme": "https" if secure else "http",
        "force_virtual_addressing": boolean(options.get("virtual_hosted_style_request", "false")),
    }
    system = S3FileSystem(
        **_given(arguments),
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=3),
    )
    return Place(system, base, f"{scheme}://")


def _gcs(root: str, scheme: str, storage: Mapping[str, str]) -> Place:
    options = _options(storage, "google_")
    unusable = sorted(
        {"service_account", "service_account_path", "service_account_key", "application_credentials"} & set(options)
    )
    if unusable:
        raise ConfigError(
            f"{root}: storage.{unusable[0]} cannot be given to pyarrow's client of Google Cloud Storage",
            hint="name the key's file in the environment variable GOOGLE_APPLICATION_CREDENTIALS",
        )
    endpoint = urlsplit(options.get("base_url") or options.get("endpoint") or "")
    arguments = {
        "anonymous": boolean(options.get("skip_signature", "false")),
        "endpoint_override": endpoint.netloc,
        "scheme": endpoint.scheme,
        "retry_time_limit": timedelta(seconds=_REQUEST_SECONDS),
    }
    return Place(_class("GcsFileSystem", root)(**_given(arguments)), _bucket_and_prefix(root), f"{scheme}://")


def _azure(root: str, scheme: str, storage: Mapping[str, str]) -> Place:
    """``az://container/path``, with the account in ``storage.account_name``, or ``abfss://container@account.host/path``."""
    options = {key.removeprefix("storage_"): value for key, value in _options(storage, "azure_").items()}
    container, at, host = urlsplit(root).netloc.rpartition("@")
    account = host.split(".")[0] if at else options.get("account_name")
    if not account:
        raise ConfigError(f"{root}: the storage account is missing", hint="set storage.account_name")
    base = _bucket_and_prefix(root).replace(f"{container}@{host}", container, 1) if at else _bucket_and_prefix(root)
    endpoint = urlsplit(options.get("endpoint", ""))
    arguments = {
        "account_key": options.get("account_key") or options.get("access_key") or options.get("master_key"),
        "sas_token": options.get("sas_token") or options.get("sas_key"),
        "tenant_id": options.get("tenant_id") or options.get("authority_id"),
        "client_id": options.get("client_id"),
        "client_secret": options.get("client_secret"),
        "blob_storage_authority": endpoint.netloc,
        "dfs_storage_authority": endpoint.netloc,
        "blob_storage_scheme": endpoint.scheme,
        "dfs_storage_scheme": endpoint.scheme,
    }
    system = _class("AzureFileSystem", root)(account, **_given(arguments))
    if at:
        return Place(system, base, f"{scheme}://{container}@{host}", container=container)
    return Place(system, base, f"{scheme}://")


def _hdfs(root: str, scheme: str, storage: Mapping[str, str]) -> Place:
    """Lance itself opens no HDFS: tables are listed, not verified."""
    at = urlsplit(root)
    if not at.hostname:
        raise InvalidInput(f"{root}: the name node is missing")
    try:
        system = _class("HadoopFileSystem", root)(at.hostname, at.port or 8020, **_given({"user": storage.get("user")}))
    except OSError as error:
        if not any(library in str(error) for library in ("libjvm", "libhdfs")):
            raise
        missing = str(error).splitlines()[0]
        hint = "set JAVA_HOME, HADOOP_HOME and CLASSPATH"
        raise ConfigError(f"{root}: HDFS needs Hadoop's libhdfs and Java ({missing})", hint=hint) from error
    return Place(system, at.path.rstrip("/"), f"{scheme}://{at.netloc}", tree=True)


_STORES: dict[str, Callable[[str, str, Mapping[str, str]], Place]] = {
    "s3": _s3, "s3a": _s3, "s3n": _s3, "gs": _gcs, "gcs": _gcs, "az": _azure, "abfs": _azure, "abfss": _azure, "hdfs": _hdfs,
}  # fmt: skip


def _class(name: str, root: str) -> Any:
    import pyarrow.fs

    try:
        return getattr(pyarrow.fs, name)
    except (AttributeError, ImportError) as error:
        raise ConfigError(f"{root}: this pyarrow has no {name}", hint="install pyarrow from PyPI or conda-forge") from error


def _options(storage: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.lower().removeprefix(prefix): value for key, value in storage.items()}


def _bucket_and_prefix(root: str) -> str:
    base = root.partition("://")[2].strip("/")
    if not base:
        raise InvalidInput(f"{root}: the bucket is missing")
    return base


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value}


# What the AWS SDK inside pyarrow calls an error, found in the text since pyarrow raises a plain OSError.
_AWS_ERRORS: tuple[tuple[str, type[CatalogError]], ...] = (
    ("ACCESS_DENIED", PermissionDenied),
    ("INVALID_ACCESS_KEY_ID", Unauthenticated),
    ("SIGNATURE_DOES_NOT_MATCH", Unauthenticated),
    ("EXPIRED_TOKEN", Unauthenticated),
    ("INVALID_CLIENT_TOKEN_ID", Unauthenticated),
    ("MISSING_AUTHENTICATION_TOKEN", Unauthenticated),
    ("SLOW_DOWN", Throttled),
    ("THROTTLING", Throttled),
    ("NO_SUCH_BUCKET", ServiceUnavailable),
    ("NETWORK_CONNECTION", ServiceUnavailable),
    ("REQUEST_TIMEOUT", ServiceUnavailable),
    ("SERVICE_UNAVAILABLE", ServiceUnavailable),
)
_NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


@contextmanager
def translated(root: str) -> Iterator[None]:
    """The one place where the storage's own errors become ours: of what is done at ``root``."""
    try:
        yield
    except FileNotFoundError as error:
        hint = "an object store shows a prefix only once something is in it" if not is_local(root) else "make it, or mount it"
        raise ServiceUnavailable(f"{root}: the directory is not there", hint=hint) from error
    except NotADirectoryError as error:
        raise ServiceUnavailable(f"{root}: not a directory") from error
    except PermissionError as error:
        raise PermissionDenied(f"{root}: permission denied") from error
    except UnicodeError as error:
        raise InvalidInput(f"{root}: a name that is no text: {error.reason if hasattr(error, 'reason') else error}") from error
    except OSError as error:
        raise _named(error)(f"{root}: {error}") from error
    except ValueError as error:
        raise InvalidInput(f"{root}: {error}") from error


def _named(error: OSError) -> type[CatalogError]:
    if error.errno in _NO_NAME:
        return InvalidInput
    text = str(error)
    named = next((kind for code, kind in _AWS_ERRORS if code in text), None)
    if named is None and "HTTP status 403" in text:
        return PermissionDenied
    return named or (ServiceUnavailable if error.errno in (errno.EIO, errno.ESTALE, errno.ETIMEDOUT) else Internal)
