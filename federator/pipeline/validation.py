"""Validation of a staged crawl: Spark groups the staged rows by namespace, and ``planning.crawls`` checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.connector.call_metrics import CallCounts
from federator.connector.errors import IdentityChanged
from federator.model import ROOT, Coverage, CoverageState, parent_key, path_key
from federator.pipeline.crawl_columns import COVERAGE, DDL, IDENTITY, RECORD
from federator.pipeline.small_crawls import Arrivals, collect_staged_arrivals, run_in_task
from federator.pipeline.staging import coverage_from_row, identity_from_row
from federator.planning.crawls import Arrival, list_failures, unread_coverage, validate_arrivals
from federator.planning.identity import IdentityReading
from federator.planning.incremental import NamedTables

_COVERAGE = (
    "source", "namespace", "presence", "presence_code", "presence_reason", "detail", "detail_code", "detail_reason", "records",
    "fold", "found",
)  # fmt: skip


@dataclass(frozen=True)
class ValidatedCrawl:
    """A validated crawl. Namespaces and tables are path keys."""

    source: str
    #: the path of the staged rows; None: nothing had to be read
    staged: str | None
    #: one task may read the staged rows
    small: bool
    record_count: int
    #: what the staged rows prove of each namespace, and the namespaces that they list
    coverage: dict[str, Coverage]
    namespaces: frozenset[str]
    #: the time when reading started
    began_at: float
    calls: CallCounts = field(default_factory=CallCounts)
    #: None: all; the coverage of the others is carried
    namespaces_to_read: frozenset[str] | None = None
    #: the tables of other namespaces that were to be read by name
    tables_to_read: frozenset[str] = frozenset()
    #: one for each connection that read
    identities: tuple[IdentityReading, ...] = ()

    @property
    def failures(self) -> list[Coverage]:
        return list_failures(self.coverage)

    @property
    def carried_count(self) -> int:
        """The number of namespaces that were not read."""
        return sum(listed.presence.state is CoverageState.CARRIED for listed in self.coverage.values())

    def list_named_tables(self) -> list[str]:
        """Return the tables that were read by name, without those of namespaces that failed or were then read as a whole.

        One that the index has and that did not arrive is absent: the task has listed the names of its namespace, too.
        """
        namespaces = self.namespaces_to_read or ()
        return sorted(key for key in self.tables_to_read if parent_key(key) not in namespaces)


def unchanged_crawl(source: str, carried: Mapping[str, Coverage], *, began_at: float) -> ValidatedCrawl:
    """Return the crawl of a source without namespaces to read."""
    return ValidatedCrawl(source, None, True, 0, dict(carried), frozenset(), began_at, namespaces_to_read=frozenset())


def unproven(crawled: ValidatedCrawl, problem: str) -> ValidatedCrawl:
    """Return a crawl that proves nothing because of ``problem``. None of its records counts."""
    coverage = {path_key(ROOT): unread_coverage(crawled.source, IdentityChanged.code, problem)}
    return replace(crawled, staged=None, record_count=0, coverage=coverage, namespaces=frozenset(), namespaces_to_read=None)


def validate_crawl(
    spark: SparkSession, source: str, staged: str, *, began_at: float, small: bool,
    read: frozenset[str] | None = None, carried: Mapping[str, Coverage] = MappingProxyType({}),
    tables: Sequence[NamedTables] = (),
) -> ValidatedCrawl:  # fmt: skip
    """Read a staging file and validate it. This is one small action with one row per namespace; one Python task if it is ``small``.

    ``read``, ``carried`` and ``tables`` are for an incremental crawl: the namespaces that were to be read as a whole, the coverage of
    the others, and their tables that were to be read by name.
    """
    if small:
        arrivals, calls, identities = run_in_task(spark, partial(collect_staged_arrivals, staged))
    else:
        arrivals, calls, identities = _group_arrivals(spark, staged)
    named = frozenset(path_key(table.namespace) for table in tables)
    proven = validate_arrivals(source, arrivals, read=read, carried=carried, named=named)
    total = sum(arrival.records for arrival in arrivals.values())
    return ValidatedCrawl(
        source, staged, small, total, proven.coverage, proven.namespaces, began_at, calls, proven.read,
        frozenset(key for table in tables for key in table.keys), identities,
    )  # fmt: skip


def staged_rows(spark: SparkSession, staged: str) -> DataFrame:
    """Return the rows of a staging file. Without the schema, Spark would start a job that reads it from the files."""
    return spark.read.schema(DDL).parquet(staged)


def _group_arrivals(spark: SparkSession, staged: str) -> Arrivals:
    rows = staged_rows(spark, staged)
    arrivals: dict[str, Arrival] = {}
    calls = CallCounts()
    identities: list[IdentityReading] = []
    for row in group_by_namespace(rows).collect():
        for counts in row["calls"]:
            calls.merge(CallCounts.from_json(counts))
        identities += [identity_from_row(reading.asDict()) for reading in row["identities"]]
        if row["key"] is not None:
            stated = coverage_from_row(row["stated"].asDict()) if row["stated"] is not None else None
            arrivals[row["key"]] = Arrival(stated, row["times"], row["arrived"], row["fold"] or 0, row["listed"])
    return arrivals, calls, tuple(identities)


def group_by_namespace(rows: DataFrame) -> DataFrame:
    """Return one row per namespace: its stated coverage, the records that arrived below it, and whether its parent listed it.

    This is ``planning.crawls.ArrivalCollector`` in Spark. The row without a key contains the call counts.
    """
    is_record = F.col("row") == RECORD
    stated = F.when(F.col("row") == COVERAGE, F.struct(*_COVERAGE))
    # The 60 bits of a digest that ``fold_digest`` folds.
    number = F.when(is_record, F.conv(F.substring("digest", 1, 15), 16, 10).cast("bigint"))
    content = rows.select(
        F.when(is_record, F.col("parent")).otherwise(F.col("namespace")).alias("key"),
        stated.alias("stated"), is_record.alias("is_record"), number.alias("number"), F.lit(False).alias("listed"), "calls",
        F.when(F.col("row") == IDENTITY, F.struct("identity", "identity_error")).alias("reading"),
    )  # fmt: skip
    listed_namespaces = rows.where(is_record & (F.col("is_table") == 0)).select(
        F.col("path").alias("key"), F.lit(True).alias("listed")
    )
    return content.unionByName(listed_namespaces, allowMissingColumns=True).groupBy("key").agg(
        F.first("stated", ignorenulls=True).alias("stated"),
        F.count("stated").alias("times"),
        F.count_if("is_record").alias("arrived"),
        F.bit_xor("number").alias("fold"),
        F.max("listed").alias("listed"),
        F.collect_list("calls").alias("calls"),
        F.collect_list("reading").alias("identities"),
    )  # fmt: skip
