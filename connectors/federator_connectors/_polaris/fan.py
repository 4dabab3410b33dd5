"""Many calls at once, in a pool of a catalog's own: Polaris lists identifiers only, so that every object is a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from federator.connector import CatalogError

A = TypeVar("A")
B = TypeVar("B")

#: calls handed to the pool at once, so that results of a large namespace do not pile up and a stop is soon a stop
_CHUNK = 500


class Fan:
    """At most ``width`` calls at once. Its threads, and so their connections, live as long as it does."""

    def __init__(self, width: int) -> None:
        self._pool = ThreadPoolExecutor(width, thread_name_prefix="polaris")

    def each(self, call: Callable[[A], B], items: Iterable[A]) -> Iterator[tuple[A, B | CatalogError]]:
        """Each item with what the call returned or the CatalogError that it raised, in the order of the items."""

        def tried(item: A) -> B | CatalogError:
            try:
                return call(item)
            except CatalogError as error:
                return error

        left = iter(items)
        while chunk := list(islice(left, _CHUNK)):
            yield from zip(chunk, self._pool.map(tried, chunk), strict=True)

    def close(self) -> None:
        """Harmless twice; calls under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
