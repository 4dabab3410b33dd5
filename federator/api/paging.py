"""Pages and ETags: cursors bound to what they page over and to who may see it, ETags to what was answered to whom."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from federator.connector import InvalidInput
from federator.model.scopes import EVERYTHING, Scopes


def encode(listing: str, after: str, revision: int | None = None, *, scopes: Scopes = EVERYTHING) -> str:
    """A cursor: where a page ended, in which listing, at which revision, of what the caller may see."""
    text = json.dumps([_seen(listing, scopes), after, revision], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(
    cursor: str | None, listing: str, newest: int | None = None, *, scopes: Scopes = EVERYTHING
) -> tuple[str, int | None]:
    """Where to go on, and at which revision. Raises InvalidInput for a cursor of another listing, of another scope, or of none."""
    if cursor is None:
        return "", newest
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        of, after, revision = found
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise InvalidInput("the cursor is not one of ours", hint="begin again without it") from None
    if of != _seen(listing, scopes) or not isinstance(after, str) or type(revision) is not type(newest):
        raise InvalidInput("the cursor belongs to another listing", hint="begin again without it")
    if revision is not None and newest is not None and not 0 <= revision <= newest:
        raise InvalidInput("the cursor belongs to a revision that is not published", hint="begin again without it")
    return printable(after, "cursor"), revision


def _seen(listing: str, scopes: Scopes) -> list[str]:
    return [listing, _fingerprint(scopes)]


def _fingerprint(scopes: Scopes) -> str:
    return "" if scopes.everything else hashlib.sha256(json.dumps(scopes.texts).encode()).hexdigest()[:16]


def by_name(
    names: Iterable[str], listing: str, cursor: str | None, limit: int, *, scopes: Scopes
) -> tuple[list[str], str | None]:
    """A page of names that are all at hand, in order, and the cursor of the next one. Raises InvalidInput as ``decode``."""
    after, _ = decode(cursor, listing, scopes=scopes)
    left = [name for name in sorted(names) if name > after]
    return left[:limit], encode(listing, left[limit - 1], scopes=scopes) if len(left) > limit else None


def printable(text: str, name: str) -> str:
    """The text itself. Raises InvalidInput for one that no database stores."""
    if "\0" in text:
        raise InvalidInput(f"{name}: a NUL character is in no name")
    return text


def tagged(request: Request, body: BaseModel, revision: int | None = None) -> Response:
    """The body as JSON with its ETag, or 304 where the caller has it already.

    The tag covers the whole answer, cursor and freshness included, so that it also changes when only a verification did; and the
    caller's scopes.
    """
    content = body.model_dump_json().encode()
    asked = f"{request.url.query}\0{_fingerprint(request.scope['caller'].scopes)}\0".encode()
    digest = hashlib.sha256(asked + content).hexdigest()[:24]
    tag = f'W/"{f"r{revision}-" if revision is not None else ""}{digest}"'
    if _matches(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(content, media_type="application/json", headers={"ETag": tag})


def _matches(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    given = [part.strip().removeprefix("W/") for part in header.split(",")]
    return "*" in given or tag.removeprefix("W/") in given


def documented_304() -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that honours If-None-Match."""
    return {304: {"description": "What If-None-Match names is still current"}}
