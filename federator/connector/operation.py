"""The operation of catalog calls: its id, and whether it may still write.

``apply`` sets both. Connectors that write in several steps read the id, and connectors check the permission before each write.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[str | None] = ContextVar("operation", default=None)
_REQUIRE_PERMISSION: ContextVar[Callable[[], None]] = ContextVar("require_permission", default=lambda: None)


def new_operation_id() -> str:
    """Return a new, unique id. Ids sort by the time at which they were made."""
    return f"{int(time.time() * 1000):011x}-{uuid.uuid4().hex[:8]}"


@contextmanager
def attribute_calls(op_id: str) -> Iterator[None]:
    """Attribute the catalog calls of this thread, within the block, to a journalled operation."""
    token = _CURRENT.set(op_id)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_operation() -> str:
    """Return the id of the journalled operation, or a new id outside of one."""
    return _CURRENT.get() or new_operation_id()


@contextmanager
def permission(require: Callable[[], None]) -> Iterator[None]:
    """Call ``require`` before each write to a catalog of this thread, within the block. It raises if nothing may be written."""
    token = _REQUIRE_PERMISSION.set(require)
    try:
        yield
    finally:
        _REQUIRE_PERMISSION.reset(token)


def require_permission() -> None:
    """Raise if this thread may not write any more. Connectors call it immediately before a request that writes."""
    _REQUIRE_PERMISSION.get()()
