"""Routes of plans and their decisions.

A decision names its plan twice: in the URL, and in ``If-Match``, the digest of the plan or of its guarded changes, with that of a
decision about them. So a principal decides exactly on what it read.
"""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from federator.api.bodies import ApiRoute
from federator.api.dependencies import Cursor, IndexDep, Limit, MaxSizeDep, PrincipalDep, SettingsDep, VisibilityDep
from federator.api.freshness import list_source_freshness
from federator.api.large_plans import (
    large_application_response,
    large_decision_response,
    large_plan_response,
    request_url,
)
from federator.api.models.plans import ApplyRequested, PlanPage, PlanView
from federator.api.models.requests import DecisionRequest
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.plan_access import get_visible_plan, measure_plan
from federator.api.plan_decisions import decide_visible_plan, queue_application, require_if_match
from federator.api.plan_view import build_plan_view, plan_sources
from federator.api.principals import Role
from federator.api.problems import problem_docs
from federator.apply.plan_decisions import Decision
from federator.connector import InvalidInput
from federator.settings import Settings
from federator.store import Index
from federator.views import plans
from federator.views.plans import VisiblePlan, bounding_memory
from federator.views.positions import parse_position
from federator.views.visibility import Visibility

router = APIRouter(prefix="/api/v1/plans", route_class=ApiRoute)

Digest = Annotated[str, Path(max_length=128, description="complete digest of the plan")]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=200,
        description="`if_match` of the plan in quotes, or its digest if there was no decision about it",
        examples=['"9f2c…"'],
    ),
]
STATES = ("ready", "held", "approved", "rejected", "applied", "outdated")
_NO_COMMENT = DecisionRequest(comment=None)
_DECISION_RESPONSES = problem_docs(400, 403, 404, 409, 412, 428)


@router.get("", response_model=PlanPage, responses={**not_modified_docs(), **problem_docs(400)}, summary="Plans, newest first")
def get_plans(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    visibility: VisibilityDep,
    mirror: Annotated[str | None, Query(max_length=80, description="only plans of this mirror")] = None,
    state: Annotated[str | None, Query(max_length=20, description=f"{', '.join(STATES[:-1])} or {STATES[-1]}")] = None,
    run: Annotated[str | None, Query(max_length=64, description="only plans that this run created, by its id")] = None,
    digest: Annotated[
        str | None,
        Query(
            max_length=64,
            pattern="^[0-9a-f]+$",
            description="only plans whose digest begins with these characters",
            examples=["9f2c41d07a11"],
        ),
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """A page of plans with the numbers of their changes and refusals. If the principal's scopes do not cover both sources of a mirror,
    its plans are `partial`: only visible changes and refusals are counted."""
    if state is not None and state not in STATES:
        raise InvalidInput(f"{state!r} is not a plan state", hint=f"use one of {', '.join(STATES)}")
    listing = f"plans {mirror} {state} {run} {digest}"
    position, _ = decode_cursor(cursor, listing, scopes=visibility.scopes)
    after = _position(position) if position else None
    mirror_name = require_storable(mirror, "mirror") if mirror is not None else None
    run_id = require_storable(run, "run") if run is not None else None
    with index.read() as connection:
        visible = plans.list_visible_plans(
            connection, visibility, mirror=mirror_name, state=state, run=run_id, digest=digest, after=after, limit=limit + 1
        )
    summaries = visible[:limit]
    next_cursor = None
    if len(visible) > limit:
        last_position = json.dumps([summaries[-1].created_at, summaries[-1].digest])
        next_cursor = encode_cursor(listing, last_position, scopes=visibility.scopes)
    source_freshness = list_source_freshness(
        index, visibility.scopes, {name for plan in summaries for name in plan_sources(settings, plan.mirror)}
    )
    return etag_response(request, PlanPage(plans=summaries, next=next_cursor, freshness=source_freshness))


@router.get(
    "/{digest}", response_model=PlanView, responses={**not_modified_docs(), **problem_docs(400, 404)}, summary="One plan"
)
def get_plan(
    request: Request, index: IndexDep, settings: SettingsDep, visibility: VisibilityDep, max_size: MaxSizeDep, digest: Digest
) -> Response:  # fmt: skip
    """A plan with all changes, refusals and guards. If the principal's scopes do not cover both sources of the mirror, it has only
    the changes and refusals with visible origin and target, without guards and details."""
    with bounding_memory(measure_plan(index, visibility, digest, max_size), visibility.name) as is_large:
        if is_large:
            return large_plan_response(request, index, settings, visibility, digest)
        with index.read() as connection:
            visible = get_visible_plan(connection, visibility, digest)
        return etag_response(
            request, build_plan_view(index, visibility, visible, plan_sources(settings, visible.stored.mirror))
        )


@router.post("/{digest}/approve", response_model=PlanView, responses=_DECISION_RESPONSES, summary="Approve a plan")
def approve_plan(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    visibility: VisibilityDep,
    digest: Digest,
    if_match: IfMatch = None,
    body: DecisionRequest = _NO_COMMENT,
) -> Response | PlanView:
    """Approve a held plan. It can be applied as long as its preconditions hold. Needs a scope that covers the complete plan. The
    plan and the audit event keep the comment."""
    principal.require(Role.OPERATOR)
    return _decide(request, index, settings, visibility, digest, if_match, "approved", body)


@router.post("/{digest}/reject", response_model=PlanView, responses=_DECISION_RESPONSES, summary="Reject a plan")
def reject_plan(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    visibility: VisibilityDep,
    digest: Digest,
    if_match: IfMatch = None,
    body: DecisionRequest = _NO_COMMENT,
) -> Response | PlanView:
    """Reject a plan, so that it is not applied. Needs a scope that covers the complete plan. The plan and the audit event keep the
    comment."""
    principal.require(Role.OPERATOR)
    return _decide(request, index, settings, visibility, digest, if_match, "rejected", body)


@router.post(
    "/{digest}/apply", status_code=202, response_model=ApplyRequested, responses=_DECISION_RESPONSES, summary="Apply a plan"
)
def request_apply(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    visibility: VisibilityDep,
    digest: Digest,
    response: Response,
    if_match: IfMatch = None,
) -> Response | ApplyRequested:
    """Queue a request to apply the changes of a plan that need no further approval. The response lists the changes that wait for one;
    if all wait, the request is refused. `Location` is the URL of the request. A change is applied only if its preconditions still
    hold."""
    principal.require(Role.OPERATOR)
    match = require_if_match(if_match, digest)
    with bounding_memory(measure_plan(index, visibility, digest), visibility.name) as is_large:
        if is_large:
            return large_application_response(request, index, visibility, digest, match)
        queued = queue_application(index, visibility, digest, match)
    response.headers["Location"] = request_url(queued.id)
    return queued


def _position(text: str) -> tuple[float, str]:
    created_at, digest = parse_position(text, float, str)
    return created_at, digest


def _decide(
    request: Request, index: Index, settings: Settings, visibility: Visibility, digest: str, if_match: str | None, decision: Decision,
    body: DecisionRequest,
) -> Response | PlanView:  # fmt: skip
    match = require_if_match(if_match, digest)
    comment = require_storable((body.comment or "").strip(), "comment") or None
    with bounding_memory(measure_plan(index, visibility, digest), visibility.name) as is_large:
        if is_large:
            return large_decision_response(request, index, settings, visibility, digest, match, decision, comment)
        decided = decide_visible_plan(index, visibility, digest, match, decision, comment)
        return build_plan_view(index, visibility, VisiblePlan(decided), plan_sources(settings, decided.mirror))
