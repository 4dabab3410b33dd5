"""How fresh an answer of the protocols is: a header, since their bodies have no place for it.

``Federator-Freshness: lake_hive; revision=12; state=ok; crawled=2026-01-31T12:00:00Z`` tells of the id's source, as it was known a
second ago at most; where an answer is about all of them (the root, a list of all tables, the general spec), of each, by commas.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federator import logs
from federator.api.access import Caller
from federator.api.lance.errors import PREFIX, is_lance
from federator.api.lance.identifiers import DEFAULT_DELIMITER
from federator.index import DatabaseError, Index
from federator.index.freshness import Freshness, freshness
from federator.index.moments import iso
from federator.model.scopes import Scopes

HEADER = "Federator-Freshness"
#: seconds for which an answer may tell what was read for one before it
REMEMBERED = 1.0
#: sources that one header tells of at most; GET /api/v1/sources tells of all
MOST = 50
_KEPT = 1000
_log = logs.get(__name__)


class Fresh:
    """ASGI middleware, inside the guard. ``general`` are the paths of the general spec's operations."""

    def __init__(
        self, app: ASGIApp, *, index: Index, general: frozenset[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._index, self._general, self._clock = app, index, general, clock
        self._known: dict[tuple[str, ...], tuple[float, dict[str, str]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (is_lance(scope["path"]) or scope["path"] in self._general):
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = await self._told(scope)
                if told:
                    MutableHeaders(scope=message)[HEADER] = told
            await send(message)

        await self._app(scope, receive, sending)

    async def _told(self, scope: Scope) -> str:
        caller: Caller = scope["caller"]
        key = caller.scopes.texts
        until, known = self._known.get(key, (0.0, {}))
        if self._clock() >= until:
            try:
                known = await run_in_threadpool(self._read, caller.scopes)
            except DatabaseError as error:
                _log.warning("no freshness is told", error=str(error).splitlines()[0])
                return ""
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._clock() + REMEMBERED, known
        source = _source(scope)
        if source is not None:
            return known.get(source, "")
        return ", ".join(known.values()) if len(known) <= MOST else ""

    def _read(self, scopes: Scopes) -> dict[str, str]:
        return {name: _text(found) for name, found in freshness(self._index, scopes).items()}


def _text(found: Freshness) -> str:
    crawled = f"; crawled={iso(found.crawled_at)}" if found.crawled_at is not None else ""
    return f"{found.source}; revision={found.revision}; state={found.state}{crawled}"


def _source(scope: Mapping[str, object]) -> str | None:
    """The source of the id in a path of the protocol; None where there is none, or it is the root."""
    raw = scope.get("raw_path") or str(scope["path"]).encode()
    parts = raw.decode("latin-1").split("/") if isinstance(raw, bytes) else []
    if len(parts) < 5 or f"/{parts[1]}" != PREFIX:
        return None
    query = scope.get("query_string", b"")
    given = parse_qs(query.decode("latin-1") if isinstance(query, bytes) else "").get("delimiter", [DEFAULT_DELIMITER])
    text, delimiter = unquote(parts[3], errors="replace"), given[0]
    return None if text == delimiter else text.split(delimiter)[0]
