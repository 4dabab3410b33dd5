"""Routes whose JSON bodies have a limited number of values.

pydantic lists every fault of a body on the event loop: a megabyte of wrong values would stop all other requests for seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from federator.connector import InvalidInput

#: number of values of a body; a vector is one value
MAX_VALUES = 20_000


class LanceRoute(APIRoute):
    """A route that refuses a body of more than ``MAX_VALUES`` values before it is validated."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_limited(request: Request) -> Response:
            return await handle(_LimitedRequest(request.scope, request.receive))

        return handle_limited


class _LimitedRequest(Request):
    async def json(self) -> Any:
        body = await super().json()
        count, containers = 0, [("", body)] if isinstance(body, dict | list) else []
        while containers:
            key, container = containers.pop()
            if _is_vector(key, container):
                continue
            count += len(container)
            if count > MAX_VALUES:
                raise InvalidInput(f"body: must have at most {MAX_VALUES} values, not counting the numbers of vectors")
            containers += [item for item in _iter_items(key, container) if isinstance(item[1], dict | list)]
        return body


def _is_vector(key: str, container: Any) -> bool:
    return key in ("vector", "single_vector") and isinstance(container, list) and {*map(type, container)} <= {int, float}


def _iter_items(key: str, container: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values in an object by their names, or those in a list by its name. Those in a list of vectors are vectors."""
    if isinstance(container, dict):
        yield from container.items()
    else:
        name = "single_vector" if key == "multi_vector" else key
        yield from ((name, item) for item in container)
