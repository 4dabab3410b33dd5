"""The route of the question that ``approve_plan`` asks. Only the tools have it: a plan may be too large for their results."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from federator.api.bodies import ApiRoute
from federator.api.dependencies import IndexDep, VisibilityDep
from federator.api.large_plans import large_question_response
from federator.api.plan_access import measure_plan
from federator.api.plan_decisions import ApprovalQuestion, build_approval_question
from federator.views.plans import bounding_memory

router = APIRouter(route_class=ApiRoute)


@router.get("/api/v1/plans/{digest}/question", response_model=ApprovalQuestion)
def get_question(
    request: Request, index: IndexDep, visibility: VisibilityDep, digest: str
) -> Response | ApprovalQuestion:  # fmt: skip
    """Return the question whether a held plan is to be approved. It shows only the first changes of the plan."""
    with bounding_memory(measure_plan(index, visibility, digest), visibility.name) as is_large:
        if is_large:
            return large_question_response(request, index, visibility, digest)
        with index.read() as connection:
            return build_approval_question(connection, visibility, digest)
