"""Concurrent catalog calls, for servers that need a request for each object."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from federator.connector.errors import CatalogError

A = TypeVar("A")
B = TypeVar("B")

#: the most calls queued in the pool, so that results of a large namespace do not pile up
_MAX_QUEUED_CALLS = 500


class FanOut:
    """Makes at most ``width`` calls at once. Its threads end with it.

    ``name`` is the prefix of the threads' names.
    """

    def __init__(self, width: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(width, thread_name_prefix=name)

    def map_with_errors(self, call: Callable[[A], B], items: Iterable[A]) -> Iterator[tuple[A, B | CatalogError]]:
        """Yield each item with the result of its call or the CatalogError that it raised, in the order of the items."""
        remaining = iter(items)
        while chunk := list(islice(remaining, _MAX_QUEUED_CALLS)):
            yield from zip(chunk, self._pool.map(lambda item: result_or_error(call, item), chunk), strict=True)

    def map_one_ahead(self, call: Callable[[A], B], items: Iterable[A]) -> Iterator[tuple[A, B | CatalogError]]:
        """Yield each item as ``map_with_errors`` does. While the caller handles one, the call of the next is made."""
        waiting: deque[tuple[A, Future[B | CatalogError]]] = deque()
        for item in items:
            waiting.append((item, self._pool.submit(result_or_error, call, item)))
            if len(waiting) > 1:
                current, result = waiting.popleft()
                yield current, result.result()
        for current, result in waiting:
            yield current, result.result()


def result_or_error(call: Callable[[A], B], item: A) -> B | CatalogError:
    """Return the result of a call, or the CatalogError that it raised."""
    try:
        return call(item)
    except CatalogError as error:
        return error
