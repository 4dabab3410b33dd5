"""Crawl: one Spark action that reads a source and writes the result to staging.

The driver divides the crawl into tasks, and Spark's tasks read them. A Python data source (``pipeline.datasource``) would do the same,
but Spark looks it up, creates it and plans it in Python processes of its own, which takes longer than a small crawl.
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
from federator.planning.storable import storable_items
from federator.registry import get_connector


def stage_crawl(
    spark: SparkSession, spec: SourceSpec, staging: StagingArea, *, deadline: float, only: Sequence[Path] | None = None
) -> str:
    """Write the crawl of a source, or only of the namespaces ``only``, to staging, and return its path.

    There is one job per source, whose tasks are the source's crawl tasks.
    """
    if hasattr(spark, "sparkContext"):  # Spark Connect has none
        spark.sparkContext.setJobDescription(f"crawl {spec.name}")
    planned = plan_metered_tasks(spec, deadline, only)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task, calls = planned[number]
                yield from read_task_batches(spec, task, calls, deadline)

    crawl = spark.range(0, len(planned), 1, len(planned)).mapInArrow(read, DDL)
    return staging.write(crawl, f"{spec.name}.staged")


def plan_metered_tasks(
    spec: SourceSpec, deadline: float, only: Sequence[Path] | None = None
) -> list[tuple[CrawlTask, CallCounts]]:
    """Return the crawl tasks of a source. The first of them has the calls of the planning."""
    concurrency, meter = get_connector(spec.impl).crawl_concurrency(spec.properties), CallMeter()
    tasks = plan_crawl_tasks(spec, concurrency, deadline, meter, only=only)
    return [(task, meter.drain()) for task in tasks]


def read_task_batches(spec: SourceSpec, task: CrawlTask, planned: CallCounts, deadline: float) -> Iterator[pa.RecordBatch]:
    """Yield what a crawl task reads as Arrow batches of staging. The last row has its calls and those of ``planned``."""
    meter = CallMeter()

    def calls() -> str:
        counts = meter.drain()
        counts.merge(planned)
        return counts.to_json()

    items = storable_items(read_crawl_task(spec, task, deadline, meter))
    return crawl_batches(items, source=spec.name, shard=task.number, began_at=time.time(), calls=calls)
