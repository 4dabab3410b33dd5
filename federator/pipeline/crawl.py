"""Crawl: one Spark action that reads a source and writes the result to staging.

The driver plans the crawl tasks, and each Spark task reads one of them. The Python data source (``pipeline.datasource``) does the same
for other Spark sessions. It is not used here, because Spark starts Python processes of its own to create and plan it, which takes
longer than a small crawl.

A ``deadline`` is the time for the planning, and for each shard, in seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from federator.connector import SourceSpec
from federator.connector.call_metrics import CallCounts, CallMeter
from federator.model import Path
from federator.pipeline.crawl_columns import DDL
from federator.pipeline.shard_reader import CrawlTask, plan_crawl_tasks, read_crawl_task
from federator.pipeline.staging import crawl_batches
from federator.pipeline.staging_area import StagingArea
from federator.planning.incremental import NamedTables
from federator.planning.storable import storable_items
from federator.registry import crawl_concurrency


def stage_crawl(
    spark: SparkSession, spec: SourceSpec, staging: StagingArea, *, deadline: float, only: Sequence[Path] | None = None,
    tables: Sequence[NamedTables] = (),
) -> str:  # fmt: skip
    """Write the crawl of a source to staging and return the path.

    With ``only``, the crawl reads just these namespaces, and ``tables`` of others.

    An error of the catalog or a deadline becomes failed coverage. Only Spark's own errors are raised.
    """
    if hasattr(spark, "sparkContext"):  # Spark Connect has none
        spark.sparkContext.setJobDescription(f"crawl {spec.name}")
    tasks = plan_metered_tasks(spec, deadline, only, tables)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task, planning_calls = tasks[number]
                yield from read_task_batches(spec, task, planning_calls, deadline)

    crawl = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, DDL)
    return staging.write(crawl, f"{spec.name}.staged")


def plan_metered_tasks(
    spec: SourceSpec, deadline: float, only: Sequence[Path] | None = None, tables: Sequence[NamedTables] = ()
) -> list[tuple[CrawlTask, CallCounts]]:
    """Return the crawl tasks of a source, each with the calls that it reports besides its own: those of the planning for the first
    task, none for the others."""
    meter = CallMeter()
    tasks = plan_crawl_tasks(spec, crawl_concurrency(spec), deadline, meter, only=only, tables=tables)
    return [(task, meter.drain()) for task in tasks]


def read_task_batches(
    spec: SourceSpec, task: CrawlTask, planning_calls: CallCounts, deadline: float
) -> Iterator[pa.RecordBatch]:
    """Yield what a crawl task reads as Arrow batches of staging. The last row has the task's calls and ``planning_calls``."""
    meter = CallMeter()

    def drain_calls() -> str:
        counts = meter.drain()
        counts.merge(planning_calls)
        return counts.to_json()

    items = storable_items(read_crawl_task(spec, task, deadline, meter))
    return crawl_batches(items, source=spec.name, shard=task.number, began_at=time.time(), calls=drain_calls)
