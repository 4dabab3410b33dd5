"""What changed between two moments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api import past
from federator.api.context import CallerOf, Cursor, IndexOf, Limit
from federator.api.paging import documented_304
from federator.api.problems import documented
from federator.connector import InvalidInput
from federator.index.differences import How, Wanted

router = APIRouter(prefix="/api/v1", tags=["history"])

_WHEN = "a run's id, or a time: `2026-11-20`, `2026-11-20T08:30:00Z`, `-2d`"


@router.get(
    "/diff",
    response_model=past.Differences,
    responses={**documented_304(), **documented(400, 404, 409)},
    summary="What changed between two moments",
)
def get_diff(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    begin: Annotated[
        str | None, Query(alias="from", max_length=64, description=f"{_WHEN}; default: the last run but one")
    ] = None,
    end: Annotated[str | None, Query(alias="to", max_length=64, description="the same; default: now, or the last run")] = None,
    source: Annotated[str | None, Query(max_length=100, description="only what is in this source")] = None,
    path: Annotated[str, Query(max_length=4000, description="only what is at or below it: `source$namespace`")] = "",
    kind: Annotated[How | None, Query(description="only what was added, removed or changed")] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of objects that were added, removed or changed, by source and path, with each field before and after, the revision and run
    that first showed it, and the write of ours that did it; without one, others did."""
    below = past.below(path) or past.below(source or "")
    if source is not None and below[0] != source:
        raise InvalidInput(f"{path} is not in {source}")
    return past.diff(request, index, caller, begin, end, Wanted(below, kind), limit=limit, cursor=cursor)
