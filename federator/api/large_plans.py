"""Responses about large plans: a process of its own decides, and writes them to a file, from which they are sent.

50,000 changes take a quarter of a gigabyte, and more than a second in which no other thread of a process would run. The module has both
sides; the process is ``python -m federator.api.large_plans``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fastapi import Request, Response

from federator.api.models.base import to_json
from federator.api.paging import make_etag, not_modified
from federator.api.plan_access import get_visible_plan
from federator.api.plan_decisions import decide_visible_plan, queue_application
from federator.api.plan_view import build_plan_view, plan_sources
from federator.api.problems import NotFound, RequestRejected
from federator.api.spooled_response import SpooledResponse
from federator.connector import FederatorError, PermissionDenied, ServiceUnavailable, StateError
from federator.data.spool import Spool
from federator.model.scopes import Scopes
from federator.runtime.child_process import ChildMemoryExceeded, ChildProcess, ChildProcessDied, serve_requests
from federator.runtime.redaction import list_known_secrets, register_secret
from federator.settings import Settings
from federator.store import Index, open_index
from federator.store.plans import find_mirror
from federator.views.visibility import Visibility

#: bytes of the responses that are being sent to one principal
SPOOL_BYTES = 1 << 28
_MAX_SECONDS = 120.0
_MAX_MEMORY = 2 << 30
# What the process may raise besides RequestRejected, a special kind before the general one.
_PROBLEMS: Sequence[type[FederatorError]] = (NotFound, PermissionDenied, StateError)


def large_plan_response(
    request: Request,
    index: Index,
    settings: Settings,
    visibility: Visibility,
    digest: str,
    write: Mapping[str, Any] | None = None,
) -> Response:
    """Return the response with a plan, or 304 if the client already has it.

    ``write`` has the parameters of ``decide_visible_plan`` or, without a ``decision``, of ``queue_application``. Raise what these do,
    NotFound if there is no such plan any more, RequestRejected (413) if the process would take too much memory, or
    ServiceUnavailable if it takes too long.
    """
    with index.read() as connection:
        mirror = find_mirror(connection, digest) or ""
    spool: Spool = request.app.state.spool
    with ExitStack() as stack:
        file = stack.enter_context(spool.open(visibility.name))
        answer = _request_in_process({
            "index": index.engine.url.render_as_string(hide_password=False), "secrets": list_known_secrets(), "digest": digest,
            "name": visibility.name, "scopes": visibility.scopes.texts, "mirrors": visibility.mirrors,
            "origins": dict(visibility.origins), "sources": plan_sources(settings, mirror), "file": str(file.path),
            "write": write,
        })  # fmt: skip
        if "problem" in answer:
            raise _PROBLEMS[answer["problem"]](answer["message"], hint=answer["hint"])
        if "rejected" in answer:
            raise RequestRejected(*answer["rejected"])
        if "queued" in answer:
            queued = SpooledResponse(file, "application/json", {"Location": request_url(answer["queued"])})
            queued.status_code = 202
            stack.pop_all()
            return queued
        tag = make_etag(request, answer["content_digest"])
        if (unchanged := not_modified(request, tag)) is not None:
            return unchanged
        response = SpooledResponse(file, "application/json", {"ETag": tag})
        # The response closes the file once it is sent.
        stack.pop_all()
        return response


def request_url(number: int) -> str:
    """Return the URL of a queued request."""
    return f"/api/v1/requests/{number}"


def _request_in_process(request: Mapping[str, Any]) -> dict[str, Any]:
    process = ChildProcess("federator.api.large_plans")
    try:
        return process.request(request, _MAX_SECONDS, _MAX_MEMORY)
    except ChildMemoryExceeded:
        detail = f"the plan takes more than {_MAX_MEMORY >> 20} MiB of memory"
        raise RequestRejected(413, "Content too large", f"{detail}: federator plans show") from None
    except (ChildProcessDied, TimeoutError):
        hint = "federator plans show; it says whether a decision was recorded"
        raise ServiceUnavailable("the plan could not be read in time", hint=hint) from None
    finally:
        process.kill()


def _write_response(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write a response to the request's file."""
    for secret in request["secrets"]:
        register_secret(secret)
    index = open_index(request["index"])
    visibility = Visibility(request["name"], Scopes.parse(request["scopes"]), tuple(request["mirrors"]), request["origins"])
    write, digest = request["write"], request["digest"]
    try:
        if write and "decision" in write:
            decide_visible_plan(index, visibility, digest, **write)
        elif write:
            queued = queue_application(index, visibility, digest, **write)
            Path(request["file"]).write_bytes(to_json(queued))
            return {"queued": queued.id}
        with index.read() as connection:
            visible = get_visible_plan(connection, visibility, digest)
    except RequestRejected as error:
        return {"rejected": [error.status, error.title, error.message]}
    except tuple(_PROBLEMS) as error:
        number = next(number for number, kind in enumerate(_PROBLEMS) if isinstance(error, kind))
        return {"problem": number, "message": error.message, "hint": error.hint}
    content = to_json(build_plan_view(index, visibility, visible, request["sources"]))
    Path(request["file"]).write_bytes(content)
    return {"content_digest": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    serve_requests(_write_response)
