"""Normalise: what a staged crawl proves. Spark groups the staged rows by namespace; ``planning.crawls`` checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.connector.calls import Counts
from federator.connector.errors import IdentityChanged
from federator.model import ROOT, Coverage, path_key
from federator.pipeline.columns import COVERAGE, IDENTITY, RECORD
from federator.pipeline.staging import coverage_of, identity_of
from federator.planning.crawls import Arrival, unread, validate_crawl
from federator.planning.identity import IdentityReading

_COVERAGE = (
    "source", "namespace", "presence", "presence_code", "presence_reason", "detail", "detail_code", "detail_reason", "records",
    "fold", "found",
)  # fmt: skip


@dataclass(frozen=True)
class Crawled:
    """A normalised crawl: the staged records (None: nothing had to be read) and their number, what they prove, when reading began (the
    earliest shard), and the calls that it took.

    ``read`` are the namespaces that were to be read, in text form; None: all there are. Of the others ``coverage`` is carried.
    ``identities`` are what the connections read of which catalog answers.
    """

    source: str
    records: DataFrame | None
    total: int
    coverage: dict[str, Coverage]
    namespaces: frozenset[str]
    began_at: float
    calls: Counts = field(default_factory=Counts)
    read: frozenset[str] | None = None
    identities: tuple[IdentityReading, ...] = ()

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


def unproven(crawled: Crawled, problem: str) -> Crawled:
    """The crawl of a source that proves nothing, because of ``problem``: none of its records counts."""
    coverage = {path_key(ROOT): unread(crawled.source, IdentityChanged.code, problem)}
    return replace(crawled, records=None, total=0, coverage=coverage, namespaces=frozenset(), read=None)


def normalise(
    spark: SparkSession, source: str, staged: str, *, began_at: float,
    read: frozenset[str] | None = None, carried: Mapping[str, Coverage] = MappingProxyType({}),
) -> Crawled:  # fmt: skip
    """Reads a staging file back and checks it. One small action: a row per namespace.

    ``read`` and ``carried`` are of a crawl that leaves namespaces out: which were to be read, and what is known of the others.
    """
    rows = spark.read.parquet(staged)
    records = rows.where(F.col("row") == RECORD)
    arrivals: dict[str, Arrival] = {}
    calls = Counts()
    identities: list[IdentityReading] = []
    for row in per_namespace(rows, records).collect():
        for made in row["calls"]:
            calls.add(Counts.from_json(made))
        identities += [identity_of(reading.asDict()) for reading in row["identities"]]
        if row["key"] is not None:
            stated = coverage_of(row["stated"].asDict()) if row["stated"] is not None else None
            arrivals[row["key"]] = Arrival(stated, row["times"], row["arrived"], row["fold"] or 0, row["listed"])
    proven = validate_crawl(source, arrivals, read=read, carried=carried)
    total = sum(arrival.records for arrival in arrivals.values())
    return Crawled(source, records, total, proven.coverage, proven.namespaces, began_at, calls, proven.read, tuple(identities))


def per_namespace(rows: DataFrame, records: DataFrame) -> DataFrame:
    """One row a namespace: its Coverage as it was stated, the records that arrived below it, whether its parent listed it.
    ``planning.crawls.collect_arrivals`` in Spark.

    The row without a key has the calls that were made.
    """
    is_record = F.col("row") == RECORD
    stated = F.when(F.col("row") == COVERAGE, F.struct(*_COVERAGE))
    number = F.when(is_record, F.conv(F.substring("digest", 1, 15), 16, 10).cast("bigint"))
    below = rows.select(
        F.when(is_record, F.col("parent")).otherwise(F.col("namespace")).alias("key"),
        stated.alias("stated"), is_record.alias("is_record"), number.alias("number"), F.lit(False).alias("listed"), "calls",
        F.when(F.col("row") == IDENTITY, F.struct("identity", "identity_error")).alias("reading"),
    )  # fmt: skip
    nothing = (F.lit(None).cast(below.schema["stated"].dataType).alias("stated"), F.lit(False).alias("is_record"))
    unread = F.lit(None).cast(below.schema["reading"].dataType).alias("reading")
    itself = records.where("is_table = 0").select(
        F.col("path").alias("key"),
        *nothing,
        F.lit(None).cast("bigint").alias("number"),
        F.lit(True).alias("listed"),
        "calls",
        unread,
    )
    return below.union(itself).groupBy("key").agg(
        F.first("stated", ignorenulls=True).alias("stated"),
        F.count("stated").alias("times"),
        F.count_if("is_record").alias("arrived"),
        F.bit_xor("number").alias("fold"),
        F.max("listed").alias("listed"),
        F.collect_list("calls").alias("calls"),
        F.collect_list("reading").alias("identities"),
    )  # fmt: skip
