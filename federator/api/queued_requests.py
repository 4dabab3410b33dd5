"""How many requests a principal may have in the queue of the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from federator.api.problems import RequestRejected
from federator.store import Connection, requests

_MAX_UNFINISHED = 20
# Each one occupies the worker for up to ``[verify] timeout`` for each of its tables.
_MAX_VERIFICATIONS = 5
_RETRY_SECONDS = 5


def queue_once(connection: Connection, kind: str, argument: Mapping[str, Any], actor: str) -> requests.Request:
    """Queue a request for a run, or return the actor's equal one that is still queued.

    Raise RequestRejected (429) like ``queue_bounded``.
    """
    unfinished = requests.list_unfinished(connection, kind, actor=actor)
    for request in unfinished:
        # A run that has started may have read what the actor wants to be read again.
        if request.state == requests.QUEUED and request.argument == argument:
            return request
    _require_room(unfinished, kind, actor)
    return requests.queue_request(connection, kind, argument, actor=actor)


def queue_bounded(connection: Connection, kind: str, argument: Mapping[str, Any], actor: str) -> requests.Request:
    """Queue a request, even if an equal one is queued: after a pause and a resumption, a second pause has an effect again.

    Raise RequestRejected (429) if the actor has too many unfinished ones of this kind.
    """
    _require_room(requests.list_unfinished(connection, kind, actor=actor), kind, actor)
    return requests.queue_request(connection, kind, argument, actor=actor)


def _require_room(unfinished: Sequence[requests.Request], kind: str, actor: str) -> None:
    if len(unfinished) >= (_MAX_VERIFICATIONS if kind == "verify" else _MAX_UNFINISHED):
        raise RequestRejected(
            429, "Too many requests", f"{actor} has {len(unfinished)} requests of the kind {kind} that have not ended",
            headers={"Retry-After": str(_RETRY_SECONDS)},
        )  # fmt: skip
