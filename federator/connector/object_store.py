"""Directories in Google Cloud Storage and Azure, by obstore: Lance's own client of stores, with Lance's own storage options.

pyarrow's client of Google Cloud Storage lists only directories that have an object of their own, which Lance does not write.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from federator.connector.errors import (
    CatalogError,
    ConfigError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
)
from federator.connector.storage_options import HTTP_OPTIONS, option_name
from federator.runtime.text import first_line

_REQUESTS_AT_ONCE = 64
# An object store has no directories: the first object creates one.
_PLACEHOLDER = ".directory"
# Metadata of the object of a directory, in Azure's hierarchical namespaces and where Hadoop wrote.
_FOLDER = "hdi_isfolder"


class ObjectStoreFiles:
    """The calls of ``pyarrow.fs.FileSystem`` that directories need, on one bucket or container.

    Paths begin with the name of the bucket. All methods raise CatalogError, and FileNotFoundError for what is absent.
    """

    def __init__(
        self, url: str, bucket: str, options: Mapping[str, str], *, connect_timeout: float, timeout: float, attempts: int
    ) -> None:
        """Open a bucket or container, ``{scheme}://{authority}``; no request is made.

        Raise ConfigError if obstore is not installed or the options do not open it.
        """
        self._url = url
        self._bucket = bucket
        client = {name: text for key, text in options.items() if (name := option_name(key)) in HTTP_OPTIONS}
        # Limits of this process, in place of those of Lance's options.
        client |= {"connect_timeout": f"{connect_timeout:g}s", "timeout": f"{timeout:g}s"}
        config = {key: text for key, text in options.items() if option_name(key) not in HTTP_OPTIONS}
        retries = {"max_retries": attempts - 1, "retry_timeout": timedelta(seconds=timeout)}
        self._store = _open_store(url, config, client, retries)

    def get_file_info(self, subject: Any) -> Any:
        """Return what pyarrow does for a path, for paths, or for a selector of a directory's own entries."""
        if isinstance(subject, str):
            return self.get_file_info([subject])[0]
        if isinstance(subject, Sequence):
            return asyncio.run(self._get_infos(subject))
        return self._list(subject.base_dir)

    def open_output_stream(self, path: str) -> ObjectStoreFiles.Output:
        """Return a stream that writes an empty object when it is closed."""
        return ObjectStoreFiles.Output(self, path)

    def delete_file(self, path: str) -> None:
        import obstore

        with self._translated(path):
            obstore.delete(self._store, self._key(path))

    def create_dir(self, path: str) -> None:
        self._put_empty(f"{path}/{_PLACEHOLDER}")

    def delete_dir(self, path: str) -> None:
        """Remove a directory with all that it contains."""
        import obstore

        with self._translated(path):
            for objects in obstore.list(self._store, self._key(path)):
                obstore.delete(self._store, [entry["path"] for entry in objects])

    class Output:
        """An object that ``close`` writes. It has no content."""

        def __init__(self, files: ObjectStoreFiles, path: str) -> None:
            self._files = files
            self._path = path

        def close(self) -> None:
            self._files._put_empty(self._path)

    def _put_empty(self, path: str) -> None:
        import obstore

        with self._translated(path):
            obstore.put(self._store, self._key(path), b"")

    def _key(self, path: str) -> str:
        return path.removeprefix(self._bucket).strip("/")

    def _list(self, path: str) -> list[Any]:
        import obstore
        from pyarrow.fs import FileInfo, FileType

        key = self._key(path)
        with self._translated(path):
            listing = obstore.list_with_delimiter(self._store, key or None)
        if key and not listing["common_prefixes"] and not listing["objects"]:
            raise FileNotFoundError(path)
        directories = [FileInfo(f"{self._bucket}/{name}", FileType.Directory) for name in listing["common_prefixes"]]
        # An object may stand for the directory itself: its name is that of the directory.
        files = [entry["path"] for entry in listing["objects"] if entry["path"].rstrip("/") != key]
        return [*directories, *(FileInfo(f"{self._bucket}/{name}", FileType.File) for name in files)]

    async def _get_infos(self, paths: Sequence[str]) -> list[Any]:
        slots = asyncio.Semaphore(_REQUESTS_AT_ONCE)
        return await asyncio.gather(*(self._get_info(path, slots) for path in paths))

    async def _get_info(self, path: str, slots: asyncio.Semaphore) -> Any:
        import obstore
        from pyarrow.fs import FileInfo, FileType

        key = self._key(path)
        async with slots:
            with self._translated(path):
                listing = await obstore.list_with_delimiter_async(self._store, key or None)
            if not key or listing["common_prefixes"] or listing["objects"]:
                return FileInfo(path, FileType.Directory)
            attributes = await self._find_attributes(path)
        if attributes is None:
            return FileInfo(path, FileType.NotFound)
        return FileInfo(path, FileType.Directory if attributes.get(_FOLDER) == "true" else FileType.File)

    async def _find_attributes(self, path: str) -> Mapping[str, str] | None:
        import obstore

        try:
            with self._translated(path):
                return (await obstore.get_async(self._store, self._key(path), options={"head": True})).attributes
        except FileNotFoundError:
            return None

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except BaseError as error:
            key = self._key(path)
            raise translate_error(f"{self._url}/{key}" if key else self._url, error) from error


def _open_store(url: str, config: dict[str, str], client: Mapping[str, str], retries: Mapping[str, Any]) -> Any:
    try:
        from obstore.exceptions import BaseError, UnknownConfigurationKeyError
        from obstore.store import from_url
    except ImportError:
        extra = "gcs" if url.startswith("gs:") else "azure"
        raise ConfigError(
            f"{url} is listed with obstore, which is not installed", hint=f"pip install 'lance-federator[{extra}]'"
        ) from None
    while True:
        try:
            return from_url(url, config=config, client_options=client, retry_config=retries)  # type: ignore[call-overload]
        except UnknownConfigurationKeyError as error:
            # Lance ignores options that are of no use to a store.
            unknown = re.search(r"'(.+?)'", str(error))
            if unknown is None or config.pop(unknown[1], None) is None:
                raise ConfigError(f"{url}: {first_line(error)}") from error
        except (BaseError, ValueError) as error:
            raise ConfigError(f"{url}: {first_line(error)}", hint="check the source's storage options") from error


_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(.+?)</Code>")
_STATUS_ERRORS: dict[int, type[CatalogError]] = {
    400: InvalidInput, 401: Unauthenticated, 403: PermissionDenied, 404: ServiceUnavailable, 429: Throttled, 503: Throttled,
}  # fmt: skip
# Azure refuses a wrong key or an expired token with 403.
_SIGN_IN_CODES = ("AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation")
_HINTS: dict[type[CatalogError], str] = {
    PermissionDenied: "check the source's storage credentials and their permissions",
    Unauthenticated: "check the source's storage credentials",
    ServiceUnavailable: "check the endpoint, the name of the bucket or container, and the state of the store",
}


def translate_error(location: str, error: Exception) -> CatalogError:
    """Return the CatalogError for an error of obstore, whose text is the only place that has the status and the store's code."""
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is None:
        kind: type[CatalogError] = ServiceUnavailable if "HTTP error" in text else Internal
        found = "the store cannot be reached" if kind is ServiceUnavailable else first_line(error)
    else:
        number = int(status[1])
        kind = _STATUS_ERRORS.get(number, ServiceUnavailable if number >= 500 else Internal)
        found = f"the store responded with HTTP {number}" + (f" {code[1]}" if code else "")
    if (code and code[1] in _SIGN_IN_CODES) or "token request" in text:
        kind = Unauthenticated if status else kind
    return kind(f"{location}: {found}", hint=_HINTS.get(kind))
