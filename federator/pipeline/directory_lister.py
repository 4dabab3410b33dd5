"""The child process that lists directories for the scan of a root, run as ``python -m federator.pipeline.directory_lister``.

A request has ``root`` (a location), ``storage`` and ``path``, the names below the root. The response has the fields of a
``DirectoryListing``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path as FilePath

from federator.connector import CatalogError, ConfigError, PermissionDenied, ServiceUnavailable, Throttled, Unauthenticated
from federator.connector.storage import StorageDirectory, open_storage, translate_storage_errors
from federator.runtime.child_process import serve_requests

_VERSIONS = "_versions"
_MANIFEST = ".manifest"
# Lance's own directories contain no tables. Without a manifest the table is damaged: verification reports it.
_LANCE_DIRECTORIES = frozenset({_VERSIONS, "_transactions", "_indices", "_deletions"})


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The listing of one directory. Only one in the state ``directory`` has content.

    ``state`` is ``table`` (the directory has manifests), ``directory``, ``gone``, or why it could not be listed: ``denied``,
    ``unreachable``, ``silent`` (no response in time) or ``failed``, each with a ``message``. ``directories`` are the names of child
    directories, without links. ``unnamed`` is the number of those whose names cannot be decoded.
    """

    location: str
    state: str
    message: str | None = None
    directories: Sequence[str] = ()
    unnamed: int = 0
    is_empty: bool = False


def list_directory(root: str, storage: Mapping[str, str], path: Sequence[str]) -> DirectoryListing:
    """List the directory at a path below a root. Links are not followed."""
    directory = None
    try:
        directory = _open_storage(root, tuple(sorted(storage.items())))
        names, unnamed, is_empty = _list_children(directory, root, path)
        location = directory.location_of(*path)
        if _VERSIONS in names and _has_manifest(directory, root, path):
            return DirectoryListing(location, "table")
        children = [name for name in names if name not in _LANCE_DIRECTORIES]
        return DirectoryListing(location, "directory", None, children, unnamed, is_empty)
    except (CatalogError, ConfigError) as error:
        location = directory.location_of(*path) if directory is not None else "/".join((root.rstrip("/"), *path))
        is_absent = bool(path) and isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
        return DirectoryListing(location, "gone" if is_absent else _failure_state(error), error.message)


def _list_children(directory: StorageDirectory, root: str, path: Sequence[str]) -> tuple[list[str], int, bool]:
    """Return the names of child directories, the number of undecodable ones, and whether the directory has no content at all."""
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
    serve_requests(lambda request: asdict(list_directory(request["root"], request["storage"], request["path"])))


if __name__ == "__main__":
    main()
