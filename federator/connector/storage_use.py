"""Whether a location is still unused, so that it can be given to a new table."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Mapping

from federator.model import lance_uri, local_path

#: seconds after which a store that does not answer counts as one that cannot be listed
LISTING_SECONDS = 20.0
# What Lance puts at a location that is declared or deregistered, and that holds no data.
_MARKERS = frozenset({"", ".lance-reserved", ".lance-deregistered"})


def is_unused(location: str, storage: Mapping[str, str], *, seconds: float = LISTING_SECONDS) -> bool:
    """Whether a listing with the source's own storage options shows nothing below the location but Lance's own markers.

    False as well where the location cannot be listed, or not within ``seconds``: what cannot be seen may be a table.
    """
    path = local_path(location)
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def list_location() -> None:
        unused = False
        try:
            names = [entry.name for entry in os.scandir(path)] if path is not None else _list_store(location, storage)
            unused = _MARKERS.issuperset(names)
        except FileNotFoundError:
            unused = path is not None
        except (OSError, ValueError, RuntimeError, ImportError):
            # Not proven to be empty.
            unused = False
        finally:
            answers.put(unused)

    # A thread that hangs with its store is left to end on its own; a process per listing would cost a second each time.
    threading.Thread(target=list_location, name="list a default location", daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return False


def _list_store(location: str, storage: Mapping[str, str]) -> list[str]:
    """Every object below the location, as Lance's own client lists it, which knows the storage options. Empty where there is none."""
    from lance.file import LanceFileSession

    return list(LanceFileSession(lance_uri(location), storage_options=dict(storage) or None).list())
