"""Listings page by page. A token is never dropped: AWS may answer an empty page that has a next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from federator.connector import Internal

#: the most that AWS returns at once
PAGE = 100


def pages(call: Callable[..., Any], key: str, **request: Any) -> Iterator[dict[str, Any]]:
    """The items under ``key`` of every page, each name once, in the order they come.

    An item may come twice: what is made or dropped between two pages can move another onto the next one.

    Raises Internal if a token repeats, since such a listing would never end; AWS's own errors pass through.
    """
    token: str | None = None
    seen: set[str] = set()
    named: set[str | None] = set()
    while True:
        answer = call(**request, **({"NextToken": token} if token else {}))
        for item in answer.get(key) or []:
            name = item.get("Name")
            if name is None or name not in named:
                named.add(name)
                yield item
        token = answer.get("NextToken")
        if not token:
            return
        if token in seen:
            raise Internal(f"{key}: the service repeats a page token, so that the listing has no end")
        seen.add(token)
