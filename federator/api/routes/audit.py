"""Routes of the audit log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep
from federator.api.models.audit import AuditEventPage
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.principals import Role
from federator.api.problems import problem_docs
from federator.audit.verification import AuditState, read_state
from federator.connector import InvalidInput
from federator.model.audit_kinds import AuditKind
from federator.store import audit_log

router = APIRouter(prefix="/api/v1")


@router.get(
    "/audit",
    response_model=AuditEventPage,
    responses={**not_modified_docs(), **problem_docs(400, 403)},
    summary="Sealed audit events, newest first",
)
def get_audit(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    kind: Annotated[AuditKind | None, Query(description="only events of this kind")] = None,
    subject: Annotated[
        str | None, Query(max_length=4000, description="object or configuration item of the event, e.g. `aws$sales$orders`")
    ] = None,
    run: Annotated[str | None, Query(max_length=64, description="id of the run")] = None,
    since: Annotated[datetime | None, Query(description="earliest time; UTC if it has no time zone")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """A page of the events that match all filters, each with its digest and the previous one. Needs the role admin and the scope `*`,
    because a chain can only be verified as a whole."""
    principal.require_full_scope(Role.ADMIN)
    texts = {"kind": kind, "subject": subject, "run": run}
    values = {name: require_storable(text, name) if text is not None else None for name, text in texts.items()}
    # A cursor is valid only with the same filters.
    listing = json.dumps(["audit", *values.values(), str(since)])
    before = _parse_sequence(decode_cursor(cursor, listing)[0]) if cursor is not None else None
    filters = audit_log.AuditFilter(**values, since=_epoch_seconds(since) if since is not None else None)
    events = audit_log.list_recent_events(index, filters, before=before, limit=limit + 1)
    following = encode_cursor(listing, str(events[limit - 1].seq)) if len(events) > limit else None
    return etag_response(request, AuditEventPage(events=events[:limit], next=following))


@router.get(
    "/audit/state", response_model=AuditState, responses={**not_modified_docs(), **problem_docs(400, 403)},
    summary="State of the audit log's chain",
)  # fmt: skip
def get_audit_state(request: Request, index: IndexDep, principal: PrincipalDep) -> Response:
    """How far the chain is sealed, signed and anchored, and whether its newest 1,000 events are intact. `federator audit verify`
    verifies all of it, with the keys and the anchor. Needs the role admin and the scope `*`."""
    principal.require_full_scope(Role.ADMIN)
    return etag_response(request, read_state(index))


def _epoch_seconds(time: datetime) -> float:
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _parse_sequence(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput("the cursor is malformed", hint="omit the cursor to start again")
    return int(text)
