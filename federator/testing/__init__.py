"""Test support for this project and for connectors of other projects.

``memory``: a catalog in memory (or in a JSON file that processes share) with injected faults, and a synthetic catalog of any size.
``contract``: the test suite for connectors. It needs pytest, which is imported only with ``ConnectorContract``.
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
    get_memory_store,
)
from federator.testing.memory_store import MemoryStore

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
    "get_memory_store",
]


def __getattr__(name: str) -> Any:
    if name != "ConnectorContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from federator.testing.contract import ConnectorContract

    return ConnectorContract
