"""Normalise: what a staged crawl really proves.

Each namespace's Coverage is held against the rows that arrived with it; a namespace whose rows do not add up, or that was covered
twice, proves nothing. Every namespace that was found has a Coverage afterwards.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.connector.calls import Counts
from federator.connector.errors import Internal
from federator.model import ROOT, Coverage, failed, parent, parse_key, path_key, skipped
from federator.pipeline.columns import COVERAGE, RECORD
from federator.pipeline.staging import coverage_of

_COVERAGE = (
    "source", "namespace", "presence", "presence_code", "presence_reason", "detail", "detail_code", "detail_reason", "records",
    "fold", "found",
)  # fmt: skip


@dataclass(frozen=True)
class Crawled:
    """A normalised crawl: the staged records (None: nothing had to be read) and their number, what they prove, when reading began (the
    earliest shard), and the calls that it took.

    ``read`` are the namespaces that were to be read, in text form; None: all there are. Of the others ``coverage`` is carried.
    """

    source: str
    records: DataFrame | None
    total: int
    coverage: dict[str, Coverage]
    namespaces: frozenset[str]
    began_at: float
    calls: Counts = field(default_factory=Counts)
    read: frozenset[str] | None = None

    @property
    def failures(self) -> list[Coverage]:
        return [c for c in self.coverage.values() if not c.holds]

    @property
    def carried(self) -> int:
        """How many namespaces were not read."""
        return sum(c.holds and not c.complete for c in self.coverage.values())


def untouched(source: str, carried: Mapping[str, Coverage], *, began_at: float) -> Crawled:
    """The crawl of a source of which nothing has to be read."""
    return Crawled(source, None, 0, dict(carried), frozenset(), began_at, read=frozenset())


def normalise(
    spark: SparkSession, source: str, staged: str, *, began_at: float,
    read: frozenset[str] | None = None, carried: Mapping[str, Coverage] = MappingProxyType({}),
) -> Crawled:  # fmt: skip
    """Reads a staging file back and checks it. One small action: a row per namespace.

    ``read`` and ``carried`` are of a crawl that leaves namespaces out: which were to be read, and what is known of the others.
    """
    rows = spark.read.parquet(staged)
    records = rows.where(F.col("row") == RECORD)
    coverage: dict[str, Coverage] = {}
    found: set[str] = set()
    total, calls = 0, Counts()
    for row in _per_namespace(rows, records).collect():
        key = row["key"]
        for made in row["calls"]:
            calls.add(Counts.from_json(made))
        if key is None:
            continue
        total += row["arrived"]
        if row["listed"]:
            found.add(key)
        if row["stated"] is None:
            if key in carried and not row["arrived"]:
                continue
            coverage[key] = Coverage(source, parse_key(key), skipped("it appeared while the crawl was running"))
        else:
            stated = coverage_of(row["stated"].asDict())
            twice = row["times"] > 1
            coverage[key] = (
                _broken(stated, "two shards covered it") if twice else _checked(stated, row["arrived"], row["fold"] or 0)
            )
    if read is not None:
        coverage = _with_carried(source, coverage, found, read, carried)
        read |= {key for key, proven in coverage.items() if carried.get(key) != proven}
    if path_key(ROOT) not in coverage:
        coverage[path_key(ROOT)] = Coverage(source, ROOT, failed(Internal.code, "the crawl ended without a word on the root"))
    # A namespace that is neither listed nor failing does not exist; its parent's Coverage says so.
    kept = {key: c for key, c in coverage.items() if key in found or c.namespace == ROOT or c.found}
    return Crawled(source, records, total, kept, frozenset(found), began_at, calls, read)


def _with_carried(
    source: str, stated: Mapping[str, Coverage], found: Container[str], read: Iterable[str], carried: Mapping[str, Coverage]
) -> dict[str, Coverage]:
    """What was read, and what is known of the other namespaces, but for those that a whole listing of their parent leaves out."""
    silent, went = (
        failed(Internal.code, "the crawl ended without a word on it"),
        skipped("it went away while the crawl was running"),
    )
    coverage = {key: Coverage(source, parse_key(key), silent, silent) for key in read}
    for key, known in carried.items():
        above = stated.get(path_key(parent(known.namespace))) if known.namespace != ROOT else None
        gone = above is not None and above.complete and key not in found
        coverage[key] = Coverage(source, known.namespace, went, went) if gone else known
    return {**coverage, **stated}


def _per_namespace(rows: DataFrame, records: DataFrame) -> DataFrame:
    """One row a namespace: its Coverage as it was stated, the records that arrived below it, whether its parent listed it.

    The row without a key has the calls that were made.
    """
    is_record = F.col("row") == RECORD
    stated = F.when(F.col("row") == COVERAGE, F.struct(*_COVERAGE))
    number = F.when(is_record, F.conv(F.substring("digest", 1, 15), 16, 10).cast("bigint"))
    below = rows.select(
        F.when(is_record, F.col("parent")).otherwise(F.col("namespace")).alias("key"),
        stated.alias("stated"), is_record.alias("is_record"), number.alias("number"), F.lit(False).alias("listed"), "calls",
    )  # fmt: skip
    nothing = (F.lit(None).cast(below.schema["stated"].dataType).alias("stated"), F.lit(False).alias("is_record"))
    itself = records.where("is_table = 0").select(
        F.col("path").alias("key"), *nothing, F.lit(None).cast("bigint").alias("number"), F.lit(True).alias("listed"), "calls"
    )
    return below.union(itself).groupBy("key").agg(
        F.first("stated", ignorenulls=True).alias("stated"),
        F.count("stated").alias("times"),
        F.count_if("is_record").alias("arrived"),
        F.bit_xor("number").alias("fold"),
        F.max("listed").alias("listed"),
        F.collect_list("calls").alias("calls"),
    )  # fmt: skip


def _checked(coverage: Coverage, arrived: int, fold: int) -> Coverage:
    if coverage.complete and (arrived, fold) != (coverage.records, coverage.digest):
        return _broken(coverage, f"{coverage.records} records were read and {arrived} arrived")
    return coverage


def _broken(coverage: Coverage, reason: str) -> Coverage:
    evidence = failed(Internal.code, reason)
    return replace(coverage, presence=evidence, detail=evidence)
