"""What both clients share: settings of HTTP, parsing of responses, and what a waiting caller waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

import federator
from federator.client import models
from federator.client.calls import Call
from federator.client.errors import ClientError, RunNotStarted, error_for_response

T = TypeVar("T", bound=models.Model)
#: states of a request that never has a run
_ENDED = frozenset({"failed", "cancelled"})
#: states of a run or a request that is not finished
_ACTIVE = frozenset({"queued", "running"})


def http_options(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """Return the arguments of httpx's clients. Redirects are not followed, so the token reaches this service only.

    White space around the token is removed, as a file has it. Raise ClientError for a token that no header can have.
    """
    headers = {"User-Agent": f"lance-federator/{federator.__version__}", "Accept": "application/json"}
    if token is not None:
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise ClientError("the token contains characters that no token has")
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": url, "headers": headers, "timeout": timeout, "follow_redirects": False}


def request_options(call: Call[Any]) -> dict[str, Any]:
    return {
        "method": call.method,
        "url": call.url,
        "params": dict(call.query),
        "json": call.body,
        "headers": dict(call.headers),
    }


def parse_response(call: Call[T], response: httpx.Response) -> T:
    """Return the model of a successful response. Raise ClientError."""
    if not response.is_success:
        raise error_for_response(response)
    try:
        return call.model.model_validate_json(response.content)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the body"
        raise ClientError(
            f"{call.route}: the response is not a {call.model.__name__}: {where} is missing or of another type; "
            "use a client of the service's version"
        ) from None


def started_run(request: models.Request) -> str | None:
    """Return the run of a request; None if it is still queued. Raise RunNotStarted."""
    if request.run_id is None and request.state in _ENDED:
        raise RunNotStarted(f"the request {request.id} ({request.kind}) is {request.state}")
    return request.run_id


def is_finished(run: models.Run) -> bool:
    return run.finished_at is not None and run.state not in _ACTIVE


def stale_sources(sources: Iterable[models.Source], wanted_names: Collection[str], since: datetime) -> list[str]:
    """Return the sources whose last crawl is older than ``since`` or not ok; all sources, if no names are given.

    Raise ClientError for a name that the service does not show.
    """
    by_name = {source.name: source for source in sources}
    if unknown := sorted(set(wanted_names) - by_name.keys()):
        raise ClientError(f"the service has no source {unknown[0]!r}; known: {', '.join(by_name) or 'none'}")
    names = wanted_names or by_name
    return sorted(name for name in names if not _is_fresh(by_name[name].freshness, since))


def _is_fresh(freshness: models.Freshness, since: datetime) -> bool:
    return freshness.state == "ok" and freshness.crawled_at is not None and freshness.crawled_at >= since
