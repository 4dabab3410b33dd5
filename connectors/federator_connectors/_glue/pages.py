"""Listings page by page. A token is never dropped: AWS may answer an empty page that has a next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from federator.connector.tokens import PageTokens

#: the most that AWS returns at once
PAGE = 100


def pages(call: Callable[..., Any], key: str, **request: Any) -> Iterator[dict[str, Any]]:
    """The items under ``key`` of every page, each name once, in the order they come.

    An item may come twice: what is made or dropped between two pages can move another onto the next one.

    Raises Internal where the listing has no end; AWS's own errors pass through.
    """
    tokens = PageTokens(key)
    token: str | None = None
    named: set[str] = set()
    while True:
        answer = call(**request, **({"NextToken": token} if token else {}))
        known = len(named)
        for item in answer[key]:
            if item["Name"] not in named:
                named.add(item["Name"])
                yield item
        token = tokens.following(answer.get("NextToken"), added=len(named) - known)
        if token is None:
            return
