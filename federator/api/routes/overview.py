"""Route of the overview."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep, VisibilityDep
from federator.api.freshness import list_source_freshness
from federator.api.models.overview import Overview, OverviewHistory, SourceHealth, SourceHistory
from federator.api.models.sources import Source
from federator.api.paging import etag_response, not_modified_docs
from federator.api.principals import Principal, Role
from federator.api.problems import problem_docs
from federator.api.routes.sources import list_sources
from federator.settings import Settings
from federator.store import Index
from federator.views import crawl_history, overview, runs
from federator.views.runs import Visibility
from federator.worker.triggers import overdue_since

router = APIRouter(prefix="/api/v1", tags=["overview"])


@router.get(
    "/overview", response_model=Overview, responses={**not_modified_docs(), **problem_docs(400)}, summary="What needs attention"
)
def get_overview(
    request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, visibility: VisibilityDep
) -> Response:
    """Held plans, sources that were not read as planned, tables that cannot be opened, drift, and notifications that were not
    delivered; the last only for operators with the scope `*`. Then every source with the verification states of its tables. All counts
    are those inside the principal's scopes."""
    return etag_response(request, build_overview(index, settings, principal, visibility))


def build_overview(index: Index, settings: Settings, principal: Principal, visibility: Visibility) -> Overview:
    """Return the overview as the principal sees it."""
    sources = list_sources(index, settings, principal.scopes)
    overdue = {source.name: since for source in sources if (since := _overdue_since(source, time.time())) is not None}
    with index.read() as connection:
        states = overview.count_states(connection, principal.scopes)
        attention = overview.list_attention(
            connection, visibility, {source.name: source.freshness for source in sources}, states, overdue,
            with_notifications=principal.role >= Role.OPERATOR and principal.scopes.covers_all,
        )  # fmt: skip
        drift = overview.count_drift(connection, principal.scopes)
        active_runs = runs.count_active_runs(connection, visibility)
    return Overview(
        tables=sum(source.tables for source in sources),
        states=dict(sorted(sum((Counter(counts) for counts in states.values()), Counter[str]()).items())),
        drift=drift,
        active_runs=active_runs,
        attention=attention,
        sources=[_health(source, states.get(source.name, {}), overdue.get(source.name)) for source in sources],
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
        found = crawl_history.list_crawl_days(connection, principal.scopes, since=first.timestamp())
    body = OverviewHistory(
        since=first.date().isoformat(), sources=[SourceHistory(source=name, days=each) for name, each in found.items()],
        freshness=list_source_freshness(index, principal.scopes, found),
    )  # fmt: skip
    return etag_response(request, body)


def _health(source: Source, states: dict[str, int], since: float | None) -> SourceHealth:
    fields = {name: getattr(source, name) for name in Source.model_fields}
    return SourceHealth(**fields, states=states, overdue_since=since)


def _overdue_since(source: Source, now: float) -> float | None:
    crawled_at = source.freshness.crawled_at
    return overdue_since(source.schedule, crawled_at, now) if source.schedule and crawled_at is not None else None
