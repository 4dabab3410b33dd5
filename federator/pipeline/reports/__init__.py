"""Reports as Spark SQL over the index: details as CSV and Parquet, figures as an HTML page and as JSON.

The driver never holds all details. Spark writes them to Parquet, the figures are queried from there, and the files are written
batch by batch. The page shows the first rows of a long result, and how many more there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from federator.pipeline.reports.files import write_details, write_json
from federator.pipeline.reports.inputs import DETAILS, Inputs, staged_name
from federator.pipeline.reports.page import write_page
from federator.pipeline.reports.queries import ReportQuery, load_queries
from federator.pipeline.reports.sections import Report, Section
from federator.pipeline.spark_errors import translate_spark_errors
from federator.pipeline.staging_area import StagingArea
from federator.store.partition_reader import IndexReader

# The number of parallel queries. Each query is small, and mostly waits for its plan.
_MAX_PARALLEL_QUERIES = 4
#: the number of rows of a result that the page and the JSON show
MAX_ROWS_SHOWN = {"tiles": 1, "bars": 25, "table": 50, "lines": 5000}


def build_report(
    spark: SparkSession,
    reader: IndexReader,
    kind: str,
    directory: Path,
    *,
    formats: Sequence[str],
    at: float,
    staging: StagingArea,
) -> int:
    """Write a report of a kind into a directory, and return the number of its details.

    The files are ``report.html``, ``report.json``, ``<kind>.csv`` and ``<kind>.parquet``, as far as ``formats`` contains them.
    ``at`` is the report's time, in seconds since the epoch. Raise StateError if Spark fails.
    """
    details_query, *figure_queries = load_queries(kind)
    figure_queries = figure_queries if {"html", "json"} & set(formats) else []
    inputs = Inputs(spark, reader, staging)
    with (
        translate_spark_errors(f"build the report {kind}"),
        ThreadPoolExecutor(_MAX_PARALLEL_QUERIES, thread_name_prefix="report") as pool,
    ):
        inputs.load_tables({name for query in (details_query, *figure_queries) for name in query.table_names}, pool)
        details = inputs.materialize(_run_query(inputs, details_query, at, None), DETAILS)
        total = details.count()
        sections = list(pool.map(lambda query: _build_section(query, _run_query(inputs, query, at, details)), figure_queries))
    files = write_details(staging.read(staging.path(staged_name(DETAILS))), directory, kind, formats)
    report = Report(kind, at, sections, total, [file.name for file in files])
    if "json" in formats:
        write_json(report, directory / "report.json")
    if "html" in formats:
        write_page(report, directory / "report.html")
    return total


def _run_query(inputs: Inputs, query: ReportQuery, at: float, details: DataFrame | None) -> DataFrame:
    frames: dict[str, Any] = {name: details if name == DETAILS else inputs.get_frame(name) for name in query.table_names}
    # Spark registers each frame as a temporary view while it parses the query.
    return inputs.spark.sql(query.sql, args={"now": at} if ":now" in query.sql else None, **frames)


def _build_section(query: ReportQuery, frame: DataFrame) -> Section:
    limit = MAX_ROWS_SHOWN[query.shape]
    rows = [tuple(row) for row in frame.limit(limit + 1).collect()]
    total = len(rows) if len(rows) <= limit else frame.count()
    return Section(query.shape, query.title, tuple(frame.columns), rows[:limit], total)
