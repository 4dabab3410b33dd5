"""The asynchronous client: the methods of ``Client``, to be awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

import httpx

from federator.client import calls, models
from federator.client.calls import Call, RunKind, Severity
from federator.client.display import Listing
from federator.client.errors import ServiceUnreachable, WaitTimeout
from federator.client.transport import http_options, is_finished, parse_response, request_options, stale_sources, started_run

T = TypeVar("T", bound=models.Model)
M = TypeVar("M", bound=models.Model)


class AsyncClient:
    """A client of one service. Use it in an ``async with`` block, or await ``close``.

    ``url`` is the service's address, such as ``https://federator.example``. ``timeout`` is the limit of one request, in seconds.
    ``transport`` replaces httpx's own, for proxies and client certificates.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 30.0, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url
        self._http = httpx.AsyncClient(**http_options(url, token, timeout), transport=transport)

    def __repr__(self) -> str:
        return f"AsyncClient({self._url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def get_overview(self) -> models.Overview:
        """Return counts of tables and drift, and what needs attention."""
        return await self._send(calls.get_overview())

    async def get_principal(self) -> models.Me:
        """Return name, role and scopes of the token."""
        return await self._send(calls.get_principal())

    async def list_children(self, path: str = "") -> Listing[models.Node]:
        """List the children of an object id; the sources, if it is empty."""
        return await self._collect(
            lambda cursor: calls.list_children(path, cursor=cursor), lambda page: (page.nodes, page.next)
        )

    async def get_table(self, id: str) -> models.Table:  # noqa: A002 - the API's name
        """Return a table by its object id. Raise ApiError (404) if it does not exist or is not visible."""
        return await self._send(calls.get_table(id))

    async def explain(self, id: str) -> models.Explanation:  # noqa: A002 - the API's name
        """Return why an object exists or is absent."""
        return await self._send(calls.explain(id))

    async def search(self, query: str, *, limit: int = 50) -> models.SearchResults:
        """Return the best matches of a query."""
        return await self._send(calls.search(query, limit=limit))

    async def list_drift(
        self, *, kind: str | None = None, severity: Severity | None = None, source: str | None = None
    ) -> Listing[models.DriftView]:
        """List the open drift."""
        return await self._collect(
            lambda cursor: calls.list_drift(kind=kind, severity=severity, source=source, cursor=cursor),
            lambda page: (page.drift, page.next),
        )

    async def list_sources(self) -> Listing[models.Source]:
        return await self._collect(lambda cursor: calls.list_sources(cursor=cursor), lambda page: (page.sources, page.next))

    async def get_source(self, name: str) -> models.Source:
        return await self._send(calls.get_source(name))

    async def list_mirrors(self) -> Listing[models.Mirror]:
        return await self._collect(lambda cursor: calls.list_mirrors(cursor=cursor), lambda page: (page.mirrors, page.next))

    async def get_mirror(self, name: str) -> models.Mirror:
        return await self._send(calls.get_mirror(name))

    async def list_runs(self, *, limit: int = 20) -> Listing[models.ListedRun]:
        """List the newest runs."""
        return Listing((await self._send(calls.list_runs(limit=limit))).runs)

    async def get_run(self, id: str) -> models.RunDetail:  # noqa: A002 - the API's name
        return await self._send(calls.get_run(id))

    async def list_plans(
        self, *, mirror: str | None = None, state: str | None = None, run: str | None = None, digest: str | None = None,
        limit: int = 20,
    ) -> Listing[models.PlanSummary]:  # fmt: skip
        """List the newest plans, of one mirror, state or run, or whose digest begins with ``digest``."""
        return Listing(
            (await self._send(calls.list_plans(mirror=mirror, state=state, run=run, digest=digest, limit=limit))).plans
        )

    async def get_plan(self, digest: str) -> models.PlanView:
        return await self._send(calls.get_plan(digest))

    async def approve_plan(self, digest: str, comment: str | None = None, *, if_match: str | None = None) -> models.PlanView:
        """Approve a held plan. The service refuses it (409) if somebody rejected the plan, unless ``if_match`` is that of the rejected
        plan; likewise a rejection."""
        return await self._send(calls.approve_plan(digest, comment, if_match=if_match))

    async def reject_plan(self, digest: str, comment: str | None = None, *, if_match: str | None = None) -> models.PlanView:
        return await self._send(calls.reject_plan(digest, comment, if_match=if_match))

    async def apply_plan(self, digest: str) -> models.ApplyRequested:
        """Queue the application of a plan."""
        return await self._send(calls.apply_plan(digest))

    async def request_run(
        self, kind: RunKind, *, sources: Sequence[str] = (), mirrors: Sequence[str] = (), plans: Sequence[str] = (),
        tables: Sequence[str] = (), full: bool = False,
    ) -> models.Request:  # fmt: skip
        """Queue a run: ``sources`` belong to crawl, ``mirrors`` to plan and sync: empty means all. ``plans`` belong to apply, and
        ``tables`` (object ids) to verify."""
        call = calls.request_run(kind, sources=sources, mirrors=mirrors, plans=plans, tables=tables, full=full)
        return await self._send(call)

    async def get_request(self, id: int) -> models.Request:  # noqa: A002 - the API's name
        return await self._send(calls.get_request(id))

    async def cancel_run(self, id: str) -> models.Request:  # noqa: A002 - the API's name
        """Queue a request to stop a run between two writes."""
        return await self._send(calls.cancel_run(id))

    async def wait_for_run(
        self, request: models.Request, *, timeout: float = 3600.0, interval: float = 2.0
    ) -> models.RunDetail:
        """Return the finished run of a request, in whichever state it ended.

        ``timeout`` and ``interval`` (between two requests) are seconds. Raise RunNotStarted or WaitTimeout.
        """
        deadline = time.monotonic() + timeout
        while True:
            run_id = started_run(request)
            if run_id is not None and is_finished(run := await self.get_run(run_id)):
                return run
            await self._pause(deadline, interval, f"the request {request.id} ({request.kind}) has not finished")
            request = await self.get_request(request.id)

    async def wait_for_freshness(
        self, sources: Collection[str] = (), *, since: datetime, timeout: float = 3600.0, interval: float = 10.0
    ) -> Listing[models.Source]:
        """Wait until the last crawl of each source (default: all) is ok and not older than ``since``, which has a time zone.

        Raise WaitTimeout, with the sources that are not fresh, or ClientError for an unknown source.
        """
        deadline = time.monotonic() + timeout
        while True:
            listed = await self.list_sources()
            stale = stale_sources(listed, sources, since)
            if not stale:
                return Listing(source for source in listed if not sources or source.name in sources)
            await self._pause(deadline, interval, f"not crawled since {since.isoformat()}: {', '.join(stale)}")

    async def _send(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(**request_options(call))
        except httpx.TransportError as error:
            raise ServiceUnreachable.at(self._url, error) from error
        return parse_response(call, response)

    async def _collect(
        self, next_call: Callable[[str | None], Call[T]], split: Callable[[T], tuple[list[M], str | None]]
    ) -> Listing[M]:
        listing: Listing[M] = Listing()
        cursor: str | None = None
        while True:
            items, cursor = split(await self._send(next_call(cursor)))
            listing += items
            if cursor is None:
                return listing

    @staticmethod
    async def _pause(deadline: float, interval: float, text: str) -> None:
        if time.monotonic() + interval > deadline:
            raise WaitTimeout(text)
        await asyncio.sleep(interval)
