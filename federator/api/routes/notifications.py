"""Routes of the notifications."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep
from federator.api.models.notifications import NotificationPage
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.principals import Role
from federator.api.problems import NotFound, problem_docs
from federator.connector import StateError
from federator.store import notifications
from federator.store.notifications import Notification

router = APIRouter(prefix="/api/v1")


@router.get(
    "/notifications",
    response_model=NotificationPage,
    responses={**not_modified_docs(), **problem_docs(400, 403)},
    summary="Notifications, newest first",
)
def get_notifications(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    state: Annotated[Literal["queued", "sent", "dead"] | None, Query(description="only notifications in this state")] = None,
    channel: Annotated[str | None, Query(max_length=64, description="name of the channel below [notify]")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """A page of notifications, each with its first notices. Needs the role operator and the scope `*`, because one notification can
    cover many sources."""
    principal.require_full_scope(Role.OPERATOR)
    channel_name = require_storable(channel, "channel") if channel is not None else None
    listing = json.dumps(["notifications", state, channel_name])
    after, _ = decode_cursor(cursor, listing)
    with index.read() as connection:
        rows = notifications.list_notifications(
            connection, state=state, channel=channel_name, before=after or None, limit=limit + 1
        )
    next_cursor = encode_cursor(listing, rows[limit - 1].id) if len(rows) > limit else None
    return etag_response(request, NotificationPage(notifications=rows[:limit], next=next_cursor))


@router.post(
    "/notifications/{number}/retry",
    status_code=202,
    response_model=Notification,
    responses=problem_docs(400, 403, 404, 409),
    summary="Send a dead notification again",
)
def retry_notification(
    index: IndexDep, principal: PrincipalDep, number: Annotated[str, Path(max_length=64, description="id of the notification")]
) -> Notification:
    """Queue the notification again under the same id. The worker sends it."""
    principal.require_full_scope(Role.OPERATOR)
    with index.write() as connection:
        try:
            known = notifications.get_notification(connection, require_storable(number, "number"))
        except StateError as error:
            raise NotFound(error.message, hint=error.hint) from None
        return notifications.get_notification(connection, notifications.requeue_dead(connection, known.id))
