"""Storage directories: file systems and S3 by ``pyarrow.fs``, Google Cloud Storage and Azure by obstore, with Lance's storage options.

The keys of the options may have Lance's prefixes (``aws_``, ``azure_storage_``, ``azure_``, ``google_``).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from federator.connector.call_deadline import call_seconds, run_with_deadline
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
from federator.connector.object_store import ObjectStoreFiles
from federator.connector.options import parse_boolean
from federator.connector.storage_options import option_name
from federator.model import encode_key, local_path
from federator.runtime.text import first_line

T = TypeVar("T")

_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 10, 30, 3
# A store lists some thousands of directories per second.
_LISTING_SECONDS = 600.0
_S3_SCHEMES = ("s3", "s3a", "s3n")
_EMULATOR_ACCOUNT = "devstoreaccount1"
# A removal sends two requests, which must end within the time that leases give a write.
_WRITE_CONNECT_SECONDS, _WRITE_REQUEST_SECONDS = 5, 20


@dataclass(frozen=True)
class StorageDirectory:
    """A directory: a file system of ``pyarrow.fs`` (or ObjectStoreFiles) and the path within it.

    ``prefix`` before such a path makes a location. ``container`` is the beginning of all paths that a location does not repeat,
    because it is in ``prefix`` (abfss). With ``has_empty_directories``, a directory can exist without files. ``writes`` says whether
    calls may write: they then end sooner.
    """

    filesystem: Any
    path: str
    prefix: str
    container: str = ""
    local: bool = False
    has_empty_directories: bool = False
    writes: bool = False

    def run(self, call: Callable[[Any], T], *, lists: bool = False) -> T:
        """Return the result of a call with the file system. ``lists``: it lists a directory, which may take many requests.

        Raise CallExpired if the store does not complete it in time: the clients of stores wait as long as bytes arrive.
        """
        if self.local:
            return call(self.filesystem)
        seconds = _LISTING_SECONDS if lists else call_seconds(*_timeouts(writes=self.writes), writes=self.writes)
        return run_with_deadline(f"{self.prefix}{self.path}", seconds, lambda: call(self.filesystem))

    def location_of(self, *names: str) -> str:
        """Return the location of an object inside, as Lance opens it."""
        path = "/".join((self.path, *names)).removeprefix(self.container)
        return self.prefix + encode_key(path)


def open_storage(root: str, storage: Mapping[str, str], *, writes: bool = False) -> StorageDirectory:
    """Open a storage root. With ``writes``, requests to object stores are not repeated, and end sooner.

    Raise ConfigError if a library or a setting is missing, InvalidInput or Unsupported if the root is not a directory.
    """
    if is_local_root(root):
        return _open_local(root)
    scheme = root.partition("://")[0].lower()
    if scheme in _S3_SCHEMES:
        directory = _open_s3(root, scheme, storage, writes=writes)
    elif scheme in _OPENERS:
        directory = _OPENERS[scheme](root, storage, writes=writes)
    else:
        schemes = ", ".join((*_S3_SCHEMES, *_OPENERS))
        raise Unsupported(
            f"{root}: storage with the scheme {scheme}:// cannot be listed", hint=f"use a path, or one of {schemes}"
        )
    return replace(directory, writes=writes)


def _timeouts(*, writes: bool) -> tuple[float, float]:
    """Return the seconds in which a connection must be open, and those in which a response must begin."""
    return (_WRITE_CONNECT_SECONDS, _WRITE_REQUEST_SECONDS) if writes else (_CONNECT_SECONDS, _REQUEST_SECONDS)


def is_local_root(root: str) -> bool:
    return "://" not in root or root.lower().startswith("file:")


def _open_local(root: str) -> StorageDirectory:
    from pyarrow.fs import LocalFileSystem

    # By the Lance spec, a relative path starts at the working directory of this process.
    path = local_path(root) if root.lower().startswith("file:") else None
    base = FilePath(path or root).absolute().as_posix()
    return StorageDirectory(LocalFileSystem(), base.rstrip("/"), "file://", local=True, has_empty_directories=True)


def _open_s3(root: str, scheme: str, storage: Mapping[str, str], *, writes: bool) -> StorageDirectory:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    base = _bucket_and_prefix(root)
    options = _strip_prefix(storage, "aws_")
    endpoint = options.get("endpoint") or options.get("endpoint_url")
    region = options.get("region") or options.get("default_region")
    if not region and not endpoint:
        region = resolve_s3_region(base.split("/")[0])
    secure = not parse_boolean(options.get("allow_http", "false")) or bool(endpoint and endpoint.startswith("https:"))
    arguments = {
        "access_key": options.get("access_key_id"),
        "secret_key": options.get("secret_access_key"),
        "session_token": options.get("session_token") or options.get("token"),
        "anonymous": parse_boolean(options.get("skip_signature", "false")),
        "region": region,
        "endpoint_override": endpoint,
        "scheme": "https" if secure else "http",
        "force_virtual_addressing": parse_boolean(options.get("virtual_hosted_style_request", "false")),
    }
    connect_timeout, request_timeout = _timeouts(writes=writes)
    system = S3FileSystem(
        **_without_empty(arguments),
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1 if writes else _ATTEMPTS),
        # A small file is written by one request, instead of three.
        allow_delayed_open=True,
    )
    return StorageDirectory(system, base, f"{scheme}://")


def _open_gcs(root: str, storage: Mapping[str, str], *, writes: bool) -> StorageDirectory:
    if "endpoint" in _strip_prefix(storage, "google_"):
        raise ConfigError(f"{root}: Lance knows no storage.endpoint for Google Cloud Storage", hint="set storage.base_url")
    base = _bucket_and_prefix(root)
    bucket = base.split("/")[0]
    files = _object_store(f"gs://{bucket}", bucket, storage, writes=writes)
    return StorageDirectory(files, base, f"{root.partition('://')[0].lower()}://")


def _open_azure(root: str, storage: Mapping[str, str], *, writes: bool) -> StorageDirectory:
    """Open ``az://container/path``, with the account in ``storage.account_name``, or ``abfss://container@account.host/path``."""
    scheme, authority, base = root.partition("://")[0].lower(), urlsplit(root).netloc, _bucket_and_prefix(root)
    container, separator, _ = authority.rpartition("@")
    options = dict(storage)
    names = {option_name(key): text for key, text in storage.items()}
    if not separator and "account_name" not in names:
        if not parse_boolean(names.get("use_emulator", "false")):
            raise ConfigError(f"{root}: the storage account is missing", hint="set storage.account_name")
        options["account_name"] = _EMULATOR_ACCOUNT
    bucket = container if separator else authority
    files = _object_store(f"{scheme}://{authority}", bucket, options, writes=writes)
    base = bucket + base.removeprefix(authority)
    return StorageDirectory(
        files, base, f"{scheme}://{authority}" if separator else f"{scheme}://", container=bucket if separator else ""
    )


def _object_store(url: str, bucket: str, options: Mapping[str, str], *, writes: bool) -> ObjectStoreFiles:
    connect_timeout, request_timeout = _timeouts(writes=writes)
    attempts = 1 if writes else _ATTEMPTS
    return ObjectStoreFiles(url, bucket, options, connect_timeout=connect_timeout, timeout=request_timeout, attempts=attempts)


def _open_hdfs(root: str, storage: Mapping[str, str], *, writes: bool) -> StorageDirectory:  # noqa: ARG001
    # Lance cannot open HDFS locations: their tables are listed but not verified.
    parts = urlsplit(root)
    if not parts.hostname:
        raise InvalidInput(f"{root}: the name node is missing")
    try:
        system = _filesystem_class("HadoopFileSystem", root)(
            parts.hostname, parts.port or 8020, **_without_empty({"user": storage.get("user")})
        )
    except OSError as error:
        if not any(library in str(error) for library in ("libjvm", "libhdfs")):
            raise
        missing = first_line(error)
        hint = "set JAVA_HOME, HADOOP_HOME and CLASSPATH"
        raise ConfigError(f"{root}: HDFS needs Hadoop's libhdfs and Java ({missing})", hint=hint) from error
    return StorageDirectory(system, parts.path.rstrip("/"), f"hdfs://{parts.netloc}", has_empty_directories=True)


class _Opener(Protocol):
    def __call__(self, root: str, storage: Mapping[str, str], *, writes: bool) -> StorageDirectory: ...


_OPENERS: dict[str, _Opener] = {
    "gs": _open_gcs, "gcs": _open_gcs, "az": _open_azure, "abfs": _open_azure, "abfss": _open_azure, "hdfs": _open_hdfs,
}  # fmt: skip


def _filesystem_class(name: str, root: str) -> Any:
    import pyarrow.fs

    try:
        return getattr(pyarrow.fs, name)
    except (AttributeError, ImportError) as error:
        raise ConfigError(f"{root}: this pyarrow has no {name}", hint="install pyarrow from PyPI or conda-forge") from error


def _strip_prefix(storage: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.lower().removeprefix(prefix): value for key, value in storage.items()}


def _bucket_and_prefix(root: str) -> str:
    base = root.partition("://")[2].strip("/")
    if not base:
        raise InvalidInput(f"{root}: the bucket is missing")
    return base


def _without_empty(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value}


# Error names of the AWS SDK inside pyarrow. They are matched in the text, because pyarrow raises a plain OSError.
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
_AWS_TEXT = re.compile(r"AWS Error (?P<code>.+?) during (?P<call>\w+) operation: (?P<text>.*)", re.DOTALL)
_STORE_HINTS: dict[type[CatalogError], str] = {
    PermissionDenied: "check the permissions of the source's storage credentials",
    Unauthenticated: "check the source's storage credentials",
    ServiceUnavailable: "check the endpoint and the state of the store",
}
# Errors for a name that the file system cannot have.
_NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


@contextmanager
def translate_storage_errors(root: str) -> Iterator[None]:
    """Translate errors of the storage at ``root`` into CatalogErrors."""
    try:
        yield
    except FileNotFoundError as error:
        hint = (
            "in an object store, a prefix without objects does not exist" if not is_local_root(root) else "create or mount it"
        )
        raise ServiceUnavailable(f"{root}: the directory does not exist", hint=hint) from error
    except NotADirectoryError as error:
        raise ServiceUnavailable(f"{root}: not a directory") from error
    except PermissionError as error:
        raise PermissionDenied(f"{root}: permission denied") from error
    except UnicodeError as error:
        raise InvalidInput(f"{root}: invalid text in a name: {error.reason if hasattr(error, 'reason') else error}") from error
    except OSError as error:
        kind = _error_class(error)
        raise kind(f"{root}: {_describe_store_error(error)}", hint=_STORE_HINTS.get(kind)) from error
    except ValueError as error:
        raise InvalidInput(f"{root}: {error}") from error


def _describe_store_error(error: OSError) -> str:
    """Return the text of an error without the words of pyarrow's AWS client."""
    aws = _AWS_TEXT.search(str(error))
    if aws is None:
        return str(error)
    if aws["code"] == "NETWORK_CONNECTION":
        return f"the store cannot be reached ({aws['text'].rpartition('Details: ')[2]})"
    return f"the store responded to {aws['call']} with {aws['code']}: {aws['text']}"


def _error_class(error: OSError) -> type[CatalogError]:
    if error.errno in _NO_NAME:
        return InvalidInput
    text = str(error)
    named = next((kind for code, kind in _AWS_ERRORS if code in text), None)
    if named is None and "HTTP status 403" in text:
        return PermissionDenied
    return named or (ServiceUnavailable if error.errno in (errno.EIO, errno.ESTALE, errno.ETIMEDOUT) else Internal)
