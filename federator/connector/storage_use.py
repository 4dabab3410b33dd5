"""Listing of locations with a source's storage options: whether data is there, and whether a new table may use a location.

Object stores are listed in a child process, whose main module this is. It can be killed if the store hangs; a thread that is still
inside Lance's native code when Python ends would abort the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from federator.model import local_path, to_lance_uri
from federator.runtime.arrow_import import import_arrow_without_pandas
from federator.runtime.child_process import ChildProcess, ChildProcessDied, serve_requests

#: time for one listing of an object store, after which the location counts as one that cannot be listed
LISTING_SECONDS = 20.0
# Marker files of Lance at a location that is declared or deregistered and has no data.
_MARKERS = frozenset({"", ".lance-reserved", ".lance-deregistered"})


class StoreListing:
    """Lists locations one after the other. A context manager: at its end the child process is killed, if one was needed.

    ``seconds`` is the time for one listing of an object store, ``first_seconds`` that for the first one, which includes the start of
    the child process and its import of Lance.
    """

    def __init__(self, *, seconds: float = LISTING_SECONDS, first_seconds: float = LISTING_SECONDS) -> None:
        self._seconds = seconds
        self._first_seconds = first_seconds
        self._child: ChildProcess | None = None

    def find_data(self, location: str, storage: Mapping[str, str]) -> bool | None:
        """Return whether any file but Lance's markers is at a location or below. None if it cannot be listed, or not in time.

        Directories are no files: a server that deletes files may leave them.
        """
        path = local_path(location)
        if path is None:
            return self._find_data_in_store(location, storage)
        try:
            return any(name not in _MARKERS for name in _iter_files(path))
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Kill the child process. A second call has no effect."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find_data_in_store(self, location: str, storage: Mapping[str, str]) -> bool | None:
        seconds = self._seconds if self._child else self._first_seconds
        child = self._child = self._child or ChildProcess(__name__)
        try:
            has_data: bool | None = child.request({"location": location, "storage": dict(storage)}, seconds)["has_data"]
        except (TimeoutError, ChildProcessDied):
            self.close()
            return None
        return has_data


def is_unused(location: str, storage: Mapping[str, str], *, seconds: float = LISTING_SECONDS) -> bool:
    """Return whether a listing with the source's storage options shows nothing but Lance's marker files at the location.

    Return False if the location cannot be listed, or an object store cannot be listed within ``seconds``: it may contain a table. A
    local directory with an empty directory in it is in use.
    """
    path = local_path(location)
    if path is not None:
        try:
            return not _has_data(entry.name for entry in Path(path).iterdir())
        except FileNotFoundError:
            return True
        except (OSError, ValueError):
            return False
    with StoreListing(first_seconds=seconds) as listing:
        return listing.find_data(location, storage) is False


def _iter_files(path: str) -> Iterator[str]:
    """Yield the names of files and links in a directory and below. Raise OSError."""

    def fail(error: OSError) -> None:
        raise error

    for directory, subdirectories, files in os.walk(path, onerror=fail):
        yield from files
        yield from (name for name in subdirectories if Path(directory, name).is_symlink())


def _has_data(names: Iterable[str]) -> bool:
    return not _MARKERS.issuperset(names)


def _list_store(request: Mapping[str, Any]) -> dict[str, bool | None]:
    # Lance's own client lists the store, because it supports all storage options. It returns an empty list for an absent prefix.
    from lance.file import LanceFileSession

    try:
        session = LanceFileSession(to_lance_uri(request["location"]), storage_options=request["storage"] or None)
        return {"has_data": _has_data(session.list())}
    except (OSError, ValueError, RuntimeError, ImportError):
        return {"has_data": None}


def main() -> None:
    """Handle requests with ``location`` and ``storage``."""
    os.environ.setdefault("LANCE_LOG", "error")
    import_arrow_without_pandas()
    serve_requests(_list_store)


if __name__ == "__main__":
    main()
