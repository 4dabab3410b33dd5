"""Probes: is the process alive, and can it answer."""

from __future__ import annotations

from fastapi import APIRouter

from federator.api import models as m
from federator.api.context import IndexOf
from federator.api.problems import Refused, documented
from federator.connector import StateError
from federator.index import migrate

router = APIRouter(tags=["probes"])


@router.get("/healthz", response_model=m.Health, responses=documented(), summary="Is the process alive?")
async def healthz() -> m.Health:
    """Asks nothing but this process."""
    return m.Health()


@router.get("/readyz", response_model=m.Health, responses=documented(), summary="Can it answer?")
def readyz(index: IndexOf) -> m.Health:
    """The index is reachable and migrated. A catalog's outage changes nothing here."""
    try:
        migrate.check(index)
    except StateError as error:
        raise Refused(503, "Not ready", error.message) from None
    return m.Health()
