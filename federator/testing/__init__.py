"""For tests of this project and of connectors that others write.

``memory``: a catalog in memory (or in a JSON file, shared by processes) with faults on request, and a synthetic one of any size.
``contract``: the suite that every connector passes; it needs pytest and is imported from its own module.
"""

from federator.testing.memory import (
    CONNECTOR,
    FOLDING,
    PLAIN,
    MemoryCatalog,
    MemoryConnector,
    MemorySettings,
    memory_store,
)
from federator.testing.store import MemoryStore

__all__ = [
    "CONNECTOR",
    "FOLDING",
    "PLAIN",
    "MemoryCatalog",
    "MemoryConnector",
    "MemorySettings",
    "MemoryStore",
    "memory_store",
]
