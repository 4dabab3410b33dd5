"""Access to one directory on a file system or in an object store, with ``pyarrow.fs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from federator.connector import PermissionDenied
from federator.connector.operation import require_permission
from federator.connector.storage import open_storage, translate_storage_errors

# Paths per call: the file system checks the paths of one call in parallel.
_PATHS_PER_CALL = 1000


class Directory:
    """The directory at ``root``: an absolute or relative path, or a URI that ``open_storage`` supports.

    ``storage`` are Lance's own storage options (``region``, ``aws_region``, ``endpoint``, ...). All methods raise CatalogError only.
    """

    def __init__(self, root: str, storage: Mapping[str, str]) -> None:
        with translate_storage_errors(root):
            self._storage = open_storage(root, storage)
        self.root = root

    def location_of(self, *names: str) -> str:
        """Return the location of an object inside the directory, in the form that Lance opens."""
        return self._storage.location_of(*names)

    def list_subdirectories(self) -> tuple[list[str], int]:
        """Return the names of the subdirectories, and the number of subdirectories whose names are not UTF-8.

        Raise ServiceUnavailable if the directory itself is absent; never return an empty list for it.
        """
        from pyarrow.fs import FileSelector, FileType

        with translate_storage_errors(self.root):
            infos = self._storage.filesystem.get_file_info(FileSelector(self._storage.path, recursive=False))
        names = [_name(info) for info in infos if info.type == FileType.Directory]
        return [name for name in names if name is not None], names.count(None)

    def filter_containing(self, names: Sequence[str], file: str) -> set[str]:
        """Return those subdirectories of ``names`` that contain an entry called ``file``."""
        return {name for name, kind in self._iter_kinds(names, f"/{file}") if kind is not None}

    def filter_existing(self, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` that are subdirectories, in order.

        If there are none, raise CatalogError unless the directory itself exists. In an object store an empty prefix does not exist,
        so the bucket is checked instead.
        """
        existing = [name for name, kind in self._iter_kinds(names, "") if kind == "Directory"]
        if not existing:
            self._require_exists()
        return existing

    def _require_exists(self) -> None:
        from pyarrow.fs import FileType

        with translate_storage_errors(self.root):
            info = self._storage.filesystem.get_file_info(
                self._storage.path if self._storage.has_empty_directories else self._storage.path.split("/")[0]
            )
            if info.type == FileType.NotFound:
                raise FileNotFoundError(self.root)

    def _iter_kinds(self, names: Sequence[str], suffix: str) -> Iterator[tuple[str, str | None]]:
        from pyarrow.fs import FileType

        for start in range(0, len(names), _PATHS_PER_CALL):
            chunk = names[start : start + _PATHS_PER_CALL]
            with translate_storage_errors(self.root):
                infos = self._storage.filesystem.get_file_info([f"{self._storage.path}/{name}{suffix}" for name in chunk])
            for name, info in zip(chunk, infos, strict=True):
                yield name, None if info.type == FileType.NotFound else info.type.name

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
        self._require_own(subdirectory, file)
        path = f"{self._storage.path}/{subdirectory}/{file}"
        with translate_storage_errors(self.root), self._storage.filesystem.open_output_stream(path):
            pass

    def remove_marker(self, subdirectory: str, file: str) -> None:
        """Remove a file that ``create_marker`` wrote. Raise PermissionDenied for a symbolic link."""
        require_permission()
        self._require_own(subdirectory, file)
        with translate_storage_errors(self.root):
            self._storage.filesystem.delete_file(f"{self._storage.path}/{subdirectory}/{file}")

    def _require_own(self, subdirectory: str, file: str) -> None:
        # What a link leads to may be the table of another catalog, which the marker would hide or show there.
        for name in (subdirectory, f"{subdirectory}/{file}") if self._storage.local else ():
            if FilePath(self._storage.path, name).is_symlink():
                raise PermissionDenied(
                    f"{self.root}: {name} is a symbolic link, and nothing is written through it", hint="change the link itself"
                )


def _name(info: Any) -> str | None:
    try:
        return str(info.base_name)
    except UnicodeDecodeError:
        return None
