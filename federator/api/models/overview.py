"""The response with the overview."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.api.models.live import LiveState
from federator.api.models.sources import Source
from federator.store.field_types import OptionalTimestamp
from federator.views.crawl_history import CrawlDay
from federator.views.overview import AttentionItem
from federator.worker.jobs import JobView


class SourceHealth(Source):
    """A source, and how well its tables are."""

    states: dict[str, int] = Field(
        examples=[{"valid": 118, "missing": 2}],
        description="number of tables by verification state; `unverified`: not verified yet",
    )
    overdue_since: OptionalTimestamp = Field(
        description="time at which the second crawl after the last one was due by the schedule; null: not overdue, or no schedule"
    )
    job: JobView | None = Field(
        description="the job that crawls it; null: no schedule, or the principal's scopes do not cover the source as a whole"
    )


class OverviewContent(ResponseModel):
    """What exists, how well it is, and what needs attention."""

    tables: int = Field(examples=[120], description="number of tables of all visible sources")
    datasets: int = Field(examples=[98], description="number of datasets, which are declared locations")
    datasets_with_several_declarations: int = Field(
        examples=[20],
        description="number of datasets with more than one declaration; `GET /api/v1/datasets?several=true` lists them",
    )
    states: dict[str, int] = Field(
        examples=[{"valid": 118, "missing": 2}], description="number of tables by verification state"
    )
    drift: dict[str, int] = Field(examples=[{"high": 1}], description="number of open differences by severity")
    active_runs: int = Field(examples=[1], description="number of visible runs that are running")
    attention: list[AttentionItem] = Field(description="the most severe first, and the oldest of equal severity first")
    sources: list[SourceHealth] = Field(description="all visible sources, by name")
    freshness: FreshnessList


class Overview(OverviewContent):
    """The overview, and the state that the events after it are compared with."""

    live: LiveState = Field(
        description="live status at this time: an event of `GET /api/v1/events` that differs tells of a change"
    )


class SnoozeRequest(BaseModel):
    """What is hidden, and for how long."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"digest": "5f1d…", "hours": 24}})

    digest: str = Field(max_length=64, description="`digest` of the entry as it was read; 409 if it has changed since")
    hours: int = Field(
        strict=True, ge=1, le=720, description="duration; the entry is shown again at its end, or earlier when it changes"
    )


class SourceHistory(ResponseModel):
    """The crawls of a source, by day."""

    source: str = Field(examples=["lake_hive"])
    days: list[CrawlDay] = Field(description="days with crawls, the oldest first")


class OverviewHistory(ResponseModel):
    """Growth and crawls of the sources that are visible as a whole."""

    since: str = Field(examples=["2026-10-26"], description="first day, in UTC")
    sources: list[SourceHistory] = Field(description="sources that were crawled since then, by name")
    freshness: FreshnessList
