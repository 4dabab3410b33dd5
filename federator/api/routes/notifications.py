"""What was told, to which channel, and what could not be."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import NotFound, documented
from federator.connector import StateError
from federator.index import RowMapping, notifications

router = APIRouter(prefix="/api/v1", tags=["notifications"])


@router.get(
    "/notifications",
    response_model=m.Notifications,
    responses={**documented_304(), **documented(400, 403)},
    summary="Notifications, newest first",
)
def get_notifications(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    state: Annotated[Literal["queued", "sent", "dead"] | None, Query(description="only those in this state")] = None,
    channel: Annotated[str | None, Query(max_length=64, description="the channel's name below [notify]")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """A page of notifications with the first of their notices. For an operator who may see everything: one message tells of many
    sources."""
    caller.require_everything(Role.OPERATOR)
    named = printable(channel, "channel") if channel is not None else None
    scope = json.dumps(["notifications", state, named])
    before = decode(cursor, scope)[0] if cursor is not None else None
    with index.read() as connection:
        found = notifications.recent(connection, state=state, channel=named, before=before, limit=limit + 1)
    end = encode(scope, str(found[limit - 1]["id"])) if len(found) > limit else None
    return tagged(request, m.Notifications(notifications=[_answer(row) for row in found[:limit]], next=end))


@router.post(
    "/notifications/{number}/retry",
    status_code=202,
    response_model=m.Notification,
    responses=documented(400, 403, 404, 409),
    summary="Send a dead notification again",
)
def retry(
    index: IndexOf, caller: CallerOf, number: Annotated[str, Path(max_length=64, description="its id")]
) -> m.Notification:
    """Queues it under its old id; the worker sends it."""
    caller.require_everything(Role.OPERATOR)
    with index.write() as connection:
        try:
            found = notifications.get(connection, printable(number, "number"))
        except StateError as error:
            raise NotFound(error.message, hint=error.hint) from None
        notifications.retry(connection, found["id"])
        return _answer(notifications.get(connection, found["id"]))


def _answer(row: RowMapping) -> m.Notification:
    return m.Notification.model_validate({**row, **json.loads(row["body"])})
