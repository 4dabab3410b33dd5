"""Cursors and ETags. Both are bound to the request and to the scopes of its principal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from fastapi import Request, Response

from federator.api.models.base import to_json
from federator.connector import InvalidInput
from federator.model.scopes import EVERYTHING, Scopes
from federator.model.text import is_storable
from federator.runtime.base64url import decode_base64url, encode_base64url


def encode_cursor(listing: str, after: str, revision: int | None = None, *, scopes: Scopes = EVERYTHING) -> str:
    """Encode a cursor: the end of a page, its listing and revision, and the principal's scopes."""
    text = json.dumps([_cursor_binding(listing, scopes), after, revision], ensure_ascii=False, separators=(",", ":"))
    return encode_base64url(text.encode())


def decode_cursor(
    cursor: str | None, listing: str, newest: int | None = None, *, scopes: Scopes = EVERYTHING
) -> tuple[str, int | None]:
    """Return the position after which the page begins, and the revision. Without a cursor: "" and ``newest``.

    ``newest`` is the newest revision of the listing's source; None if the listing has no revision.
    Raise InvalidInput if the cursor is malformed, or belongs to another listing or other scopes.
    """
    if cursor is None:
        return "", newest
    try:
        binding, after, revision = json.loads(decode_base64url(cursor))
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput("the cursor is malformed", hint="omit the cursor to start again") from None
    # A listing has a revision in all its cursors, or in none.
    has_revision_like_listing = type(revision) is type(newest)
    if binding != _cursor_binding(listing, scopes) or not isinstance(after, str) or not has_revision_like_listing:
        raise InvalidInput("the cursor belongs to another listing", hint="omit the cursor to start again")
    if revision is not None and newest is not None and not 0 <= revision <= newest:
        raise InvalidInput("the cursor belongs to a revision that is not published", hint="omit the cursor to start again")
    return require_storable(after, "cursor"), revision


def _cursor_binding(listing: str, scopes: Scopes) -> list[str]:
    return [listing, _fingerprint(scopes)]


def _fingerprint(scopes: Scopes) -> str:
    return "" if scopes.covers_all else hashlib.sha256(json.dumps(scopes.texts).encode()).hexdigest()[:16]


def page_by_name(
    names: Iterable[str], listing: str, cursor: str | None, limit: int, *, scopes: Scopes
) -> tuple[list[str], str | None]:
    """Return a page of names, sorted, and the cursor of the next page. Raise InvalidInput like ``decode_cursor``."""
    after, _ = decode_cursor(cursor, listing, scopes=scopes)
    remaining = [name for name in sorted(names) if name > after]
    return remaining[:limit], encode_cursor(listing, remaining[limit - 1], scopes=scopes) if len(remaining) > limit else None


def require_storable(text: str, name: str) -> str:
    """Return the text unchanged. Raise InvalidInput if a database cannot store it."""
    if not is_storable(text):
        raise InvalidInput(f"{name}: NUL characters and lone surrogates are not allowed")
    return text


def etag_response(request: Request, body: Any, revision: int | None = None) -> Response:
    """Return the body, a model or a dataclass, as JSON with its ETag, or 304 if the client already has it.

    The ETag covers the complete response with cursor and freshness, so it also changes when only a verification state changes. It
    also covers the principal's scopes.
    """
    content = to_json(body)
    tag = make_etag(request, hashlib.sha256(content).hexdigest(), revision)
    return not_modified(request, tag) or Response(content, media_type="application/json", headers={"ETag": tag})


def make_etag(request: Request, content_digest: str, revision: int | None = None) -> str:
    """Return the ETag of a response whose content has a SHA-256 digest."""
    request_key = f"{request.url.query}\0{_fingerprint(request.scope['principal'].scopes)}\0{content_digest}"
    digest = hashlib.sha256(request_key.encode()).hexdigest()[:24]
    return f'W/"{f"r{revision}-" if revision is not None else ""}{digest}"'


def not_modified(request: Request, tag: str) -> Response | None:
    """Return the response 304 if the client already has the response with this ETag."""
    is_known = request.method == "GET" and _matches(request.headers.get("if-none-match"), tag)
    return Response(status_code=304, headers={"ETag": tag}) if is_known else None


def _matches(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    tags = [part.strip().removeprefix("W/") for part in header.split(",")]
    return "*" in tags or tag.removeprefix("W/") in tags


def not_modified_docs() -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI ``responses`` of a route that supports If-None-Match."""
    return {304: {"description": "The version in If-None-Match is still current"}}
