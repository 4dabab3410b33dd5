"""Crawls per day: how many there were, how they ended, and how many tables the last one found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Integer, case, cast, func, select, true

from federator.model.scopes import Scopes
from federator.store import tables as t

_DAY_SECONDS = 86_400

run, part, stage = t.run.c, t.run_source.c, t.run_stage.c


@dataclass(frozen=True, slots=True)
class CrawlDay:
    """The crawls of a source that started on one day."""

    date: Annotated[str, Field(examples=["2026-11-24"], description="day in UTC")]
    crawls: Annotated[int, Field(examples=[96], description="number of crawls")]
    partial: Annotated[int, Field(examples=[1], description="crawls that did not read all namespaces")]
    failed: Annotated[int, Field(examples=[0], description="crawls that read nothing")]
    tables: Annotated[int | None, Field(examples=[118], description="tables in the last crawl of the day; null: all failed")]


def list_crawl_days(connection: Connection, scopes: Scopes, *, since: float) -> dict[str, list[CrawlDay]]:
    """Return the days with crawls that started at ``since`` (seconds since the epoch) or later, by source, oldest day first.

    Only sources that are visible as a whole are included, because the counts are those of whole sources.
    """
    whole = sorted({prefix[0] for prefix in scopes.prefixes if len(prefix) == 1})

    def covered(column: ColumnElement[str]) -> ColumnElement[bool]:
        return true() if scopes.covers_all else column.in_(whole)

    read = _read_results(connection, covered=covered(part.source), since=since)
    failed = _count_failures(connection, covered=covered(stage.subject), since=since)
    days_by_source: dict[str, list[CrawlDay]] = {}
    for source, day in sorted(read.keys() | failed.keys()):
        crawls, partial, tables = read.get((source, day), (0, 0, None))
        failures = failed.get((source, day), 0)
        date = datetime.fromtimestamp(day * _DAY_SECONDS, UTC).date().isoformat()
        days_by_source.setdefault(source, []).append(CrawlDay(date, crawls + failures, partial, failures, tables))
    return days_by_source


def _read_results(
    connection: Connection, *, covered: ColumnElement[bool], since: float
) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Return the number of crawls that read something, of the partial ones, and the tables of the last one, by source and day."""
    day, is_partial = _day(run.started_at), case((part.state == "partial", 1), else_=0)
    days = (
        select(part.source, day.label("day"), func.count().label("crawls"), func.sum(is_partial).label("partial"),
               func.max(part.run_id).label("last"))  # ids of runs sort by time
        .select_from(t.run_source.join(t.run, run.id == part.run_id))
        .where(run.started_at >= since, covered, part.state != "failed").group_by(part.source, day).subquery()
    )  # fmt: skip
    d, last = days.c, t.run_source.alias()
    joined = days.join(last, (last.c.run_id == d.last) & (last.c.source == d.source))
    rows = connection.execute(select(d.source, d.day, d.crawls, d.partial, last.c.tables).select_from(joined))
    return {(row.source, row.day): (row.crawls, row.partial, row.tables) for row in rows}


def _count_failures(connection: Connection, *, covered: ColumnElement[bool], since: float) -> dict[tuple[str, int], int]:
    """Return the number of crawls that read nothing, by source and day. They have a stage, and no result of a source."""
    day = _day(stage.started_at)
    failed = select(stage.subject, day, func.count()).where(
        stage.stage == "crawl", stage.state == "failed", stage.started_at >= since, covered
    )
    return {(source, number): count for source, number, count in connection.execute(failed.group_by(stage.subject, day))}


def _day(time: ColumnElement[float]) -> ColumnElement[int]:
    return cast(func.floor(time / _DAY_SECONDS), Integer)
