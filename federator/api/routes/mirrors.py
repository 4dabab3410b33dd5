"""Mirrors: their rules, what they have put where, and how they stand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.context import Cursor, IndexOf, Limit, SettingsOf, ViewerOf
from federator.api.paging import by_name, documented_304, tagged
from federator.api.problems import NotFound, documented
from federator.api.routes.plans import summary
from federator.api.told import fresh
from federator.connector import StateError
from federator.index import Index, ledger, plan_views, run_views, schedules
from federator.index.run_views import Viewer
from federator.settings import Settings

router = APIRouter(prefix="/api/v1/mirrors", tags=["mirrors"])

# Held plans that are named; each new one outdates those before it.
_HELD = 10


@router.get("", response_model=m.Mirrors, responses={**documented_304(), **documented(400)}, summary="All mirrors")
def get_mirrors(
    request: Request, index: IndexOf, settings: SettingsOf, viewer: ViewerOf, limit: Limit = 200, cursor: Cursor = None
) -> Response:
    """Every configured mirror both of whose sources the caller may see whole."""
    names, following = by_name(viewer.mirrors, "mirrors", cursor, limit, scopes=viewer.scopes)
    return tagged(request, m.Mirrors(mirrors=[_mirror(index, settings, viewer, name) for name in names], next=following))


@router.get("/{name}", response_model=m.Mirror, responses={**documented_304(), **documented(400, 404)}, summary="One mirror")
def get_mirror(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    viewer: ViewerOf,
    name: Annotated[str, Path(max_length=64, description="the mirror", examples=["hive-to-glue"])],
) -> Response:
    """One mirror: its rule, how many tables and namespaces it has declared, its last plan and run, and what waits for a decision."""
    if name not in viewer.mirrors:
        raise NotFound(f"no mirror is called {name!r}", hint=f"mirrors: {', '.join(sorted(viewer.mirrors)) or 'none'}")
    return tagged(request, _mirror(index, settings, viewer, name))


def _mirror(index: Index, settings: Settings, viewer: Viewer, name: str) -> m.Mirror:
    mirror, rule = settings.mirrors[name], settings.rule(name)
    with index.read() as connection:
        made = plan_views.page(connection, viewer, mirror=name, limit=1)
        held = plan_views.page(connection, viewer, mirror=name, state="held", limit=_HELD)
        job = schedules.read(connection).get(f"sync:{name}", schedules.JobState())
        tables, namespaces = ledger.count_tables(connection, name), ledger.count_namespaces(connection, name)
    last_plan, waiting = [summary(seen) for seen in made], [summary(seen) for seen in held]
    # Ids sort by time.
    run = _run(index, viewer, max(filter(None, [*(seen.row["run_id"] for seen in made), job.last_run_id]), default=None))
    return m.Mirror.model_validate({
        "name": name,
        "from": mirror.origin,
        "to": mirror.target,
        "schedule": mirror.schedule,
        "paused": job.paused,
        "state": "held" if waiting else run.state if run else "never",
        "tables": tables,
        "namespaces": namespaces,
        "last_plan": last_plan[0] if last_plan else None,
        "last_run": run,
        "held": waiting,
        "rule": asdict(rule),
        "digest": rule.digest,
        "freshness": fresh(index, viewer.scopes, (mirror.origin, mirror.target)),
    })  # fmt: skip


def _run(index: Index, viewer: Viewer, run_id: str | None) -> m.Run | None:
    if run_id is None:
        return None
    try:
        return m.Run.model_validate(run_views.progress(index, viewer, run_id))
    except StateError:
        # A run that is not this caller's to see.
        return None
