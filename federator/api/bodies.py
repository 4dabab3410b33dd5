"""Routes whose JSON bodies have a limited number of values and levels.

pydantic lists every fault of a body on the event loop: a megabyte of wrong values would stop all other requests for seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from federator.connector import InvalidInput

#: the largest body of the service's own API, except that of a request for declarations
MAX_BODY_BYTES = 256_000
#: lists and objects inside each other: queries are read recursively
MAX_LEVELS = 200


class BoundedRoute(APIRoute):
    """A route that refuses a body of more than ``max_values`` values before it is validated. A vector is one value."""

    max_values: ClassVar[int] = 20_000

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_limited(request: Request) -> Response:
            return await handle(_LimitedRequest(request.scope, request.receive, max_values=self.max_values))

        return handle_limited


class ApiRoute(BoundedRoute):
    """A route of the service's own API. The longest list of a body has 1,000 items."""

    max_values = 2_500


class _LimitedRequest(Request):
    """A request whose ``json`` raises InvalidInput for too many values."""

    def __init__(self, *arguments: Any, max_values: int) -> None:
        super().__init__(*arguments)
        self._max_values = max_values

    async def json(self) -> Any:
        body = await super().json()
        count, containers = 0, [("", body, 1)] if isinstance(body, dict | list) else []
        while containers:
            key, container, level = containers.pop()
            if level > MAX_LEVELS:
                raise InvalidInput(f"body: must have at most {MAX_LEVELS} levels")
            if _is_vector(key, container):
                continue
            count += len(container)
            if count > self._max_values:
                raise InvalidInput(f"body: must have at most {self._max_values} values, not counting the numbers of vectors")
            containers += [
                (name, item, level + 1) for name, item in _iter_items(key, container) if isinstance(item, dict | list)
            ]
        return body


def _is_vector(key: str, container: Any) -> bool:
    return key in ("vector", "single_vector") and isinstance(container, list) and {*map(type, container)} <= {int, float}


def _iter_items(key: str, container: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of an object with their keys, and those of a list with the key of the list.

    The key of the values of ``multi_vector``, a list of vectors, is ``single_vector``.
    """
    if isinstance(container, dict):
        yield from container.items()
    else:
        name = "single_vector" if key == "multi_vector" else key
        yield from ((name, item) for item in container)
