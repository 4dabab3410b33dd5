"""What this process saw of objects that it wrote while a crawl held their source's lease: not in the index yet, and already true.

A look at one object asks here first, so that who has just declared a table finds it. Other processes learn of it, and listings show
it, when it is published: ``federator.sync.writing`` does that as soon as the lease is free.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from federator.index.engine import Index
from federator.index.observed import Observed
from federator.model import Path

_Key = tuple[bool, Path]
_lock = threading.Lock()
_waiting: WeakKeyDictionary[Engine, defaultdict[str, dict[_Key, Observed]]] = WeakKeyDictionary()


def put(index: Index, source: str, looks: Iterable[Observed]) -> None:
    """Keeps looks at objects of a source until ``drop``; a newer look at the same object takes the older one's place."""
    with _lock:
        known = _waiting.setdefault(index.engine, defaultdict(dict))[source]
        known.update({(look.is_table, look.path): look for look in looks})


def get(index: Index, source: str, path: Path, *, is_table: bool) -> Observed | None:
    """The look at one object that waits to be published; None where the index's word is the newest."""
    if index.engine not in _waiting:
        return None
    with _lock:
        return _waiting[index.engine][source].get((is_table, path))


def waiting(index: Index, source: str) -> list[Observed]:
    """Every look at a source's objects that waits."""
    with _lock:
        known = _waiting.get(index.engine)
        return list(known[source].values()) if known is not None else []


def drop(index: Index, source: str, looks: Iterable[Observed]) -> None:
    """Forgets looks that were published, but for those that a newer one has replaced since."""
    with _lock:
        known = _waiting.setdefault(index.engine, defaultdict(dict))[source]
        for look in looks:
            if known.get((look.is_table, look.path)) is look:
                del known[look.is_table, look.path]
