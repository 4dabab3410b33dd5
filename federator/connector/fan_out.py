"""Concurrent catalog calls, for servers that need a request for each object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from federator.connector.errors import CatalogError

A = TypeVar("A")
B = TypeVar("B")

#: the most calls queued in the pool, so that results of a large namespace do not pile up and ``close`` takes effect soon
_MAX_QUEUED_CALLS = 500


class FanOut:
    """Makes at most ``width`` calls at once. Its threads, and so their connections, live until ``close``.

    ``name`` is the prefix of the threads' names.
    """

    def __init__(self, width: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(width, thread_name_prefix=name)

    def map_with_errors(self, call: Callable[[A], B], items: Iterable[A]) -> Iterator[tuple[A, B | CatalogError]]:
        """Yield each item with the result of its call or the CatalogError that it raised, in the order of the items."""
        remaining = iter(items)
        while chunk := list(islice(remaining, _MAX_QUEUED_CALLS)):
            yield from zip(chunk, self._pool.map(lambda item: result_or_error(call, item), chunk), strict=True)

    def close(self) -> None:
        """Cancel queued calls without waiting for running ones. Safe to repeat."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def result_or_error(call: Callable[[A], B], item: A) -> B | CatalogError:
    """Return the result of a call, or the CatalogError that it raised."""
    try:
        return call(item)
    except CatalogError as error:
        return error
