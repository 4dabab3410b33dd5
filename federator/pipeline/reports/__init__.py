"""Reports as Spark SQL over the index: the details as CSV and Parquet, their figures as one page of HTML and as JSON.

The driver never holds the details: Spark computes them into Parquet, from which the figures are queried, and the files are written
batch by batch. What the page shows of a long answer is its beginning, with how much more there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from federator.index.readers import IndexReader
from federator.pipeline.reports.files import write_details, write_json
from federator.pipeline.reports.inputs import Inputs
from federator.pipeline.reports.page import write_page
from federator.pipeline.reports.queries import Query, queries
from federator.pipeline.reports.sections import Report, Section
from federator.pipeline.session import engine_errors

# Queries at once: each is small, and mostly waits for its plan.
_AT_ONCE = 4
#: rows of an answer that the page and the JSON show
SHOWN = {"tiles": 1, "bars": 25, "table": 50, "lines": 5000}


def make(
    spark: SparkSession, reader: IndexReader, kind: str, directory: Path, *, formats: Sequence[str], at: float, staging: Path
) -> int:
    """Writes a report of a kind into a directory: ``report.html``, ``report.json``, ``<kind>.csv``, ``<kind>.parquet``, as far as they
    are among the formats. ``at`` is its time, in seconds since the epoch. Returns the number of its details. Raises StateError."""
    first, *others = queries(kind)
    others = others if {"html", "json"} & set(formats) else []
    inputs = Inputs(spark, reader, staging)
    with engine_errors(f"make the report {kind}"), ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="report") as pool:
        inputs.read({name for query in (first, *others) for name in query.names}, pool)
        details = inputs.stage(_run(inputs, first, at, None), "details")
        total = details.count()
        sections = list(pool.map(lambda query: _section(query, _run(inputs, query, at, details)), others))
    files = write_details(staging / "report-details.parquet", directory, kind, formats)
    report = Report(kind, at, sections, total, [file.name for file in files])
    if "json" in formats:
        write_json(report, directory / "report.json")
    if "html" in formats:
        write_page(report, directory / "report.html")
    return total


@dataclass(frozen=True, slots=True)
class _Frames:
    """The tables that a query names, by name."""

    inputs: Inputs
    details: DataFrame | None

    def of(self, query: Query) -> dict[str, Any]:
        return {name: self.details if name == "details" else self.inputs.frame(name) for name in query.names}


def _run(inputs: Inputs, query: Query, at: float, details: DataFrame | None) -> DataFrame:
    # Spark gives each table a view of a name of its own for as long as the text is read.
    return inputs.spark.sql(query.sql, args={"now": at} if ":now" in query.sql else None, **_Frames(inputs, details).of(query))


def _section(query: Query, frame: DataFrame) -> Section:
    limit = SHOWN[query.shape]
    rows = [tuple(row) for row in frame.limit(limit + 1).collect()]
    total = len(rows) if len(rows) <= limit else frame.count()
    return Section(query.shape, query.title, tuple(frame.columns), rows[:limit], total)
