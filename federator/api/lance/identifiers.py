"""Object ids in routes: the names from the tree root, ``[source, ...path in the source]``, joined with the ``delimiter``.

The root is the delimiter itself. A name that contains the delimiter needs another delimiter. Routes have a parameter ``NamespaceId`` or
``TableId``. A route that writes passes the id in the body, if there is one, to ``Identifier.require_match``; a route that only reads
passes it to ``Identifier.read_existing``.

A ``+`` that is not encoded has two readings: it is a plus in RFC 3986, and a space for clients that encode paths like forms. These
are the clients in Rust (pylance, lance-spark), which send no User-Agent. Other clients were seen to send one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from federator.api.lance.errors import is_lance_path
from federator.connector import InvalidInput, NamespaceNotFound, TableNotFound
from federator.model import Path as Levels
from federator.model.text import is_storable

DEFAULT_DELIMITER = "$"
#: more levels than any catalog has
_MAX_LEVELS = 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identifier:
    """The object id of a request, as one or two possible paths from the tree root (the root is ``()``)."""

    readings: tuple[Levels, ...]
    #: whether the client seems to encode paths like forms: then the last reading is probably the right one
    is_form_encoded: bool = False

    def require_match(self, body: Sequence[str] | None) -> Levels:
        """Return the path that the id in the request's ``body`` names; None and ``[]`` are no id.

        Raise InvalidInput (13, status 400) if the ids differ, or if the body has no id and the route's id is ambiguous.
        """
        return choose_reading(self.readings, tuple(body) if body else None)

    def read_existing(self, body: Sequence[str] | None, read: Callable[[Levels], T]) -> T:
        """Return the result of ``read`` for the path that ``body`` names. Without an id in the body, it is the path that exists.

        Raise InvalidInput like ``require_match``, also if both readings of the route's id exist, and the errors of ``read``.
        """
        if body or len(self.readings) == 1:
            return read(self.require_match(body))
        results, missing = [], []
        for path in self.readings:
            try:
                results.append(read(path))
            except (NamespaceNotFound, TableNotFound) as error:
                missing.append(error)
        if not results:
            raise missing[0]
        return choose_reading(results, None)


def choose_reading(readings: Sequence[T], body: T | None) -> T:
    """Return the reading of a path segment that is equal to the value in the body; without one, the only reading.

    Raise InvalidInput like ``Identifier.require_match``.
    """
    if body is None:
        if len(readings) > 1:
            raise InvalidInput("a + in the route may be a plus or a space", hint="send a plus as %2B and a space as %20")
        return readings[0]
    if body not in readings:
        raise InvalidInput(f"the body names {json.dumps(body)}, the route names {json.dumps(readings[0])}")
    return body


def parse_id(text: str, delimiter: str) -> Levels:
    """Parse a decoded id. Raise InvalidInput for empty names, NUL characters, lone surrogates and too many levels."""
    if text in ("", delimiter):
        return ()
    path = tuple(text.split(delimiter))
    if not all(path):
        raise InvalidInput(f"the id {text!r} has an empty name", hint=f"join names with one {delimiter!r}")
    if not is_storable(text):
        raise InvalidInput("the id contains a NUL character or a lone surrogate, which is not allowed")
    if len(path) > _MAX_LEVELS:
        raise InvalidInput(f"the id has {len(path)} levels, allowed are {_MAX_LEVELS}")
    return path


def decode_segment(segment: str) -> tuple[str, ...]:
    """Decode the readings of a percent-encoded path segment: first with each ``+`` as a plus, then as a space.

    Raise InvalidInput if the segment is not UTF-8.
    """
    try:
        return tuple(dict.fromkeys(unquote(text, errors="strict") for text in (segment, segment.replace("+", " "))))
    except UnicodeDecodeError:
        raise InvalidInput("the id is not UTF-8") from None


Delimiter = Annotated[str, Query(min_length=1, max_length=16, description="separator of the names in the id")]


async def _identifier(
    id: Annotated[str, Path(max_length=8000, description="object id; the root is the delimiter itself")],  # noqa: A002 - the name in the URL's template
    request: Request,
    delimiter: Delimiter = DEFAULT_DELIMITER,
) -> Identifier:
    readings = tuple(parse_id(text, delimiter) for text in decode_segment(id))
    return Identifier(readings, is_form_encoded="user-agent" not in request.headers)


#: the route's id as a namespace; ``()`` is the root
NamespaceId = Annotated[Identifier, Depends(_identifier)]
#: the route's id as a table
TableId = Annotated[Identifier, Depends(_identifier)]


class EncodedPaths:
    """ASGI middleware: below ``/v1`` routes see the encoded path, so that an encoded slash in a name is not a separator.

    Path parameters are therefore percent-encoded. ``NamespaceId`` and ``TableId`` decode them, other parameters use
    ``decode_segment``. A slash at the end is removed, as lancedb's remote client sends one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_lance_path(scope["path"]) and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1").rstrip("/")}
        await self._app(scope, receive, send)
