"""Listings page by page. A token is never dropped, and one that comes twice would never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from federator.connector import Internal
from federator_connectors._http.answer import Answer


def all_names(ask: Callable[[str | None], Answer], items: str, token: str) -> list[str]:
    """The names under ``items`` of every page, each once; ``token`` is the field with the next page's token, empty or null on the last.

    Raises Internal for a page without the list, for names that are no text, and for a token that repeats.
    """
    names: list[str] = []
    seen: set[str] = set()
    following: str | None = None
    while True:
        answer = ask(following)
        names += _texts(answer, items)
        following = answer.fields.get(token)
        if following is not None and not isinstance(following, str):
            raise Internal(f"{answer.about}: the page token is no text: {answer.excerpt}")
        if not following:
            # A name that moved to a later page while others came is one all the same.
            return list(dict.fromkeys(names))
        if following in seen:
            raise Internal(f"{answer.about}: the server repeats a page token, so that the listing has no end")
        seen.add(following)


def _texts(answer: Answer, items: str) -> list[str]:
    found: Any = answer.fields.get(items)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise Internal(f"{answer.about}: the answer has no list of names as {items!r}: {answer.excerpt}")
    return found
