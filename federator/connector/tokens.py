"""Page tokens of a catalog's own listings: each is followed, and a listing that has no end is an error."""

from __future__ import annotations

from typing import Any

from federator.connector.errors import Internal

#: pages in a row that may bring nothing new, since a catalog may filter after it has paged
MOST_IDLE = 1_000


class PageTokens:
    """The tokens of one listing. ``what`` names it in errors."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: set[str] = set()
        self._idle = 0

    def following(self, token: Any, *, added: int) -> str | None:
        """Return the token of the next page, None after the last one. ``added``: how many new items this page brought.

        Raise Internal for a token that is no text, one that repeats, and too many pages in a row without a new item.
        """
        if token is None or token == "":
            return None
        if not isinstance(token, str):
            raise Internal(f"{self._what}: the page token is not a text")
        self._idle = 0 if added else self._idle + 1
        if token in self._seen or self._idle >= MOST_IDLE:
            raise Internal(f"{self._what}: the server repeats a page token or an empty page, so that the listing has no end")
        self._seen.add(token)
        return token
