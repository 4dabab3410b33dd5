"""The question of ``approve_plan``, as a route of the tools only: a plan may be too large for a tool, but never for a decision."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from federator.api.bodies import ApiRoute
from federator.api.dependencies import IndexDep, VisibilityDep
from federator.api.large_plans import large_question_response
from federator.api.plan_access import measure_plan
from federator.api.plan_decisions import ApprovalQuestion, ask_for_approval
from federator.views.plans import bounding_memory

router = APIRouter(route_class=ApiRoute)


@router.get("/api/v1/plans/{digest}/question", response_model=ApprovalQuestion)
def get_question(
    request: Request, index: IndexDep, visibility: VisibilityDep, digest: str
) -> Response | ApprovalQuestion:  # fmt: skip
    """Return the question, which has few changes of a plan."""
    with bounding_memory(measure_plan(index, visibility, digest), visibility.name) as is_large:
        if is_large:
            return large_question_response(request, index, visibility, digest)
        with index.read() as connection:
            return ask_for_approval(connection, visibility, digest)
