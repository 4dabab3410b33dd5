"""Health checks: liveness and readiness. Health checks send no token, so each route of this module is open to everybody."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from federator.api.dependencies import IndexDep
from federator.api.models.base import ResponseModel
from federator.api.problems import RequestRejected, problem_docs
from federator.connector import StateError
from federator.store import migrations

router = APIRouter()


class Health(ResponseModel):
    status: Literal["ok"] = "ok"


@router.get("/healthz", response_model=Health, responses=problem_docs(), summary="Liveness")
async def healthz() -> Health:
    """Always ok while the process is alive. It depends on nothing else."""
    return Health()


@router.get("/readyz", response_model=Health, responses=problem_docs(), summary="Readiness")
def readyz(index: IndexDep) -> Health:
    """Ok if the index is reachable and migrated. An unavailable catalog does not change it."""
    try:
        migrations.require_current_schema(index)
    except StateError as error:
        raise RequestRejected(503, "Not ready", error.message) from None
    return Health()
