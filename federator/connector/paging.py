"""Pages of a sorted listing that neither lose nor repeat an entry while others come and go.

A page token holds the last name handed out; the next page is every name after it. It is opaque to callers and carries a
version, so that a later release can tell an old one.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Iterable

from federator.connector.errors import InvalidInput

_VERSION = b"1:"


def page_of(names: Iterable[str], token: str | None, limit: int | None) -> tuple[list[str], str | None]:
    """The names after ``token``, at most ``limit``, by code point and each once; and the next token, None on the last page.

    An empty token is none, as the Lance spec reads it. Raises InvalidInput for a token that is not ours and a limit below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be 1 or more, and is {limit}")
    ordered = sorted(set(names))
    start = bisect_right(ordered, name_of(token)) if token else 0
    page = ordered[start:] if limit is None else ordered[start : start + limit]
    more = start + len(page) < len(ordered)
    return page, page_token(page[-1]) if more else None


def page_token(last: str) -> str:
    """The token of the page that starts after ``last``; safe in a URL."""
    return base64.urlsafe_b64encode(_VERSION + last.encode("utf-8", "surrogatepass")).rstrip(b"=").decode("ascii")


def name_of(token: str) -> str:
    """The name that a page token begins after. Raises InvalidInput for one that is not ours."""
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        if text.startswith(_VERSION):
            return text.removeprefix(_VERSION).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput("page_token is not one that this listing returned")
