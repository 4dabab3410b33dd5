"""Headers of protocol responses: freshness, for which their bodies have no field, and the version of LanceDB's dialect.

``Federator-Freshness: lake_hive; revision=12; state=ok; crawled=2026-01-31T12:00:00Z`` is the freshness of the id's source, at most a
second old. A response about all sources (the root, all tables, the general spec) lists all of them, separated by commas.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federator import logs
from federator.api.lance.errors import PREFIX, is_lance_path
from federator.api.lance.identifiers import DEFAULT_DELIMITER
from federator.api.principals import Principal
from federator.model.scopes import Scopes
from federator.runtime.text import first_line, format_utc
from federator.store import DatabaseError, Index
from federator.views.freshness import Freshness, list_freshness

HEADER = "Federator-Freshness"
#: the version of LanceDB's own service whose dialect is spoken (``lancedb_dialect``): its clients send several vectors in one query
#: from 0.2, structured full-text queries from 0.3, and writes in several parts from 0.4
DIALECT_HEADER, DIALECT = "phalanx-version", "0.3.0"
#: seconds for which freshness is cached
CACHE_SECONDS = 1.0
#: maximum number of sources in a header; with more, use GET /api/v1/sources
MAX_SOURCES = 50
_MAX_CACHED = 1000
_log = logs.get_logger(__name__)


class FreshnessMiddleware:
    """ASGI middleware behind the security middleware. ``general_paths``: the paths of the general spec's operations."""

    def __init__(
        self, app: ASGIApp, *, index: Index, general_paths: frozenset[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._index, self._general_paths, self._clock = app, index, general_paths, clock
        self._cache: dict[tuple[str, ...], tuple[float, dict[str, str]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (is_lance_path(scope["path"]) or scope["path"] in self._general_paths):
            await self._app(scope, receive, send)
            return

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                value = await self._header_value(scope)
                headers = MutableHeaders(scope=message)
                headers[DIALECT_HEADER] = DIALECT
                if value:
                    headers[HEADER] = value
            await send(message)

        await self._app(scope, receive, send_with_header)

    async def _header_value(self, scope: Scope) -> str:
        principal: Principal = scope["principal"]
        key = principal.scopes.texts
        expires_at, freshness = self._cache.get(key, (0.0, {}))
        if self._clock() >= expires_at:
            try:
                freshness = await run_in_threadpool(self._load, principal.scopes)
            except DatabaseError as error:
                _log.warning("freshness header omitted", error=first_line(error))
                return ""
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = self._clock() + CACHE_SECONDS, freshness
        source = _find_source(scope)
        if source is not None:
            return freshness.get(source, "")
        return ", ".join(freshness.values()) if len(freshness) <= MAX_SOURCES else ""

    def _load(self, scopes: Scopes) -> dict[str, str]:
        return {name: _format_freshness(freshness) for name, freshness in list_freshness(self._index, scopes).items()}


def _format_freshness(freshness: Freshness) -> str:
    crawled = f"; crawled={format_utc(freshness.crawled_at)}" if freshness.crawled_at is not None else ""
    return f"{freshness.source}; revision={freshness.revision}; state={freshness.state}{crawled}"


def _find_source(scope: Mapping[str, object]) -> str | None:
    """Return the source of the id in a protocol path; None if there is no id, or if it is the root."""
    raw = scope.get("raw_path") or str(scope["path"]).encode()
    parts = raw.decode("latin-1").split("/") if isinstance(raw, bytes) else []
    # "", "v1", "table" or "namespace", the id, the operation
    if len(parts) < 5 or f"/{parts[1]}" != PREFIX:
        return None
    query = scope.get("query_string", b"")
    delimiters = parse_qs(query.decode("latin-1") if isinstance(query, bytes) else "").get("delimiter", [DEFAULT_DELIMITER])
    text, delimiter = unquote(parts[3], errors="replace"), delimiters[0]
    return None if text == delimiter else text.split(delimiter)[0]
