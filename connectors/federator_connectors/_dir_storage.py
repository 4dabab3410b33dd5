"""One directory of Lance tables on a local file system or in an S3 bucket, through ``pyarrow.fs``."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import quote

from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
    boolean,
)
from federator.model import local_path

# A probe of many paths is one call that the file system works off in parallel.
_PROBES = 1000
# Lance reads a location as a URL: it decodes percent signs, cuts at "?" and "#", turns a backslash into a slash, and drops
# control characters and a last space. Everything else stays readable, since other catalogs take a location as it stands.
_UNSAFE = re.compile(r"[%?#\\\x00-\x1f\x7f]| $")
_CONNECT_SECONDS, _REQUEST_SECONDS = 10, 30


class Directory:
    """The directory at ``root``: an absolute or relative path, a ``file:`` URI or ``s3://bucket/prefix``.

    ``storage`` are Lance's own storage options (``region``, ``aws_region``, ``endpoint``, ...). Raises CatalogError only.
    """

    def __init__(self, root: str, storage: Mapping[str, str]) -> None:
        with _translated(root):
            self._at = _local(root) if _is_local(root) else _s3(root, storage)
        self.root = root

    def location(self, *names: str) -> str:
        """The location of something inside, as Lance opens it."""
        path = "/".join((self._at.base, *names))
        return self._at.prefix + _UNSAFE.sub(lambda match: quote(match[0], safe=""), path)

    def subdirectories(self) -> tuple[list[str], int]:
        """The names of the directories inside, and how many others have a name that is no text (not UTF-8).

        A directory that is not there is ServiceUnavailable, never an empty list.
        """
        from pyarrow.fs import FileSelector, FileType

        with _translated(self.root):
            found = self._at.system.get_file_info(FileSelector(self._at.base, recursive=False))
        names = [_name(info) for info in found if info.type == FileType.Directory]
        return [name for name in names if name is not None], names.count(None)

    def holding(self, names: Sequence[str], file: str) -> set[str]:
        """Those of the subdirectories ``names`` that hold something called ``file``."""
        return {name for name, kind in self._kinds(names, f"/{file}") if kind is not None}

    def among(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that are subdirectories, in order.

        Where none is, the directory itself was seen to be there; of an object store, where a prefix exists only as long as
        something is in it, the bucket.
        """
        found = [name for name, kind in self._kinds(names, "") if kind == "Directory"]
        if not found:
            self._present()
        return found

    def _present(self) -> None:
        from pyarrow.fs import FileType

        with _translated(self.root):
            info = self._at.system.get_file_info(self._at.base if self._at.local else self._at.base.split("/")[0])
            if info.type == FileType.NotFound:
                raise FileNotFoundError(self.root)

    def _kinds(self, names: Sequence[str], below: str) -> Iterator[tuple[str, str | None]]:
        from pyarrow.fs import FileType

        for start in range(0, len(names), _PROBES):
            chunk = names[start : start + _PROBES]
            with _translated(self.root):
                infos = self._at.system.get_file_info([f"{self._at.base}/{name}{below}" for name in chunk])
            for name, info in zip(chunk, infos, strict=True):
                yield name, None if info.type == FileType.NotFound else info.type.name

    def make(self, name: str) -> bool:
        """Makes the subdirectory ``name``; False if it is there already. Decided by the file system itself where it can."""
        with _translated(self.root):
            if not self._at.local:
                # An object store has no directories: the first object makes one.
                return not any(kind for _, kind in self._kinds([name], ""))
            try:
                FilePath(self._at.base, name).mkdir()
            except FileExistsError:
                return False
        return True

    def mark(self, path: str) -> None:
        """Writes an empty file; harmless if it is there."""
        with _translated(self.root), self._at.system.open_output_stream(f"{self._at.base}/{path}"):
            pass

    def unmark(self, path: str) -> None:
        """Removes a file that ``mark`` wrote."""
        with _translated(self.root):
            self._at.system.delete_file(f"{self._at.base}/{path}")


@dataclass(frozen=True)
class _Place:
    """A file system of ``pyarrow.fs``, the path within it, and what turns such a path into a location."""

    system: Any
    base: str
    prefix: str
    local: bool = False


def _name(info: Any) -> str | None:
    try:
        return str(info.base_name)
    except UnicodeDecodeError:
        return None


def _is_local(root: str) -> bool:
    return "://" not in root or root.lower().startswith("file:")


def _local(root: str) -> _Place:
    from pyarrow.fs import LocalFileSystem

    # A relative path means the directory that this process runs in, by the Lance spec.
    path = local_path(root) if root.lower().startswith("file:") else None
    base = FilePath(path or root).absolute().as_posix()
    return _Place(LocalFileSystem(), base.rstrip("/"), "file://", local=True)


def _s3(root: str, storage: Mapping[str, str]) -> _Place:
    scheme, _, rest = root.partition("://")
    if scheme.lower() not in ("s3", "s3a", "s3n"):
        raise Unsupported(f"{root}: only local directories and s3:// are read", hint="dir.path = /path or s3://bucket/prefix")
    base = rest.strip("/")
    if not base:
        raise InvalidInput(f"{root}: the bucket is missing")
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    options = {key.lower().removeprefix("aws_"): value for key, value in storage.items()}
    endpoint = options.get("endpoint") or options.get("endpoint_url")
    region = options.get("region") or options.get("default_region")
    if not region and not endpoint:
        region = resolve_s3_region(base.split("/")[0])
    secure = not boolean(options.get("allow_http", "false")) or bool(endpoint and endpoint.startswith("https:"))
    arguments: dict[str, Any] = {
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
        **{key: value for key, value in arguments.items() if value},
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=3),
    )
    return _Place(system, base, f"{scheme.lower()}://")


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
def _translated(root: str) -> Iterator[None]:
    """The one place where the storage's own errors become ours."""
    try:
        yield
    except FileNotFoundError as error:
        hint = "an object store shows a prefix only once something is in it" if not _is_local(root) else "make it, or mount it"
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
