"""Pages of a sorted listing, without gaps or duplicates while the listing changes.

A page token contains the last returned name; the next page has the names after it. Tokens are opaque and contain a version, so that a
later release can recognise old ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from federator.connector.errors import InvalidInput
from federator.runtime.base64url import decode_base64url, encode_base64url

_VERSION = b"1:"


def paginate(names: Iterable[str], token: str | None, limit: int | None) -> tuple[list[str], str | None]:
    """Return at most ``limit`` distinct names after ``token``, by code point, and the next token; None on the last page.

    An empty token means the first page, as in the Lance spec. Raise InvalidInput for an invalid token or a limit below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be 1 or more, but is {limit}")
    ordered = sorted(set(names))
    start = bisect_right(ordered, decode_page_token(token)) if token else 0
    page = ordered[start:] if limit is None else ordered[start : start + limit]
    more = start + len(page) < len(ordered)
    return page, encode_page_token(page[-1]) if more else None


def encode_page_token(last: str) -> str:
    """Return the token of the page that starts after ``last``. It is safe in a URL."""
    return encode_base64url(_VERSION + last.encode("utf-8", "surrogatepass"))


def decode_page_token(token: str) -> str:
    """Return the name that a page starts after. Raise InvalidInput for an invalid token."""
    try:
        text = decode_base64url(token)
        if text.startswith(_VERSION):
            return text.removeprefix(_VERSION).decode("utf-8", "surrogatepass")
    except ValueError:
        pass
    raise InvalidInput("invalid page_token", hint="use a token that this listing returned")
