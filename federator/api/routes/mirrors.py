"""Routes of the mirrors: their rules, ledgers and states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, SettingsDep, VisibilityDep
from federator.api.freshness import list_source_freshness
from federator.api.models.mirrors import Mirror, MirrorPage
from federator.api.paging import etag_response, not_modified_docs, page_by_name
from federator.api.problems import NotFound, problem_docs
from federator.connector import StateError
from federator.settings import Settings
from federator.settings.toml_text import format_section
from federator.store import Index, job_states, ledger
from federator.store.runs import Run
from federator.views import plans, runs
from federator.views.plans import PlanSummary
from federator.views.visibility import Visibility

router = APIRouter(prefix="/api/v1/mirrors")

# Maximum number of held plans in a response; a new plan usually outdates the previous ones.
_MAX_HELD = 10


@router.get("", response_model=MirrorPage, responses={**not_modified_docs(), **problem_docs(400)}, summary="All mirrors")
def get_mirrors(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    visibility: VisibilityDep,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """All configured mirrors whose two sources the principal's scopes cover as a whole."""
    names, next_cursor = page_by_name(visibility.mirrors, "mirrors", cursor, limit, scopes=visibility.scopes)
    return etag_response(
        request, MirrorPage(mirrors=[_mirror_model(index, settings, visibility, name) for name in names], next=next_cursor)
    )


@router.get("/{name}", response_model=Mirror, responses={**not_modified_docs(), **problem_docs(400, 404)}, summary="One mirror")
def get_mirror(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    visibility: VisibilityDep,
    name: Annotated[str, Path(max_length=64, description="name of the mirror", examples=["hive-to-glue"])],
) -> Response:
    """One mirror: its rule, the numbers of owned tables and namespaces, its last plan and run, and plans that wait for a decision."""
    if name not in visibility.mirrors:
        raise NotFound(f"there is no mirror {name!r}", hint=f"mirrors: {', '.join(sorted(visibility.mirrors)) or 'none'}")
    return etag_response(request, _mirror_model(index, settings, visibility, name))


def _mirror_model(index: Index, settings: Settings, visibility: Visibility, name: str) -> Mirror:
    mirror, rule = settings.mirrors[name], settings.mirror_rule(name)
    with index.read() as connection:
        newest = plans.list_visible_plans(connection, visibility, mirror=name, limit=1)
        held = plans.list_visible_plans(connection, visibility, mirror=name, state="held", limit=_MAX_HELD)
        job = job_states.list_job_states(connection).get(f"sync:{name}", job_states.JobState())
        last_run_id = runs.find_last_run_of_mirror(connection, visibility, name)
        tables, namespaces = ledger.count_tables(connection, name), ledger.count_namespaces(connection, name)
    # Run ids sort by time, so the greatest is the newest. A plan has the id of the run that made it first; later runs may apply it.
    run_ids = filter(None, [last_run_id, *(plan.run_id for plan in newest), job.last_run_id])
    run = _visible_run(index, visibility, max(run_ids, default=None))
    return Mirror.model_validate({
        "name": name,
        "from": mirror.origin,
        "to": mirror.target,
        "schedule": mirror.schedule,
        "paused": job.paused,
        "state": _state(held, run),
        "tables": tables,
        "namespaces": namespaces,
        "last_plan": newest[0] if newest else None,
        "last_run": run,
        "held": held,
        "rule": asdict(rule),
        "toml": format_section(("mirrors", name), mirror.model_dump(mode="json", by_alias=True, exclude_defaults=True)),
        "digest": rule.digest,
        "freshness": list_source_freshness(index, visibility.scopes, (mirror.origin, mirror.target)),
    })  # fmt: skip


def _state(held: Sequence[PlanSummary], last_run: Run | None) -> str:
    if held:
        return "held"
    if last_run is None:
        return "never"
    # A run is "held" if the plan of any of its mirrors is. The plan of this mirror is not.
    return "ok" if last_run.state == "held" else last_run.state


def _visible_run(index: Index, visibility: Visibility, run_id: str | None) -> Run | None:
    if run_id is None:
        return None
    try:
        return runs.get_run_progress(index, visibility, run_id)[0]
    except StateError:
        # The run is not visible to the principal.
        return None
