"""For tests of this project and of connectors that others write.

``memory``: a catalog in memory (or in a JSON file, shared by processes) with faults on request, and a synthetic one of any size.
``contract``: the suite that every connector passes; it needs pytest, which is imported with ``ConnectorContract`` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from federator.testing.memory import (
    CONNECTOR,
    FEEDING,
    FOLDING,
    PLAIN,
    MemoryCatalog,
    MemoryConnector,
    MemorySettings,
    memory_store,
)
from federator.testing.store import MemoryStore

if TYPE_CHECKING:
    from federator.testing.contract import ConnectorContract

__all__ = [
    "CONNECTOR",
    "FEEDING",
    "FOLDING",
    "PLAIN",
    "ConnectorContract",
    "MemoryCatalog",
    "MemoryConnector",
    "MemorySettings",
    "MemoryStore",
    "memory_store",
]


def __getattr__(name: str) -> Any:
    if name != "ConnectorContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from federator.testing.contract import ConnectorContract

    return ConnectorContract
