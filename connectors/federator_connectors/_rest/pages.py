"""Listings page by page. A token is never dropped, and one that comes twice would never end."""

from __future__ import annotations

from collections.abc import Callable

from federator.connector.tokens import PageTokens
from federator_connectors._http.answer import Answer


def all_names(ask: Callable[[str | None], Answer], items: str, token: str) -> list[str]:
    """The names under ``items`` of every page, each once; ``token`` is the field with the next page's token, empty or null on the last.

    Raises Internal for a page without the list, for names that are no text, and for a token that repeats.
    """
    # A name that moved to a later page while others came is one all the same.
    names: dict[str, None] = {}
    tokens: PageTokens | None = None
    following: str | None = None
    while True:
        answer = ask(following)
        tokens, known = tokens or PageTokens(answer.about), len(names)
        names.update(dict.fromkeys(answer.fitting({items: [str]})[items]))
        following = tokens.following(answer.fields.get(token), added=len(names) - known)
        if following is None:
            return list(names)
