"""Plans: what a mirror would do, and the decision of a person about one that is held."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, IndexOf, ViewerOf
from federator.api.paging import documented_304, tagged
from federator.api.problems import documented
from federator.api.routes.runs import plan_row
from federator.connector.options import masked
from federator.index import Index, RowMapping
from federator.index.run_views import Viewer
from federator.sync.deciding import Decision, decide

router = APIRouter(prefix="/api/v1/plans", tags=["plans"])

Digest = Annotated[str, Path(max_length=128)]


@router.get("/{digest}", response_model=m.PlanView, responses={**documented_304(), **documented(400, 404)}, summary="One plan")
def get_plan(request: Request, index: IndexOf, viewer: ViewerOf, digest: Digest) -> Response:
    """A plan with every change, refusal and objection, for who may see both catalogs of its mirror whole."""
    with index.read() as connection:
        row = plan_row(connection, digest, viewer)
    return tagged(request, _view(row))


@router.post("/{digest}/approve", response_model=m.PlanView, responses=documented(400, 403, 404, 409), summary="Approve a plan")
def approve(index: IndexOf, caller: CallerOf, viewer: ViewerOf, digest: Digest) -> m.PlanView:
    """Lets a held plan be applied, as long as what it read still holds."""
    caller.require(Role.OPERATOR)
    return _decided(index, viewer, digest, "approved")


@router.post("/{digest}/reject", response_model=m.PlanView, responses=documented(400, 403, 404, 409), summary="Reject a plan")
def reject(index: IndexOf, caller: CallerOf, viewer: ViewerOf, digest: Digest) -> m.PlanView:
    """Keeps a plan from being applied."""
    caller.require(Role.OPERATOR)
    return _decided(index, viewer, digest, "rejected")


def _decided(index: Index, viewer: Viewer, digest: str, decision: Decision) -> m.PlanView:
    with index.read() as connection:
        known = plan_row(connection, digest, viewer)
    return _view(decide(index, known["digest"], decision, actor=viewer.name))


def _view(row: RowMapping) -> m.PlanView:
    return m.PlanView.model_validate({**row, "plan": masked(json.loads(row["body"]))})
