"""Listing of locations with a source's storage options, to prove that data is there, or that it is not.

``federator.connector.storage_use`` decides whether a new table may use a location, so there a location that cannot be listed counts as
used. Here that would count as evidence. Object stores are listed in a child process, whose main module this is: it can be killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

from federator.model import local_path, to_lance_uri
from federator.runtime.arrow_import import import_arrow_without_pandas
from federator.runtime.child_process import ChildProcess, ChildProcessDied, serve_requests

#: time for one listing. The first one includes the start of the process, which loads Lance's client.
LISTING_SECONDS = 20.0
FIRST_LISTING_SECONDS = 60.0
# Marker files of Lance at a location that is declared or deregistered and has no data.
_MARKERS = frozenset({"", ".lance-reserved", ".lance-deregistered"})


class StoreListing:
    """Lists locations one after the other. A context manager: at its end the process is killed, if one was needed."""

    def __init__(self) -> None:
        self._child: ChildProcess | None = None

    def find_data(self, location: str, storage: Mapping[str, str]) -> bool | None:
        """Return whether anything but Lance's marker files is at a location. None if it cannot be listed."""
        path = local_path(location)
        if path is None:
            return self._find_stored(location, storage)
        try:
            return _has_data(entry.name for entry in os.scandir(path))
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Kill the process. A second call has no effect."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find_stored(self, location: str, storage: Mapping[str, str]) -> bool | None:
        seconds = LISTING_SECONDS if self._child else FIRST_LISTING_SECONDS
        child = self._child = self._child or ChildProcess(__name__)
        try:
            found: bool | None = child.request({"location": location, "storage": dict(storage)}, seconds)["found"]
        except (TimeoutError, ChildProcessDied):
            self.close()
            return None
        return found


def _has_data(names: Iterable[str]) -> bool:
    return not _MARKERS.issuperset(names)


def _list_store(request: Mapping[str, Any]) -> dict[str, bool | None]:
    # Lance's own client lists the store, because it supports all storage options. It returns an empty list for an absent prefix.
    from lance.file import LanceFileSession

    try:
        session = LanceFileSession(to_lance_uri(request["location"]), storage_options=request["storage"] or None)
        return {"found": _has_data(session.list())}
    except (OSError, ValueError, RuntimeError, ImportError):
        return {"found": None}


def main() -> None:
    """Handle requests with ``location`` and ``storage``."""
    os.environ.setdefault("LANCE_LOG", "error")
    import_arrow_without_pandas()
    serve_requests(_list_store)


if __name__ == "__main__":
    main()
