"""Pool of opened catalogs, each lent to one thread at a time.

A ``Catalog`` need not be thread-safe. One that is thread-safe is lent to all threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Protocol, TypeVar

from federator.connector.errors import CatalogError, ServiceUnavailable, Unauthenticated
from federator.connector.port import Catalog


class Closable(Protocol):
    def close(self) -> object: ...


C = TypeVar("C", bound=Closable)


def close_idle(idle: deque[C]) -> None:
    """Close what a pool keeps for reuse. Other threads may borrow from it meanwhile, so its length is not asked for."""
    with suppress(IndexError):
        while True:
            idle.pop().close()


class CatalogPool:
    """Lends catalogs, exclusively unless they are thread-safe, and keeps idle ones for reuse. Thread-safe."""

    def __init__(self, open_catalog: Callable[[], Catalog], *, keep: int = 4) -> None:
        self._open = open_catalog
        self._keep = keep
        # The append and pop of a deque are atomic, so no lock is needed.
        self._idle: deque[Catalog] = deque()
        self._shared: Catalog | None = None
        self._sharing = Lock()

    @contextmanager
    def borrow(self) -> Iterator[Catalog]:
        """Borrow a catalog for one operation. A catalog that was unreachable, or whose call was interrupted, is not reused, unless it
        is thread-safe: it then opens connections as it needs them. One that refused its credentials is never reused: they may have
        been replaced since it was opened."""
        catalog = self._shared or self._take()
        if catalog.thread_safe:
            try:
                yield catalog
            except Unauthenticated:
                self._forget(catalog)
                raise
            return
        reusable = False
        try:
            yield catalog
            reusable = True
        except CatalogError as error:
            reusable = not isinstance(error, ServiceUnavailable | Unauthenticated)
            raise
        finally:
            if reusable and len(self._idle) < self._keep:
                self._idle.append(catalog)
            else:
                catalog.close()

    def _take(self) -> Catalog:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        catalog = self._open()
        if not catalog.thread_safe:
            return catalog
        with self._sharing:
            if self._shared is None:
                self._shared = catalog
            shared = self._shared
        if shared is not catalog:
            catalog.close()
        return shared

    def _forget(self, catalog: Catalog) -> None:
        with self._sharing:
            if self._shared is catalog:
                self._shared = None
        # Other threads may still use it: it closes its idle connections only.
        catalog.close()

    def close(self) -> None:
        """Close the idle catalogs. Safe to repeat."""
        if (shared := self._shared) is not None:
            shared.close()
        close_idle(self._idle)
