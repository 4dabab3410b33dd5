"""The operation id of catalog calls.

``apply.write_path`` sets it; connectors that write in several steps read it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[str | None] = ContextVar("operation", default=None)


def new_operation_id() -> str:
    """Return a new, unique id. Ids sort by the time at which they were made."""
    return f"{int(time.time() * 1000):011x}-{uuid.uuid4().hex[:8]}"


@contextmanager
def operation(op_id: str) -> Iterator[None]:
    """Attribute the catalog calls of this thread, within the block, to a journalled operation."""
    token = _CURRENT.set(op_id)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_operation() -> str:
    """Return the id of the journalled operation, or a new id outside of one."""
    return _CURRENT.get() or new_operation_id()
