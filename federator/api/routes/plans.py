"""Plans: what a mirror would do, and what a person decides about one.

A decision names the plan that it is about twice, in the address and in ``If-Match``: what was looked at is what is decided.
"""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, ViewerOf
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import Refused, documented
from federator.api.routes.runs import applicable, plan_row
from federator.connector import InvalidInput
from federator.connector.options import masked
from federator.index import Connection, Index, RowMapping, plans, requests
from federator.index.run_views import Viewer
from federator.sync.deciding import Decision, decide

router = APIRouter(prefix="/api/v1/plans", tags=["plans"])

Digest = Annotated[str, Path(max_length=128)]
IfMatch = Annotated[
    str | None, Header(max_length=200, description="the plan's digest in quotes: what was looked at", examples=['"9f2c…"'])
]
STATES = ("ready", "held", "approved", "rejected", "applied", "outdated")
_DECIDES = documented(400, 403, 404, 409, 412, 428)


@router.get("", response_model=m.Plans, responses={**documented_304(), **documented(400)}, summary="Plans, newest first")
def get_plans(
    request: Request,
    index: IndexOf,
    viewer: ViewerOf,
    mirror: Annotated[str | None, Query(max_length=64)] = None,
    state: Annotated[
        str | None, Query(max_length=20, description="ready, held, approved, rejected, applied or outdated")
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """A page of plans of the mirrors that the caller may be told of, with how many changes and refusals each has."""
    if state is not None and state not in STATES:
        raise InvalidInput(f"{state!r} is no state of a plan", hint=f"states: {', '.join(STATES)}")
    listing = f"plans {mirror} {state}"
    last, _ = decode(cursor, listing, scopes=viewer.scopes)
    after = _position(last) if last else None
    mirrors = None if viewer.scopes.everything else list(viewer.mirrors)
    if mirror is not None:
        mirrors = [printable(mirror, "mirror")] if mirrors is None or mirror in mirrors else []
    with index.read() as connection:
        found = plans.page(connection, mirrors=mirrors, state=state, after=after, limit=limit + 1)
        shown = [summary(connection, row) for row in found[:limit]]
    end = json.dumps([found[limit - 1]["created_at"], found[limit - 1]["digest"]]) if len(found) > limit else None
    following = encode(listing, end, scopes=viewer.scopes) if end is not None else None
    return tagged(request, m.Plans(plans=shown, next=following))


@router.get("/{digest}", response_model=m.PlanView, responses={**documented_304(), **documented(400, 404)}, summary="One plan")
def get_plan(request: Request, index: IndexOf, viewer: ViewerOf, digest: Digest) -> Response:
    """A plan with every change, refusal and objection, for who may see both catalogs of its mirror whole."""
    with index.read() as connection:
        row = plan_row(connection, digest, viewer)
    return tagged(request, _view(row))


@router.post("/{digest}/approve", response_model=m.PlanView, responses=_DECIDES, summary="Approve a plan")
def approve(index: IndexOf, caller: CallerOf, viewer: ViewerOf, digest: Digest, if_match: IfMatch = None) -> m.PlanView:
    """Lets a held plan be applied, as long as what it read still holds."""
    caller.require(Role.OPERATOR)
    return _decided(index, viewer, digest, if_match, "approved")


@router.post("/{digest}/reject", response_model=m.PlanView, responses=_DECIDES, summary="Reject a plan")
def reject(index: IndexOf, caller: CallerOf, viewer: ViewerOf, digest: Digest, if_match: IfMatch = None) -> m.PlanView:
    """Keeps a plan from being applied."""
    caller.require(Role.OPERATOR)
    return _decided(index, viewer, digest, if_match, "rejected")


@router.post("/{digest}/apply", status_code=202, response_model=m.Requested, responses=_DECIDES, summary="Apply a plan")
def apply(
    index: IndexOf, caller: CallerOf, viewer: ViewerOf, digest: Digest, response: Response, if_match: IfMatch = None
) -> m.Requested:
    """Asks the worker to apply a plan that is ready or approved. The request's address is in `Location`; each change is made only
    where its object still is as the plan read it."""
    caller.require(Role.OPERATOR)
    with index.write() as connection:
        row = _matched(connection, viewer, digest, if_match)
        applicable(connection, row["digest"], viewer)
        asked = requests.add(connection, "apply", {"plans": [row["digest"]]}, actor=caller.name)
    response.headers["Location"] = f"/api/v1/requests/{asked.id}"
    return m.Requested.model_validate(asked)


def summary(connection: Connection, row: RowMapping) -> m.PlanSummary:
    """A plan's row with its counts."""
    changes, refusals = plans.counts(connection, row["digest"])
    return m.PlanSummary.model_validate({**row, "changes": changes, "refusals": refusals})


def _matched(connection: Connection, viewer: Viewer, digest: str, if_match: str | None) -> RowMapping:
    """The plan's row. Raises Refused without If-Match (428), and where it names another plan (412)."""
    if if_match is None:
        raise Refused(428, "Precondition required", f'If-Match is missing: send the plan\'s digest, If-Match: "{digest[:64]}"')
    row = plan_row(connection, digest, viewer)
    if if_match.strip().strip('"') != row["digest"]:
        raise Refused(412, "Precondition failed", f"If-Match names another plan than {digest[:12]}: look at this one first")
    return row


def _position(last: str) -> tuple[float, str]:
    at, digest = json.loads(last)
    return float(at), str(digest)


def _decided(index: Index, viewer: Viewer, digest: str, if_match: str | None, decision: Decision) -> m.PlanView:
    with index.read() as connection:
        known = _matched(connection, viewer, digest, if_match)
    return _view(decide(index, known["digest"], decision, actor=viewer.name))


def _view(row: RowMapping) -> m.PlanView:
    return m.PlanView.model_validate({**row, "plan": masked(json.loads(row["body"]))})
