"""The child process that lists directories for the scan of a root, run as ``python -m federator.pipeline.directory_lister``.

A request has ``root`` (a location), ``storage`` and ``path``, the names below the root. The response is the result of
``inspect_directory``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from federator.connector import CatalogError, ConfigError, PermissionDenied, ServiceUnavailable, Throttled, Unauthenticated
from federator.connector.storage import StorageDirectory, open_storage, translate_storage_errors
from federator.runtime.child_process import serve_requests

_VERSIONS = "_versions"
_MANIFEST = ".manifest"
# Lance's own directories contain no tables. Without a manifest the table is damaged: verification reports it.
_LANCE_DIRECTORIES = frozenset({_VERSIONS, "_transactions", "_indices", "_deletions"})


def inspect_directory(root: str, storage: Mapping[str, str], path: Sequence[str]) -> dict[str, Any]:
    """Return ``location``, ``found`` and ``message`` of a directory.

    ``found`` is ``table`` (the directory has manifests), ``directory`` with the names of its ``directories``, ``gone``, or the
    reason why it could not be listed: ``denied``, ``unreachable`` or ``failed``. ``unnamed`` is the number of directories whose
    names cannot be decoded. ``empty`` says that the directory contains nothing. Links are not followed.
    """
    directory = None
    try:
        directory = _open_storage(root, tuple(sorted(storage.items())))
        return {"location": directory.location_of(*path), "message": None, **_list_directory(directory, root, path)}
    except (CatalogError, ConfigError) as error:
        location = directory.location_of(*path) if directory is not None else "/".join((root.rstrip("/"), *path))
        is_absent = bool(path) and isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
        return {"location": location, "found": "gone" if is_absent else _failure_state(error), "message": error.message}


def _list_directory(directory: StorageDirectory, root: str, path: Sequence[str]) -> dict[str, Any]:
    names, unnamed, empty = _list_children(directory, root, path)
    if _VERSIONS in names and _has_manifest(directory, root, path):
        return {"found": "table"}
    return {
        "found": "directory", "directories": [name for name in names if name not in _LANCE_DIRECTORIES],
        "unnamed": unnamed, "empty": empty,
    }  # fmt: skip


def _list_children(directory: StorageDirectory, root: str, path: Sequence[str]) -> tuple[list[str], int, bool]:
    from pyarrow.fs import FileSelector, FileType

    with translate_storage_errors(root):
        entries = directory.filesystem.get_file_info(FileSelector("/".join((directory.path, *path)), recursive=False))
    names, unnamed = [], 0
    for info in entries:
        if info.type is not FileType.Directory:
            continue
        try:
            name = str(info.base_name)
        except UnicodeDecodeError:
            unnamed += 1
            continue
        if not (directory.local and FilePath("/".join((directory.path, *path, name))).is_symlink()):
            names.append(name)
    return sorted(names), unnamed, not entries


def _has_manifest(directory: StorageDirectory, root: str, path: Sequence[str]) -> bool:
    from pyarrow.fs import FileSelector

    with translate_storage_errors(root):
        entries = directory.filesystem.get_file_info(
            FileSelector("/".join((directory.path, *path, _VERSIONS)), recursive=False)
        )
    return any(info.path.endswith(_MANIFEST) for info in entries)


@lru_cache(maxsize=4)
def _open_storage(root: str, storage: tuple[tuple[str, str], ...]) -> StorageDirectory:
    with translate_storage_errors(root):
        return open_storage(root, dict(storage))


def _failure_state(error: Exception) -> str:
    if isinstance(error, PermissionDenied | Unauthenticated):
        return "denied"
    return "unreachable" if isinstance(error, ServiceUnavailable | Throttled) else "failed"


def main() -> None:
    serve_requests(lambda request: inspect_directory(request["root"], request["storage"], request["path"]))


if __name__ == "__main__":
    main()
