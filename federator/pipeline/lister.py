"""The process that lists directories for the scan of a root, run as ``python -m federator.pipeline.lister``.

A request has ``root`` (a location), ``storage`` and ``path``, the names below the root; the answer is ``look``'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from federator.connector import CatalogError, ConfigError, PermissionDenied, ServiceUnavailable, Throttled, Unauthenticated
from federator.connector.child import serve
from federator.connector.lean import hide_pandas
from federator.connector.stores import Place, place, translated

_VERSIONS = "_versions"
_MANIFEST = ".manifest"
# Lance's own directories hold no tables; where they lie without a manifest, something else is wrong (verification says what).
_OF_LANCE = frozenset({_VERSIONS, "_transactions", "_indices", "_deletions"})


def look(root: str, storage: Mapping[str, str], path: Sequence[str]) -> dict[str, Any]:
    """What a directory is: ``location``, and ``found``: ``table`` (it has manifests), ``directory`` with the names of its
    ``directories``, ``gone``, or why nobody knows: ``denied``, ``unreachable``, ``failed``, with a ``message``.

    ``unnamed`` is how many directories have names that are no text; ``empty``: nothing at all is inside. Links are not followed.
    """
    at = None
    try:
        at = _opened(root, tuple(sorted(storage.items())))
        return {"location": at.location(*path), "message": None, **_listed(at, root, path)}
    except (CatalogError, ConfigError) as error:
        location = at.location(*path) if at is not None else "/".join((root.rstrip("/"), *path))
        gone = bool(path) and isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
        return {"location": location, "found": "gone" if gone else _code(error), "message": error.message}


def _listed(at: Place, root: str, path: Sequence[str]) -> dict[str, Any]:
    names, unnamed, empty = _children(at, root, path)
    if _VERSIONS in names and _has_manifest(at, root, path):
        return {"found": "table"}
    return {
        "found": "directory", "directories": [name for name in names if name not in _OF_LANCE], "unnamed": unnamed, "empty": empty,
    }  # fmt: skip


def _children(at: Place, root: str, path: Sequence[str]) -> tuple[list[str], int, bool]:
    from pyarrow.fs import FileSelector, FileType

    with translated(root):
        found = at.system.get_file_info(FileSelector("/".join((at.base, *path)), recursive=False))
    names, unnamed = [], 0
    for info in found:
        if info.type is not FileType.Directory:
            continue
        try:
            name = str(info.base_name)
        except UnicodeDecodeError:
            unnamed += 1
            continue
        if not (at.local and FilePath("/".join((at.base, *path, name))).is_symlink()):
            names.append(name)
    return sorted(names), unnamed, not found


def _has_manifest(at: Place, root: str, path: Sequence[str]) -> bool:
    from pyarrow.fs import FileSelector

    with translated(root):
        found = at.system.get_file_info(FileSelector("/".join((at.base, *path, _VERSIONS)), recursive=False))
    return any(info.path.endswith(_MANIFEST) for info in found)


@lru_cache(maxsize=4)
def _opened(root: str, storage: tuple[tuple[str, str], ...]) -> Place:
    with translated(root):
        return place(root, dict(storage))


def _code(error: Exception) -> str:
    if isinstance(error, PermissionDenied | Unauthenticated):
        return "denied"
    return "unreachable" if isinstance(error, ServiceUnavailable | Throttled) else "failed"


def main() -> None:
    hide_pandas()
    serve(lambda request: look(request["root"], request["storage"], request["path"]))


if __name__ == "__main__":
    main()
