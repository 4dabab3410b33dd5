"""Whether a location is still unused, so that it can be given to a new table. The main module lists an object store.

An object store is listed in a child process: it can be ended when the store hangs, and a thread that is still inside Lance's
native code when Python ends would abort the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from federator.connector.child import Child, ChildDied, serve
from federator.connector.lean import hide_pandas
from federator.model import lance_uri, local_path

#: seconds after which a store that does not answer counts as one that cannot be listed
LISTING_SECONDS = 20.0
# What Lance puts at a location that is declared or deregistered, and that holds no data.
_MARKERS = frozenset({"", ".lance-reserved", ".lance-deregistered"})


def is_unused(location: str, storage: Mapping[str, str], *, seconds: float = LISTING_SECONDS) -> bool:
    """Whether a listing with the source's own storage options shows nothing below the location but Lance's own markers.

    False as well where the location cannot be listed, or an object store not within ``seconds``: what cannot be seen may be a table.
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
    child = Child(__name__)
    try:
        return child.ask({"location": location, "storage": dict(storage)}, seconds) == {"unused": True}
    except (TimeoutError, ChildDied):
        return False
    finally:
        child.kill()


def _only_markers(names: Iterable[str]) -> bool:
    return _MARKERS.issuperset(names)


def _list_store(request: Mapping[str, Any]) -> dict[str, bool]:
    """Lance's own client lists, since it knows every storage option. It lists nothing where there is nothing."""
    from lance.file import LanceFileSession

    try:
        session = LanceFileSession(lance_uri(request["location"]), storage_options=request["storage"] or None)
        return {"unused": _only_markers(session.list())}
    except (OSError, ValueError, RuntimeError, ImportError):
        # Not proven to be empty.
        return {"unused": False}


def main() -> None:
    """Answer requests with ``location`` and ``storage``."""
    hide_pandas()
    os.environ.setdefault("LANCE_LOG", "error")
    serve(_list_store)


if __name__ == "__main__":
    main()
