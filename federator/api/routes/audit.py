"""The audit record."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import documented
from federator.connector import InvalidInput
from federator.connector.options import masked
from federator.index import RowMapping, audit_log

router = APIRouter(prefix="/api/v1", tags=["audit"])


@router.get(
    "/audit",
    response_model=m.AuditEvents,
    responses={**documented_304(), **documented(400, 403)},
    summary="Sealed audit events, newest first",
)
def get_audit(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    kind: Annotated[str | None, Query(max_length=100, description="e.g. `write`, `plan_approved`")] = None,
    subject: Annotated[str | None, Query(max_length=4000, description="what it is about, e.g. `aws$sales$orders`")] = None,
    run: Annotated[str | None, Query(max_length=64, description="the run's id")] = None,
    since: Annotated[datetime | None, Query(description="not before; UTC where no zone is given")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """A page of events that fit every filter. Each carries its digest and the one it was sealed upon. For an admin who may see
    everything: a chain is proven whole or not at all."""
    caller.require_everything(Role.ADMIN)
    named = {"kind": kind, "subject": subject, "run": run}
    fixed = {name: printable(text, name) if text is not None else None for name, text in named.items()}
    scope = json.dumps(["audit", *fixed.values(), str(since)])
    before = _number(decode(cursor, scope)[0]) if cursor is not None else None
    wanted = audit_log.Filter(**fixed, since=_seconds(since) if since is not None else None)
    found = audit_log.newest(index, wanted, before=before, limit=limit + 1)
    end = encode(scope, str(found[limit - 1]["seq"])) if len(found) > limit else None
    return tagged(request, m.AuditEvents(events=[_event(row) for row in found[:limit]], next=end))


def _event(row: RowMapping) -> m.AuditEvent:
    return m.AuditEvent.model_validate({**row, "detail": masked(json.loads(row["event"])["detail"])})


def _seconds(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput("the cursor is not one of ours", hint="begin again without it")
    return int(text)
