"""Normalise: what a staged crawl really proves.

Each namespace's Coverage is held against the rows that arrived with it; a namespace whose rows do not add up, or that was covered
twice, proves nothing. Every namespace that was found has a Coverage afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.connector.errors import Internal
from federator.model import ROOT, Coverage, failed, parse_key, path_key, skipped
from federator.pipeline.staging import COVERAGE, RECORD, coverage_of

_COVERAGE = (
    "source", "namespace", "presence", "presence_code", "presence_reason", "detail", "detail_code", "detail_reason", "records",
    "fold", "found",
)  # fmt: skip


@dataclass(frozen=True)
class Crawled:
    """A normalised crawl: the staged records, what they prove, when reading began (the earliest shard)."""

    source: str
    records: DataFrame
    coverage: dict[str, Coverage]
    namespaces: frozenset[str]
    began_at: float

    @property
    def failures(self) -> list[Coverage]:
        return [c for c in self.coverage.values() if not c.complete]


def normalise(spark: SparkSession, source: str, staged: str, *, began_at: float) -> Crawled:
    """Reads a staging file back and checks it. One small action: a row per namespace."""
    rows = spark.read.parquet(staged)
    records = rows.where(F.col("row") == RECORD)
    arrived = records.groupBy(F.col("parent").alias("namespace")).agg(
        F.count("*").alias("arrived"),
        F.expr("bit_xor(cast(conv(substr(digest, 1, 15), 16, 10) as bigint))").alias("arrived_fold"),
    )
    stated = rows.where(F.col("row") == COVERAGE).select(*_COVERAGE)
    listed = records.where("is_table = 0").select(F.col("path").alias("namespace"), F.lit(True).alias("listed"))
    counted = stated.join(arrived, "namespace", "left").join(listed, "namespace", "full")
    coverage: dict[str, Coverage] = {}
    found: set[str] = set()
    for row in counted.collect():
        key = row["namespace"]
        if row["listed"]:
            found.add(key)
        if row["presence"] is None:
            checked = Coverage(source, parse_key(key), skipped("it appeared while the crawl was running"))
        elif key in coverage:
            checked = _broken(coverage[key], "two shards covered the same namespace")
        else:
            checked = _checked(coverage_of(row.asDict()), row["arrived"] or 0, row["arrived_fold"] or 0)
        coverage[key] = checked
    if path_key(ROOT) not in coverage:
        coverage[path_key(ROOT)] = Coverage(source, ROOT, failed(Internal.code, "the crawl ended without a word on the root"))
    # A namespace that is neither listed nor failing does not exist; its parent's Coverage says so.
    kept = {key: c for key, c in coverage.items() if key in found or c.namespace == ROOT or c.found}
    return Crawled(source, records, kept, frozenset(found), began_at)


def _checked(coverage: Coverage, arrived: int, fold: int) -> Coverage:
    if coverage.complete and (arrived, fold) != (coverage.records, coverage.digest):
        return _broken(coverage, f"{coverage.records} records were read and {arrived} arrived")
    return coverage


def _broken(coverage: Coverage, reason: str) -> Coverage:
    evidence = failed(Internal.code, reason)
    return replace(coverage, presence=evidence, detail=evidence)
