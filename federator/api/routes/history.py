"""Routes of the snapshots that can be selected, and of the differences between two of them."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep
from federator.api.freshness import list_source_freshness
from federator.api.models.history import DifferencePage, SnapshotInfo, SnapshotPage
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.principals import Principal
from federator.api.problems import problem_docs
from federator.api.snapshots import SnapshotsDep
from federator.connector import InvalidInput
from federator.model import parse_path_key, path_key
from federator.model.differences import DifferenceKind
from federator.store.snapshots import Snapshot
from federator.views import diff
from federator.views.positions import parse_position

router = APIRouter(prefix="/api/v1")

_SNAPSHOT_HELP = "a run id, or a time: `2026-11-20`, `2026-11-20T08:30:00Z`, `-2d`"


@router.get(
    "/snapshots", response_model=SnapshotPage, responses={**not_modified_docs(), **problem_docs(400)},
    summary="Snapshots that can be selected",
)  # fmt: skip
def get_snapshots(
    request: Request, principal: PrincipalDep, snapshots: SnapshotsDep, limit: Limit = 200, cursor: Cursor = None
) -> Response:
    """A page of the visible, finished runs that read or changed catalogs, newest first. Their ids are values of `as_of`, and of `from`
    and `to` of the differences. Those before the retention horizon of a source are left out."""
    before, _ = decode_cursor(cursor, "snapshots", scopes=principal.scopes)
    rows = snapshots.list_selectable(before or None, limit + 1)
    end = encode_cursor("snapshots", rows[limit - 1].run, scopes=principal.scopes) if len(rows) > limit else None
    return etag_response(request, SnapshotPage(snapshots=rows[:limit], next=end))


@router.get(
    "/diff",
    response_model=DifferencePage,
    responses={**not_modified_docs(), **problem_docs(400, 404, 409)},
    summary="Differences between two snapshots",
)
def get_diff(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    snapshots: SnapshotsDep,
    begin: Annotated[
        str | None, Query(alias="from", max_length=64, description=f"{_SNAPSHOT_HELP}; default: the run before the last one")
    ] = None,
    end: Annotated[
        str | None,
        Query(alias="to", max_length=64, description="the same formats; default: now, or the last run if `from` is not set"),
    ] = None,
    source: Annotated[str | None, Query(max_length=100, description="only objects of this source")] = None,
    path: Annotated[str, Query(max_length=4000, description="only this object and objects below it: `source$namespace`")] = "",
    kind: Annotated[DifferenceKind | None, Query(description="only this kind of difference")] = None,
    newest: Annotated[bool, Query(description="only the newest `limit` differences, newest first; not with a cursor")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of added, removed and changed objects, ordered by source and path, or the newest ones. Each has its fields in both
    snapshots and the revision and run that first had the difference. `by` is the mirror write that caused it; null: the change
    was made elsewhere."""
    path_prefix = parse_path_key(require_storable(path, "path")) or parse_path_key(require_storable(source or "", "path"))
    if source is not None and path_prefix[:1] != (source,):
        raise InvalidInput(f"the path {path} is not in the source {source}")
    if newest and cursor:
        raise InvalidInput("newest has one page only", hint="leave out newest or the cursor")
    filters = diff.DifferenceFilter(path_prefix, kind)
    listing = f"diff {begin} {end} {path_key(path_prefix)} {kind}"
    after, (first, last) = snapshots.resolve_page(listing, (begin, end), cursor)
    position: diff.DifferenceCursor | None = None
    if after:
        last_source, last_path, is_table = parse_position(after, str, str, int)
        position = (last_source, last_path, is_table)
    if newest:
        newest_differences = diff.list_newest_differences(index, first, last, filters, limit=limit, scopes=principal.scopes)
        page = diff.DifferencePage(newest_differences, None)
    else:
        page = diff.list_differences(index, first, last, filters, after=position, limit=limit, scopes=principal.scopes)
    sides = [_snapshot_info(snapshot, principal) for snapshot in (first, last)]
    body = DifferencePage.model_validate({
        "from": sides[0], "to": sides[1],
        "totals": diff.count_differences(index, first, last, filters, scopes=principal.scopes),
        "differences": page.differences,
        "next": snapshots.next_cursor(listing, json.dumps(page.next) if page.next else None, (first, last)),
        "freshness": list_source_freshness(index, principal.scopes, {name for side in sides for name in side.revisions}),
    })  # fmt: skip
    return etag_response(request, body)


def _snapshot_info(snapshot: Snapshot, principal: Principal) -> SnapshotInfo:
    revisions = {name: number for name, number in sorted(snapshot.revisions.items()) if principal.scopes.is_visible((name,))}
    return SnapshotInfo(at=snapshot.at, run=snapshot.run, revisions=revisions)
