"""Crawl: one Spark action that reads a source and writes what it said to staging."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path as FilePath

from pyspark.sql import SparkSession

from federator.connector import SourceSpec
from federator.model import Path, path_key


def stage(
    spark: SparkSession, spec: SourceSpec, directory: FilePath, *, deadline: float, only: Sequence[Path] | None = None
) -> str:
    """Writes the crawl of a source, or of ``only`` some of its namespaces, to Parquet and returns where.

    One job a source, its tasks being the source's slots.
    """
    target = str(directory / f"{spec.name}.staged")
    if hasattr(spark, "sparkContext"):  # Spark Connect has none
        spark.sparkContext.setJobDescription(f"crawl {spec.name}")
    crawl = spark.read.format("lance_catalog").option("spec", json.dumps(asdict(spec))).option("deadline", str(deadline))
    if only is not None:
        crawl = crawl.option("only", json.dumps([path_key(namespace) for namespace in only]))
    crawl.load().write.mode("overwrite").parquet(target)
    return target
