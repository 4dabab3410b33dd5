"""The ``{id}`` of a route: the names from the tree's root, ``[source, ...the source's own levels]``, joined by the ``delimiter``.

The root is the delimiter itself. A name that holds the delimiter is addressed with another one. Routes take ``NamespaceId`` or
``TableId`` and give the id in the body, where there is one, to ``Identifier.same``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query
from starlette.types import ASGIApp, Receive, Scope, Send

from federator.api.lance.errors import is_lance
from federator.connector import InvalidInput
from federator.model import Path as Levels
from federator.model import path_key

DEFAULT_DELIMITER = "$"
#: deeper than any catalog is
_MOST_LEVELS = 64


@dataclass(frozen=True, slots=True)
class Identifier:
    """Where a request points to: ``path`` from the tree's root, ``()`` being the root; and the delimiter that was used."""

    path: Levels
    delimiter: str = DEFAULT_DELIMITER

    @property
    def source(self) -> str:
        """The first level. Raises InvalidInput for the root, which belongs to no source."""
        if not self.path:
            raise InvalidInput("the root holds the sources only", hint="an id begins with a source's name")
        return self.path[0]

    def same(self, body: Sequence[str] | None) -> Levels:
        """The path; ``body`` is the id that the request's body names. Raises InvalidInput (13, so 400) where the two differ."""
        if body is not None and tuple(body) != self.path:
            raise InvalidInput(f"the body names {list(body)!r}, the route names {list(self.path)!r}")
        return self.path

    def joined(self, path: Levels) -> str:
        """A path as this request writes ids."""
        return self.delimiter.join(path) or self.delimiter


def parse(text: str, delimiter: str = DEFAULT_DELIMITER) -> Identifier:
    """The identifier of a decoded text. Raises InvalidInput for an empty name, and for what is in no name."""
    if not delimiter:
        raise InvalidInput("the delimiter is empty")
    if text in ("", delimiter):
        return Identifier((), delimiter)
    path = tuple(text.split(delimiter))
    if not all(path):
        raise InvalidInput(f"the id {text!r} has an empty name", hint=f"names are joined by one {delimiter!r}")
    if "\0" in text:
        raise InvalidInput("the id has a NUL character, which is in no name")
    if len(path) > _MOST_LEVELS:
        raise InvalidInput(f"the id has {len(path)} levels; {_MOST_LEVELS} is the most")
    return Identifier(path, delimiter)


def decoded(segment: str) -> str:
    """A percent-encoded segment of a path. Raises InvalidInput where that is no UTF-8."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput("the id is no UTF-8 text") from None


Delimiter = Annotated[str, Query(max_length=16, description="what joins the names of the id")]


async def _identified(
    id: Annotated[str, Path(max_length=8000, description="the names from the root, joined; the root is the delimiter itself")],  # noqa: A002 - the name in the URL's template
    delimiter: Delimiter = DEFAULT_DELIMITER,
) -> Identifier:
    return parse(decoded(id), delimiter)


def described(path: Levels) -> str:
    """A path as messages show it."""
    return path_key(path) or "the root"


#: the route's id as a namespace; ``()`` is the root
NamespaceId = Annotated[Identifier, Depends(_identified)]
#: the route's id as a table
TableId = Annotated[Identifier, Depends(_identified)]


class EncodedPaths:
    """ASGI middleware: below ``/v1`` routes see the path as it was sent, so that an encoded slash in a name separates nothing.

    What a route takes from the path is percent-encoded therefore; ``NamespaceId`` and ``TableId`` decode it, others call ``decoded``.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_lance(scope["path"]) and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)
