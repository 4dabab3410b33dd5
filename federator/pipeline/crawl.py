"""Crawl: one Spark action that reads a source and writes what it said to staging."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from federator.connector import SourceSpec


def stage(spark: SparkSession, spec: SourceSpec, directory: Path, *, deadline: float) -> str:
    """Writes the crawl of a source to Parquet and returns where. One job a source, its tasks being the source's slots."""
    target = str(directory / f"{spec.name}.staged")
    if hasattr(spark, "sparkContext"):  # Spark Connect has none
        spark.sparkContext.setJobDescription(f"crawl {spec.name}")
    crawl = spark.read.format("lance_catalog").option("spec", json.dumps(asdict(spec))).option("deadline", str(deadline))
    crawl.load().write.mode("overwrite").parquet(target)
    return target
