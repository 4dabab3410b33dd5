"""Route of the overview."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator import audit
from federator.api.bodies import ApiRoute
from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep, TableCountsDep, VisibilityDep
from federator.api.freshness import list_source_freshness
from federator.api.models.base import to_json
from federator.api.models.live import LiveState
from federator.api.models.overview import Overview, OverviewContent, OverviewHistory, SnoozeRequest, SourceHealth, SourceHistory
from federator.api.models.sources import Source
from federator.api.paging import etag_response, not_modified_docs, require_storable
from federator.api.principals import Principal, Role
from federator.api.problems import NotFound, problem_docs
from federator.api.routes.jobs import list_visible_jobs
from federator.api.routes.sources import list_sources
from federator.api.server_sent_events import event_id
from federator.connector import StateError
from federator.settings import Settings
from federator.store import Index, snoozes
from federator.views import crawl_history, live, overview, runs
from federator.views.overview import AttentionItem
from federator.views.table_counts import TableCounts
from federator.views.visibility import Visibility
from federator.worker.jobs import JobView
from federator.worker.triggers import overdue_since

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

_HOUR_SECONDS = 3600.0
Key = Annotated[str, Path(max_length=4000, description="`key` of the entry", examples=["source:aws:failed"])]


@router.get(
    "/overview", response_model=Overview, responses={**not_modified_docs(), **problem_docs(400)}, summary="What needs attention"
)
def get_overview(
    request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep,
    table_counts: TableCountsDep,
) -> Response:  # fmt: skip
    """Held plans, sources that were not read as planned, tables that cannot be opened, drift, and notifications that were not
    delivered; the last only for operators with the scope `*`. Then every source with the verification states of its tables. All counts
    are those inside the principal's scopes."""
    return etag_response(request, build_overview(index, settings, principal, visibility, table_counts))


def build_overview(
    index: Index, settings: Settings, principal: Principal, visibility: Visibility, table_counts: TableCounts
) -> Overview:
    """Return the overview and the live status. The newest runs and plans are read first: no change is taken for a known one."""
    newest_runs, newest_plans = live.list_newest_runs(index, visibility), live.list_newest_plans(index, visibility)
    content = build_content(index, settings, principal, visibility, table_counts)
    state = LiveState(
        overview=event_id(to_json(content)),
        runs=event_id(repr(newest_runs).encode()),
        plans=event_id(repr(newest_plans).encode()),
        revisions={source.name: source.freshness.revision for source in content.sources},
    )
    return Overview(**dict(content), live=state)


def build_content(
    index: Index, settings: Settings, principal: Principal, visibility: Visibility, table_counts: TableCounts
) -> OverviewContent:
    """Return what the principal sees of the overview, without its live status."""
    sources = list_sources(index, settings, principal.scopes)
    overdue = {source.name: since for source in sources if (since := _overdue_since(source, time.time())) is not None}
    counts = table_counts.read(index, principal.scopes)
    with index.read() as connection:
        attention = overview.list_attention(
            connection, visibility, {source.name: source.freshness for source in sources}, counts.states, overdue,
            with_notifications=principal.role >= Role.OPERATOR and principal.scopes.covers_all, now=time.time(),
        )  # fmt: skip
        drift = overview.count_drift(connection, principal.scopes)
        active_runs = runs.count_active_runs(connection, visibility)
        jobs = list_visible_jobs(connection, settings, visibility)
    states = {name: {state: group.count for state, group in by_state.items()} for name, by_state in counts.states.items()}
    return OverviewContent(
        tables=sum(source.tables for source in sources),
        datasets=counts.datasets,
        datasets_with_several_declarations=counts.shared,
        states=dict(sorted(sum((Counter(by_state) for by_state in states.values()), Counter[str]()).items())),
        drift=drift,
        active_runs=active_runs,
        attention=attention,
        sources=[
            _health(source, states.get(source.name, {}), overdue.get(source.name), jobs.get(f"crawl:{source.name}"))
            for source in sources
        ],
        freshness=[source.freshness for source in sources if source.freshness.state != "never"],
    )


@router.get(
    "/overview/history", response_model=OverviewHistory, responses={**not_modified_docs(), **problem_docs(400)},
    summary="Growth and crawls by day",
)  # fmt: skip
def get_overview_history(
    request: Request, index: IndexDep, principal: PrincipalDep,
    days: Annotated[int, Query(ge=1, le=366, description="number of days, with today")] = 30,
) -> Response:  # fmt: skip
    """The crawls of each source by day in UTC, and the number of tables at the end of the day. It has the sources that the principal's
    scopes cover as a whole. Days without a crawl are left out."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=days - 1)
    with index.read() as connection:
        crawl_days = crawl_history.list_crawl_days(connection, principal.scopes, since=first.timestamp())
    body = OverviewHistory(
        since=first.date().isoformat(), sources=[SourceHistory(source=name, days=by_day) for name, by_day in crawl_days.items()],
        freshness=list_source_freshness(index, principal.scopes, crawl_days),
    )  # fmt: skip
    return etag_response(request, body)


@router.put("/attention/{key:path}", response_model=AttentionItem, responses=problem_docs(400, 404, 409), summary="Snooze")
def snooze_attention(
    key: Key, spec: SnoozeRequest, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep,
    table_counts: TableCountsDep,
) -> AttentionItem:  # fmt: skip
    """Hide an entry of `attention` from the principal until it changes, at the longest for the given hours. It stays in the response,
    with the field `snoozed_until`. Others see it as before. An audit event records it, unless the same request is repeated."""
    item = _find_item(key, build_content(index, settings, principal, visibility, table_counts))
    if item.digest != spec.digest:
        raise StateError(f"{key} has changed since it was read", hint="read GET /api/v1/overview again")
    now = time.time()
    until = snoozes.save_snooze(index, principal.name, key, item.digest, until=now + spec.hours * _HOUR_SECONDS, now=now)
    audit.seal_pending(index)
    return replace(item, snoozed_until=until)


@router.delete("/attention/{key:path}", response_model=AttentionItem, responses=problem_docs(400, 404), summary="End a snooze")
def end_snooze(
    key: Key, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep,
    table_counts: TableCountsDep,
) -> AttentionItem:  # fmt: skip
    """Show an entry of `attention` to the principal again. An audit event records it, if the entry was snoozed."""
    item = _find_item(key, build_content(index, settings, principal, visibility, table_counts))
    snoozes.delete_snooze(index, principal.name, key)
    audit.seal_pending(index)
    return replace(item, snoozed_until=None)


def _find_item(key: str, built: OverviewContent) -> AttentionItem:
    require_storable(key, "key")
    for item in built.attention:
        if item.key == key:
            return item
    raise NotFound(f"there is no entry {key!r} in what needs attention", hint="GET /api/v1/overview")


def _health(source: Source, states: dict[str, int], overdue_since: float | None, job: JobView | None) -> SourceHealth:
    """Return a source with its tables by verification state, the time since which its crawl is overdue, and the job that crawls it."""
    fields = {name: getattr(source, name) for name in Source.model_fields}
    return SourceHealth(**fields, states=states, overdue_since=overdue_since, job=job)


def _overdue_since(source: Source, now: float) -> float | None:
    crawled_at = source.freshness.crawled_at
    return overdue_since(source.schedule, crawled_at, now) if source.schedule and crawled_at is not None else None
