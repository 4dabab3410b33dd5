"""Access to one directory on a file system or in an object store, with ``pyarrow.fs``."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from federator.connector import CatalogError, PermissionDenied, ServiceUnavailable
from federator.connector.fan_out import FanOut
from federator.connector.operation import require_permission
from federator.connector.storage import StorageDirectory, open_storage, translate_storage_errors
from federator.model.text import is_storable

# Paths per call: the file system checks the paths of one call in parallel.
_PATHS_PER_CALL = 1000
_CALLS_AT_ONCE = 16


class SubdirectoryListing(NamedTuple):
    """The subdirectories of a directory: their names, and the number of those whose names are not UTF-8.

    ``unknown`` are links that may lead to a directory, by name, with the reason why that is not known.
    """

    names: list[str]
    unnamed: int
    unknown: dict[str, CatalogError]


class Directory:
    """The directory at ``root``: an absolute or relative path, or a URI that ``open_storage`` supports.

    ``storage`` are Lance's own storage options (``region``, ``aws_region``, ``endpoint``, ...). All methods raise CatalogError only.
    """

    def __init__(self, root: str, storage: Mapping[str, str]) -> None:
        with translate_storage_errors(root):
            self._storage = open_storage(root, storage)
        self.root = root
        self._options = dict(storage)

    @cached_property
    def _writable(self) -> StorageDirectory:
        return open_storage(self.root, self._options, writes=True)

    def location_of(self, *names: str) -> str:
        """Return the location of an object inside the directory, in the form that Lance opens."""
        return self._storage.location_of(*names)

    def list_subdirectories(self) -> SubdirectoryListing:
        """List the subdirectories. Raise ServiceUnavailable if the directory itself is absent; never return an empty list for it."""
        if self._storage.local:
            return self._list_local_subdirectories()
        from pyarrow.fs import FileSelector, FileType

        with translate_storage_errors(self.root):
            selector = FileSelector(self._storage.path, recursive=False)
            infos = self._storage.run(lambda files: files.get_file_info(selector), lists=True)
        names = [_name(info) for info in infos if info.type == FileType.Directory]
        return SubdirectoryListing([name for name in names if name is not None], names.count(None), {})

    def _list_local_subdirectories(self) -> SubdirectoryListing:
        names: list[str] = []
        unknown: dict[str, CatalogError] = {}
        unnamed = 0
        with translate_storage_errors(self.root), os.scandir(self._storage.path) as entries:
            for entry in entries:
                try:
                    is_directory = entry.is_dir()
                except OSError as error:
                    is_directory, unknown[entry.name] = True, self._unknown_error(entry.name, error)
                # A byte that is not UTF-8 is a lone surrogate here.
                if is_directory and not is_storable(entry.name):
                    unnamed += 1
                    unknown.pop(entry.name, None)
                elif is_directory and entry.name not in unknown:
                    names.append(entry.name)
        return SubdirectoryListing(names, unnamed, unknown)

    def filter_containing(self, names: Sequence[str], file: str) -> set[str]:
        """Return those subdirectories of ``names`` that contain an entry called ``file``."""
        return {name for name, kind in self._iter_known_kinds(names, f"/{file}") if kind is not None}

    def check_containing(self, names: Sequence[str], file: str) -> dict[str, bool | CatalogError]:
        """Return for each subdirectory whether it contains an entry called ``file``, or the error if it may not be read."""
        kinds = self._iter_kinds(names, f"/{file}")
        return {name: kind if isinstance(kind, CatalogError) else kind is not None for name, kind in kinds}

    def filter_existing(self, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` that are subdirectories, in order.

        If there are none, raise CatalogError unless the directory itself exists. In an object store an empty prefix does not exist,
        so the bucket is checked instead.
        """
        existing = [name for name, kind in self._iter_known_kinds(names, "") if kind == "Directory"]
        if not existing:
            self._require_exists()
        return existing

    def _require_exists(self) -> None:
        from pyarrow.fs import FileType

        with translate_storage_errors(self.root):
            path = self._storage.path if self._storage.has_empty_directories else self._storage.path.split("/")[0]
            info = self._storage.run(lambda files: files.get_file_info(path))
            if info.type == FileType.NotFound:
                raise FileNotFoundError(self.root)

    def _iter_known_kinds(self, names: Sequence[str], suffix: str) -> Iterator[tuple[str, str | None]]:
        for name, kind in self._iter_kinds(names, suffix):
            if isinstance(kind, CatalogError):
                raise kind
            yield name, kind

    def _iter_kinds(self, names: Sequence[str], suffix: str) -> Iterator[tuple[str, str | CatalogError | None]]:
        """Yield what each name with the suffix is: the name of a ``FileType``, None if it is absent, or why that is unknown."""
        if self._storage.local:
            yield from ((name, self._local_kind(name, suffix)) for name in names)
            return
        for start in range(0, len(names), _PATHS_PER_CALL):
            chunk = names[start : start + _PATHS_PER_CALL]
            try:
                yield from zip(chunk, self._stored_kinds(chunk, suffix), strict=True)
            except PermissionDenied:
                # The call fails as a whole if one of its paths is denied: which of them are must be asked one by one.
                one_by_one = FanOut(_CALLS_AT_ONCE, "dir").map_with_errors(
                    lambda name: self._stored_kinds([name], suffix)[0], chunk
                )
                for name, kind in one_by_one:
                    if isinstance(kind, CatalogError) and not isinstance(kind, PermissionDenied):
                        raise kind from None
                    yield name, kind

    def _stored_kinds(self, names: Sequence[str], suffix: str) -> list[str | None]:
        """Return what each name with the suffix is in an object store. Raise PermissionDenied if one of them may not be read."""
        from pyarrow.fs import FileType

        subject = self.root if len(names) > 1 else f"{self.root.rstrip('/')}/{names[0]}"
        with translate_storage_errors(subject):
            paths = [f"{self._storage.path}/{name}{suffix}" for name in names]
            infos = self._storage.run(lambda files: files.get_file_info(paths))
        return [None if info.type == FileType.NotFound else info.type.name for info in infos]

    def _local_kind(self, name: str, suffix: str) -> str | CatalogError | None:
        # pyarrow reports a link that nobody can follow as absent.
        try:
            mode = FilePath(f"{self._storage.path}/{name}{suffix}").stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return self._unknown_error(name, error)
        return "Directory" if stat.S_ISDIR(mode) else "File"

    def _unknown_error(self, name: str, error: OSError) -> CatalogError:
        kind = PermissionDenied if isinstance(error, PermissionError) else ServiceUnavailable
        return kind(
            f"{self.root.rstrip('/')}/{name}: {error.strerror}; let the service read it and what it links to, or remove it"
        )

    def create(self, name: str) -> bool:
        """Create the subdirectory ``name``. Return False if it exists. On a local file system the check is atomic."""
        require_permission()
        with translate_storage_errors(self.root):
            if not self._storage.local:
                # An object store has no directories; the first object creates one. HDFS has no atomic creation.
                return not any(kind for _, kind in self._iter_kinds([name], ""))
            try:
                FilePath(self._storage.path, name).mkdir()
            except FileExistsError:
                return False
        return True

    def create_marker(self, subdirectory: str, file: str) -> None:
        """Write an empty file in a subdirectory. An existing one is replaced. Raise PermissionDenied for a symbolic link."""
        require_permission()
        with self._opened_directory(subdirectory) as directory, translate_storage_errors(self.root):
            if directory is None:
                # Closing the stream writes the object.
                path = f"{self._storage.path}/{subdirectory}/{file}"
                self._writable.run(lambda files: files.open_output_stream(path).close())
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            os.close(self._open(file, flags, directory, f"{subdirectory}/{file}"))

    def remove_marker(self, subdirectory: str, file: str) -> None:
        """Remove a file that ``create_marker`` wrote. Raise PermissionDenied for a symbolic link."""
        require_permission()
        with self._opened_directory(subdirectory) as directory, translate_storage_errors(self.root):
            if directory is None:
                path = f"{self._storage.path}/{subdirectory}/{file}"
                self._writable.run(lambda files: files.delete_file(path))
            elif stat.S_ISLNK(os.stat(file, dir_fd=directory, follow_symlinks=False).st_mode):
                raise self._link_error(f"{subdirectory}/{file}")
            else:
                # It would remove a link itself, if one is there now.
                os.unlink(file, dir_fd=directory)

    @contextmanager
    def _opened_directory(self, subdirectory: str) -> Iterator[int | None]:
        """Open a local subdirectory, which its owner may replace by a link at any time. None in other storage.

        What a link leads to may be the table of another catalog, which a marker would hide or show there.
        """
        if not self._storage.local:
            yield None
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = self._open(f"{self._storage.path}/{subdirectory}", flags, None, subdirectory)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, path: str, flags: int, directory: int | None, name: str) -> int:
        with translate_storage_errors(self.root):
            try:
                return os.open(path, flags, 0o666, dir_fd=directory)
            except OSError as error:
                # With O_DIRECTORY, a link is reported as what is no directory.
                is_link = error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and FilePath(path).is_symlink())
                if is_link:
                    raise self._link_error(name) from error
                raise

    def _link_error(self, name: str) -> PermissionDenied:
        return PermissionDenied(
            f"{self.root}: {name} is a symbolic link, and nothing is written through it", hint="change the link itself"
        )


def _name(info: Any) -> str | None:
    try:
        return str(info.base_name)
    except UnicodeDecodeError:
        return None
