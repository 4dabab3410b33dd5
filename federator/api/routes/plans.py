"""Plans: what a mirror would do, and the decision of a person about one that is held."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.context import ACTOR, IndexOf
from federator.api.paging import documented_304, tagged
from federator.api.problems import documented
from federator.api.routes.runs import plan_row
from federator.connector.options import masked
from federator.index import Index, RowMapping
from federator.sync.deciding import Decision, decide

router = APIRouter(prefix="/api/v1/plans", tags=["plans"])

Digest = Annotated[str, Path(max_length=128)]


@router.get("/{digest}", response_model=m.PlanView, responses={**documented_304(), **documented(400, 404)}, summary="One plan")
def get_plan(request: Request, index: IndexOf, digest: Digest) -> Response:
    """A plan with every change, refusal and objection."""
    with index.read() as connection:
        row = plan_row(connection, digest)
    return tagged(request, _view(row))


@router.post("/{digest}/approve", response_model=m.PlanView, responses=documented(400, 403, 404, 409), summary="Approve a plan")
def approve(index: IndexOf, digest: Digest) -> m.PlanView:
    """Lets a held plan be applied, as long as what it read still holds."""
    return _decided(index, digest, "approved")


@router.post("/{digest}/reject", response_model=m.PlanView, responses=documented(400, 403, 404, 409), summary="Reject a plan")
def reject(index: IndexOf, digest: Digest) -> m.PlanView:
    """Keeps a plan from being applied."""
    return _decided(index, digest, "rejected")


def _decided(index: Index, digest: str, decision: Decision) -> m.PlanView:
    with index.read() as connection:
        known = plan_row(connection, digest)
    return _view(decide(index, known["digest"], decision, actor=ACTOR))


def _view(row: RowMapping) -> m.PlanView:
    return m.PlanView.model_validate({**row, "plan": masked(json.loads(row["body"]))})
