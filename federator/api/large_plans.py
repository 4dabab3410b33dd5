"""Responses about large plans. A process of its own makes each response and writes it to a file, from which this process sends it.

50,000 changes take a quarter of a gigabyte, and more than a second in which no other thread of a process would run. The module has both
sides; the process is ``python -m federator.api.large_plans``.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fastapi import Request, Response

from federator.api.models.base import to_json
from federator.api.models.plans import PlanView
from federator.api.paging import make_etag, not_modified
from federator.api.plan_access import get_visible_plan
from federator.api.plan_decisions import (
    ApprovalQuestion,
    build_approval_question,
    decide_visible_plan,
    queue_application,
    queue_applications,
)
from federator.api.plan_view import build_plan_view, plan_sources
from federator.api.problems import NotFound, RequestRejected
from federator.api.spooled_response import SpooledResponse
from federator.apply.plan_decisions import Decision
from federator.connector import FederatorError, PermissionDenied, ServiceUnavailable, StateError
from federator.data.spool import Spool
from federator.model.scopes import Scopes
from federator.runtime.child_process import ChildMemoryExceeded, ChildProcess, ChildProcessDied, serve_requests
from federator.runtime.redaction import list_known_secrets, register_secret
from federator.settings import Settings
from federator.store import Index, open_index
from federator.store.plans import find_mirror
from federator.store.requests import Request as QueuedRequest
from federator.views.plans import VisiblePlan
from federator.views.visibility import Visibility

#: bytes of the responses that are being sent to one principal
SPOOL_BYTES = 1 << 28
_MAX_SECONDS = 120.0
_MAX_MEMORY = 2 << 30
# What the process may raise besides RequestRejected, a special kind before the general one.
_PROBLEMS: Sequence[type[FederatorError]] = (NotFound, PermissionDenied, StateError)


def large_plan_response(
    request: Request, index: Index, settings: Settings, visibility: Visibility, digest: str
) -> Response:  # fmt: skip
    """Return the response with a plan, or 304 if the client already has it. Raise NotFound if there is no such plan any more.

    Like the functions below, raise RequestRejected (413) if the process would take too much memory, or ServiceUnavailable if it takes
    too long.
    """
    return _respond(request, index, visibility, "plan", digest=digest, sources=_sources(index, settings, digest))


def large_decision_response(
    request: Request, index: Index, settings: Settings, visibility: Visibility, digest: str, if_match: str, decision: Decision,
    comment: str | None,
) -> Response:  # fmt: skip
    """Return the response to ``decide_visible_plan``. Raise as it does."""
    return _respond(
        request, index, visibility, "decision", digest=digest, sources=_sources(index, settings, digest),
        if_match=if_match, decision=decision, comment=comment,
    )  # fmt: skip


def large_application_response(
    request: Request, index: Index, visibility: Visibility, digest: str, if_match: str
) -> Response:  # fmt: skip
    """Return the response to ``queue_application``. Raise as it does."""
    return _respond(request, index, visibility, "application", digest=digest, if_match=if_match)


def large_applications_response(request: Request, index: Index, visibility: Visibility, digests: Sequence[str]) -> Response:
    """Return the response to ``queue_applications``. Raise as it does."""
    return _respond(request, index, visibility, "applications", digests=digests)


def large_question_response(request: Request, index: Index, visibility: Visibility, digest: str) -> Response:
    """Return the response to ``build_approval_question``. Raise as it does."""
    return _respond(request, index, visibility, "question", digest=digest)


def request_url(number: int) -> str:
    """Return the URL of a queued request."""
    return f"/api/v1/requests/{number}"


def _sources(index: Index, settings: Settings, digest: str) -> list[str]:
    with index.read() as connection:
        return plan_sources(settings, find_mirror(connection, digest) or "")


def _respond(request: Request, index: Index, visibility: Visibility, subject: str, **arguments: object) -> Response:
    """Let the process call the function of ``_BODIES`` for ``subject``. Return its response, or 304 if the client already has it."""
    spool: Spool = request.app.state.spool
    with ExitStack() as stack:
        file = stack.enter_context(spool.open(visibility.name))
        result = _request_in_process({
            "index": index.engine.url.render_as_string(hide_password=False), "secrets": list_known_secrets(),
            "name": visibility.name, "scopes": visibility.scopes.texts, "mirrors": visibility.mirrors,
            "origins": dict(visibility.origins), "file": str(file.path), "subject": subject, "arguments": arguments,
        })  # fmt: skip
        if "problem" in result:
            raise _PROBLEMS[result["problem"]](result["message"], hint=result["hint"])
        if "rejected" in result:
            raise RequestRejected(*result["rejected"], headers=result["headers"])
        tag = make_etag(request, result["content_digest"])
        if (unchanged := not_modified(request, tag)) is not None:
            return unchanged
        response = SpooledResponse(file, "application/json", {"ETag": tag})
        if result["queued"] is not None:
            response.status_code, response.headers["Location"] = 202, request_url(result["queued"])
        # The response closes the file once it is sent.
        stack.pop_all()
        return response


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
    try:
        body = _BODIES[request["subject"]](index, visibility, **request["arguments"])
    except RequestRejected as error:
        return {"rejected": [error.status, error.title, error.message], "headers": error.headers}
    except tuple(_PROBLEMS) as error:
        number = next(number for number, kind in enumerate(_PROBLEMS) if isinstance(error, kind))
        return {"problem": number, "message": error.message, "hint": error.hint}
    content = to_json(body)
    Path(request["file"]).write_bytes(content)
    queued = body.id if isinstance(body, QueuedRequest) else None
    return {"content_digest": hashlib.sha256(content).hexdigest(), "queued": queued}


def _read(index: Index, visibility: Visibility, digest: str, sources: Sequence[str]) -> PlanView:
    with index.read() as connection:
        visible = get_visible_plan(connection, visibility, digest)
    return build_plan_view(index, visibility, visible, sources)


def _decide(index: Index, visibility: Visibility, digest: str, sources: Sequence[str], **decision: Any) -> PlanView:
    decided = decide_visible_plan(index, visibility, digest, **decision)
    return build_plan_view(index, visibility, VisiblePlan(decided), sources)


def _ask(index: Index, visibility: Visibility, digest: str) -> ApprovalQuestion:
    with index.read() as connection:
        return build_approval_question(connection, visibility, digest)


# By subject of a request to the process: the function that returns the body of the response.
_BODIES: Mapping[str, Callable[..., Any]] = {
    "plan": _read, "decision": _decide, "application": queue_application, "applications": queue_applications, "question": _ask,
}  # fmt: skip

if __name__ == "__main__":
    # This process handles one request. Its millions of objects have no cycles; searching for cycles took a third of the time.
    gc.disable()
    serve_requests(_write_response)
