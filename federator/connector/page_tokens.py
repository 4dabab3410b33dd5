"""Page tokens of catalog listings. A listing without an end is an error."""

from __future__ import annotations

from typing import Any

from federator.connector.errors import Internal

#: the most pages in a row without a new item. A catalog may filter after paging, so empty pages are allowed.
MAX_IDLE_PAGES = 1_000


class PageTokens:
    """The page tokens of one listing. ``listing`` names it in errors."""

    def __init__(self, listing: str) -> None:
        self._listing = listing
        self._seen: set[str] = set()
        self._idle = 0

    def following(self, token: Any, *, added: int) -> str | None:
        """Return the token of the next page, None after the last one. ``added`` is the number of new items on this page.

        Raise Internal for a token that is not a text, a repeated token, or too many pages in a row without a new item.
        """
        if token is None or token == "":
            return None
        if not isinstance(token, str):
            raise Internal(f"{self._listing}: the page token is not a text")
        self._idle = 0 if added else self._idle + 1
        if token in self._seen or self._idle >= MAX_IDLE_PAGES:
            raise Internal(f"{self._listing}: the server repeats a page token or an empty page, so the listing has no end")
        self._seen.add(token)
        return token
