"""How many tasks a stage has: on a cluster, as many as its executors run at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONS = "spark.sql.shuffle.partitions"
#: the number for a local master, and the minimum on a cluster
MIN_PARTITIONS = 4


def follow_cluster(spark: SparkSession, conf: Mapping[str, str]) -> None:
    """Let shuffles have a partition for each core of the executors that a cluster has now, unless ``conf`` sets the number.

    A client of Spark Connect does not know the executors.
    """
    if hasattr(spark, "sparkContext") and not _is_local(spark) and _PARTITIONS not in conf:
        spark.conf.set(_PARTITIONS, str(max(MIN_PARTITIONS, spark.sparkContext.defaultParallelism)))


def spark_parallelism(spark: SparkSession) -> int:
    """Return the number of tasks of a stage over the index."""
    return int(spark.conf.get(_PARTITIONS, str(MIN_PARTITIONS)) or MIN_PARTITIONS)


def inspection_parallelism(spark: SparkSession) -> int:
    """Return how many tables or directories are inspected at once. Inspection needs CPU time, and a slot may have less than a CPU."""
    return (os.cpu_count() or 2) if _is_local(spark) else spark_parallelism(spark)


def _is_local(spark: SparkSession) -> bool:
    return hasattr(spark, "sparkContext") and (spark.sparkContext.master or "").startswith("local")
