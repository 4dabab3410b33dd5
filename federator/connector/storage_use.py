"""Check whether a location is unused, so that a new table can use it.

Object stores are listed in a child process, whose main module this is. It can be killed if the store hangs; a thread that is still
inside Lance's native code when Python ends would abort the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from federator.model import local_path, to_lance_uri
from federator.runtime.arrow_import import import_arrow_without_pandas
from federator.runtime.child_process import ChildProcess, ChildProcessDied, serve_requests

#: time after which a store without a response counts as one that cannot be listed
LISTING_SECONDS = 20.0
# Marker files of Lance at a location that is declared or deregistered and has no data.
_MARKERS = frozenset({"", ".lance-reserved", ".lance-deregistered"})


def is_unused(location: str, storage: Mapping[str, str], *, seconds: float = LISTING_SECONDS) -> bool:
    """Return whether a listing with the source's storage options shows nothing but Lance's marker files at the location.

    Return False if the location cannot be listed, or an object store cannot be listed within ``seconds``: it may contain a table.
    """
    path = local_path(location)
    if path is None:
        return _is_store_unused(location, storage, seconds)
    try:
        return _only_markers(entry.name for entry in os.scandir(path))
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def _is_store_unused(location: str, storage: Mapping[str, str], seconds: float) -> bool:
    child = ChildProcess(__name__)
    try:
        return child.request({"location": location, "storage": dict(storage)}, seconds) == {"unused": True}
    except (TimeoutError, ChildProcessDied):
        return False
    finally:
        child.kill()


def _only_markers(names: Iterable[str]) -> bool:
    return _MARKERS.issuperset(names)


def _list_store(request: Mapping[str, Any]) -> dict[str, bool]:
    # Lance's own client lists the store, because it supports all storage options. It returns an empty list for an absent prefix.
    from lance.file import LanceFileSession

    try:
        session = LanceFileSession(to_lance_uri(request["location"]), storage_options=request["storage"] or None)
        return {"unused": _only_markers(session.list())}
    except (OSError, ValueError, RuntimeError, ImportError):
        # The location is not proven to be empty.
        return {"unused": False}


def main() -> None:
    """Handle requests with ``location`` and ``storage``."""
    os.environ.setdefault("LANCE_LOG", "error")
    import_arrow_without_pandas()
    serve_requests(_list_store)


if __name__ == "__main__":
    main()
