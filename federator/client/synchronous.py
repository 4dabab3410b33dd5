"""The synchronous client."""

from __future__ import annotations

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


class Client:
    """A client of one service. Use it in a ``with`` block, or call ``close``.

    ``url`` is the service's address, such as ``https://federator.example``. ``timeout`` is the limit of one request, in seconds.
    ``transport`` replaces httpx's own, for proxies and client certificates.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._url = url
        self._http = httpx.Client(**http_options(url, token, timeout), transport=transport)

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get_overview(self) -> models.Overview:
        """Return counts of tables and drift, and what needs attention."""
        return self._send(calls.get_overview())

    def get_principal(self) -> models.Me:
        """Return name, role and scopes of the token."""
        return self._send(calls.get_principal())

    def list_children(self, path: str = "") -> Listing[models.Node]:
        """List the children of an object id; the sources, if it is empty."""
        return self._collect(lambda cursor: calls.list_children(path, cursor=cursor), lambda page: (page.nodes, page.next))

    def get_table(self, id: str) -> models.Table:  # noqa: A002 - the API's name
        """Return a table by its object id. Raise ApiError (404) if it does not exist or is not visible."""
        return self._send(calls.get_table(id))

    def explain(self, id: str) -> models.Explanation:  # noqa: A002 - the API's name
        """Return why an object exists or is absent."""
        return self._send(calls.explain(id))

    def search(self, query: str, *, limit: int = 50) -> models.SearchResults:
        """Return the best matches of a query."""
        return self._send(calls.search(query, limit=limit))

    def list_drift(
        self, *, kind: str | None = None, severity: Severity | None = None, source: str | None = None
    ) -> Listing[models.DriftView]:
        """List the open drift."""
        return self._collect(
            lambda cursor: calls.list_drift(kind=kind, severity=severity, source=source, cursor=cursor),
            lambda page: (page.drift, page.next),
        )

    def list_sources(self) -> Listing[models.Source]:
        return self._collect(lambda cursor: calls.list_sources(cursor=cursor), lambda page: (page.sources, page.next))

    def get_source(self, name: str) -> models.Source:
        return self._send(calls.get_source(name))

    def list_mirrors(self) -> Listing[models.Mirror]:
        return self._collect(lambda cursor: calls.list_mirrors(cursor=cursor), lambda page: (page.mirrors, page.next))

    def get_mirror(self, name: str) -> models.Mirror:
        return self._send(calls.get_mirror(name))

    def list_runs(self, *, limit: int = 20) -> Listing[models.ListedRun]:
        """List the newest runs."""
        return Listing(self._send(calls.list_runs(limit=limit)).runs)

    def get_run(self, id: str) -> models.RunDetail:  # noqa: A002 - the API's name
        return self._send(calls.get_run(id))

    def list_plans(
        self, *, mirror: str | None = None, state: str | None = None, run: str | None = None, digest: str | None = None,
        limit: int = 20,
    ) -> Listing[models.PlanSummary]:  # fmt: skip
        """List the newest plans, of one mirror, state or run, or whose digest begins with ``digest``."""
        return Listing(self._send(calls.list_plans(mirror=mirror, state=state, run=run, digest=digest, limit=limit)).plans)

    def get_plan(self, digest: str) -> models.PlanView:
        return self._send(calls.get_plan(digest))

    def approve_plan(self, digest: str, comment: str | None = None, *, if_match: str | None = None) -> models.PlanView:
        """Approve a held plan. The service refuses it (409) if somebody rejected the plan, unless ``if_match`` is that of the rejected
        plan; likewise a rejection."""
        return self._send(calls.approve_plan(digest, comment, if_match=if_match))

    def reject_plan(self, digest: str, comment: str | None = None, *, if_match: str | None = None) -> models.PlanView:
        return self._send(calls.reject_plan(digest, comment, if_match=if_match))

    def apply_plan(self, digest: str) -> models.ApplyRequested:
        """Queue the application of a plan."""
        return self._send(calls.apply_plan(digest))

    def request_run(
        self, kind: RunKind, *, sources: Sequence[str] = (), mirrors: Sequence[str] = (), plans: Sequence[str] = (),
        tables: Sequence[str] = (), full: bool = False,
    ) -> models.Request:  # fmt: skip
        """Queue a run: ``sources`` belong to crawl, ``mirrors`` to plan and sync: empty means all. ``plans`` belong to apply, and
        ``tables`` (object ids) to verify."""
        call = calls.request_run(kind, sources=sources, mirrors=mirrors, plans=plans, tables=tables, full=full)
        return self._send(call)

    def get_request(self, id: int) -> models.Request:  # noqa: A002 - the API's name
        return self._send(calls.get_request(id))

    def cancel_run(self, id: str) -> models.Request:  # noqa: A002 - the API's name
        """Queue a request to stop a run between two writes."""
        return self._send(calls.cancel_run(id))

    def wait_for_run(self, request: models.Request, *, timeout: float = 3600.0, interval: float = 2.0) -> models.RunDetail:
        """Return the finished run of a request, in whichever state it ended.

        ``timeout`` and ``interval`` (between two requests) are seconds. Raise RunNotStarted or WaitTimeout.
        """
        deadline = time.monotonic() + timeout
        while True:
            run_id = started_run(request)
            if run_id is not None and is_finished(run := self.get_run(run_id)):
                return run
            self._pause(deadline, interval, f"the request {request.id} ({request.kind}) has not finished")
            request = self.get_request(request.id)

    def wait_for_freshness(
        self, sources: Collection[str] = (), *, since: datetime, timeout: float = 3600.0, interval: float = 10.0
    ) -> Listing[models.Source]:
        """Wait until the last crawl of each source (default: all) is ok and not older than ``since``, which has a time zone.

        Raise WaitTimeout, with the sources that are not fresh, or ClientError for an unknown source.
        """
        deadline = time.monotonic() + timeout
        while True:
            listed = self.list_sources()
            stale = stale_sources(listed, sources, since)
            if not stale:
                return Listing(source for source in listed if not sources or source.name in sources)
            self._pause(deadline, interval, f"not crawled since {since.isoformat()}: {', '.join(stale)}")

    def _send(self, call: Call[T]) -> T:
        try:
            response = self._http.request(**request_options(call))
        except httpx.TransportError as error:
            raise ServiceUnreachable.at(self._url, error) from error
        return parse_response(call, response)

    def _collect(
        self, next_call: Callable[[str | None], Call[T]], split: Callable[[T], tuple[list[M], str | None]]
    ) -> Listing[M]:
        listing: Listing[M] = Listing()
        cursor: str | None = None
        while True:
            items, cursor = split(self._send(next_call(cursor)))
            listing += items
            if cursor is None:
                return listing

    @staticmethod
    def _pause(deadline: float, interval: float, text: str) -> None:
        if time.monotonic() + interval > deadline:
            raise WaitTimeout(text)
        time.sleep(interval)
