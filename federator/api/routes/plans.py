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
from federator.connector import StateError
from federator.index import Index, RowMapping, audit_log, plans

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
    return _decide(index, digest, "approved")


@router.post("/{digest}/reject", response_model=m.PlanView, responses=documented(400, 403, 404, 409), summary="Reject a plan")
def reject(index: IndexOf, digest: Digest) -> m.PlanView:
    """Keeps a plan from being applied."""
    return _decide(index, digest, "rejected")


def _decide(index: Index, digest: str, decision: str) -> m.PlanView:
    with index.write() as connection:
        row = plan_row(connection, digest)
        if row["state"] not in ("held", "ready", "approved", "rejected"):
            raise StateError(f"the plan is {row['state']}", hint="plan again")
        plans.decide(connection, digest, decision, ACTOR)
        detail = {"plan": digest, "before": row["state"]}
        audit_log.append(
            connection, f"plan_{decision}", actor=ACTOR, run_id=row["run_id"], subject=row["mirror"], detail=detail
        )
        return _view(plan_row(connection, digest))


def _view(row: RowMapping) -> m.PlanView:
    return m.PlanView.model_validate({**row, "plan": m.masked(json.loads(row["body"]))})
