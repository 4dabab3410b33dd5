"""The operation id that a catalog call belongs to: set by whoever keeps a journal, read by connectors that write in several steps."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[str | None] = ContextVar("operation", default=None)


@contextmanager
def operation(op_id: str) -> Iterator[None]:
    """Attribute the catalog calls of this thread, within the block, to a journalled operation."""
    token = _CURRENT.set(op_id)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_operation() -> str:
    """Return the id of the journalled operation, or a new random one where the caller keeps no journal."""
    return _CURRENT.get() or uuid.uuid4().hex
