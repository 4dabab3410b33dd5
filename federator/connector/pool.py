"""Opened catalogs, lent one at a time, since a ``Catalog`` need not be safe for two threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from federator.connector.errors import CatalogError, ServiceUnavailable
from federator.connector.port import Catalog


class CatalogPool:
    """Lends each caller a catalog of its own; idle ones are kept and lent again. Thread-safe."""

    def __init__(self, open_catalog: Callable[[], Catalog], *, keep: int = 4) -> None:
        self._open = open_catalog
        self._keep = keep
        # A deque's append and pop are atomic, so no lock is needed.
        self._idle: deque[Catalog] = deque()

    @contextmanager
    def lend(self) -> Iterator[Catalog]:
        """A catalog for one operation. One that was unreachable or left half-way through a call is not lent again."""
        try:
            catalog = self._idle.pop()
        except IndexError:
            catalog = self._open()
        reusable = False
        try:
            yield catalog
            reusable = True
        except CatalogError as error:
            reusable = not isinstance(error, ServiceUnavailable)
            raise
        finally:
            if reusable and len(self._idle) < self._keep:
                self._idle.append(catalog)
            else:
                catalog.close()

    def close(self) -> None:
        """Closes the idle catalogs; harmless twice."""
        while self._idle:
            self._idle.pop().close()
