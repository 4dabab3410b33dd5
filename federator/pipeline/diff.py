"""Diff: a crawl against the index, by key and digest; full records only for what differs.

What was listed is written as it is. What was not listed is closed only where the crawl proves that it is absent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.index.readers import KEYS, IndexReader, KeyRange
from federator.index.words import COLUMNS, of_row
from federator.model import Kind
from federator.model.rows import RECORD_COLUMNS
from federator.pipeline.columns import COLUMNS as TYPES
from federator.pipeline.normalise import Crawled
from federator.planning.publication import Effect, removable

#: up to this many records a source is compared in one task, and what differs gets its words on the driver
SMALL = 40_000

_WORDED = ["is_table", *COLUMNS]
_WORDED_DDL = ", ".join(f"`{name}` {TYPES[name]}" for name in RECORD_COLUMNS) + ", `words` string"
_DIFFERING = tuple(effect.value for effect in (Effect.ADDED, Effect.CHANGED, Effect.MISSING))
_KEYS_DDL = "is_table smallint, path string, kind string, digest string, observed_at double"


@dataclass(frozen=True, slots=True)
class Delta:
    """What a crawl of a source changes: rows to insert (Parquet), keys to close, and how many of which."""

    source: str
    added: int
    changed: int
    removed: tuple[tuple[int, str], ...]
    replaced: tuple[tuple[int, str], ...]
    rows: str | None

    @property
    def empty(self) -> bool:
        return not (self.added or self.changed or self.removed)

    @classmethod
    def nothing(cls, source: str) -> Delta:
        return cls(source, 0, 0, (), (), None)

    def locations(self) -> Iterator[tuple[str, str | None]]:
        """New and changed tables: path and canonical location."""
        for batch in pq.ParquetDataset(self.rows).fragments if self.rows is not None else ():
            for piece in batch.to_batches(columns=["is_table", "path", "canonical"]):
                rows = zip(*(piece.column(name).to_pylist() for name in ("is_table", "path", "canonical")), strict=True)
                yield from ((path, canonical) for is_table, path, canonical in rows if is_table)

    def inserts(self) -> Iterator[Sequence[Any]]:
        """New and changed records as ``revisions.add_records`` takes them; ``observed_at`` is null, a crawl is not a direct look."""
        if self.rows is None:
            return
        for batch in pq.ParquetDataset(self.rows).fragments:
            for piece in batch.to_batches(batch_size=20_000):
                columns = [piece.column(name).to_pylist() for name in RECORD_COLUMNS]
                words = piece.column("words").to_pylist() if "words" in piece.schema.names else _words(self.source, piece)
                yield from zip(*columns, [None] * len(piece), words, strict=True)


def diff(spark: SparkSession, reader: IndexReader, crawled: Crawled, revision: int, directory: Path) -> Delta:
    """Compares a crawl with the source's published revision (0: nothing yet); of namespaces that it did not read, nothing differs."""
    if crawled.records is None:
        return Delta.nothing(crawled.source)
    differing = str(directory / f"{crawled.source}.differing")
    _keys(spark, reader, crawled, crawled.records, revision).write.mode("overwrite").parquet(differing)
    keys = pq.read_table(differing, columns=["is_table", "path", "what"])
    added, changed, missing = (_select(keys, what) for what in ("added", "changed", "missing"))
    removed = tuple(removable(missing, crawled.coverage, crawled.namespaces))
    rows = None
    if added or changed:
        rows = str(directory / f"{crawled.source}.rows")
        wanted = spark.read.parquet(differing).where("what <> 'missing'").select("is_table", "path")
        full = crawled.records.select(*RECORD_COLUMNS).join(wanted, ["is_table", "path"], "left_semi").select(*RECORD_COLUMNS)
        # For few of them one more stage of Python workers would take longer than the driver.
        many = len(added) + len(changed) > SMALL
        (_worded(full, crawled.source) if many else full).write.mode("overwrite").parquet(rows)
        different = keys.filter(pc.not_equal(keys["what"], "missing")).group_by(["is_table", "path"]).aggregate([])
        if different.num_rows != sum(fragment.count_rows() for fragment in pq.ParquetDataset(rows).fragments):
            # A page that shifted while the catalog was listed shows an object twice; one of them is it.
            once = str(directory / f"{crawled.source}.once")
            spark.read.parquet(rows).dropDuplicates(["is_table", "path"]).write.mode("overwrite").parquet(once)
            rows = once
    return Delta(crawled.source, len(added), len(changed), removed, tuple(changed), rows)


def _worded(records: DataFrame, source: str) -> DataFrame:
    """Records of a source, each with the words it is found by: made by the tasks, since the driver has one core."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column("words", pa.array(_words(source, batch), pa.string()))

    return records.mapInArrow(make, _WORDED_DDL)


def _words(source: str, batch: pa.RecordBatch) -> list[str | None]:
    columns = batch.select(_WORDED).to_pydict()
    return [of_row(source, dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _keys(spark: SparkSession, reader: IndexReader, crawled: Crawled, records: DataFrame, revision: int) -> DataFrame:
    staged = records.select("is_table", "path", "kind", "digest", "began_at")
    if crawled.read is None:
        spans = reader.ranges(crawled.source, spark_parallelism(spark))
        indexed = read_ranges(spark, reader, crawled.source, revision, KEYS, _KEYS_DDL, spans)
        small = len(spans) == 1
    else:
        indexed = _inside(spark, reader, crawled.source, revision, sorted(crawled.read))
        small = True
    if small and crawled.total <= SMALL:
        # One partition on each side joins without a shuffle: for small sources the shuffle would be most of the time.
        staged, indexed = staged.coalesce(1), indexed.coalesce(1)
    s, i = staged.alias("s"), indexed.alias("i")
    joined = s.join(i, (F.col("s.is_table") == F.col("i.is_table")) & (F.col("s.path") == F.col("i.path")), "full")
    return joined.select(
        F.coalesce("s.is_table", "i.is_table").alias("is_table"),
        F.coalesce("s.path", "i.path").alias("path"),
        effect_column(crawled.began_at, time.time()).alias("what"),
    ).where(F.col("what").isin(*_DIFFERING))


def effect_column(began_at: float, now: float) -> Column:
    """``planning.publication.compare`` as an expression over the full join of crawled (``s``) and indexed (``i``) keys, whose
    observations count with their ``known_time``."""
    observed_at = F.when(F.col("i.observed_at") <= now, F.col("i.observed_at"))
    read_at = F.coalesce(F.col("s.began_at"), F.lit(began_at))
    undescribed = (F.col("s.kind") == Kind.UNDESCRIBED.value) & (F.col("i.kind") != Kind.UNDESCRIBED.value)
    return (
        F.when(F.col("i.path").isNull(), Effect.ADDED.value)
        .when(F.col("s.digest") == F.col("i.digest"), Effect.UNCHANGED.value)
        .when(read_at < observed_at, Effect.OUTDATED.value)
        .when(F.col("s.path").isNull(), Effect.MISSING.value)
        .when(undescribed, Effect.UNDESCRIBED.value)
        .otherwise(Effect.CHANGED.value)
    )


def _inside(spark: SparkSession, reader: IndexReader, source: str, revision: int, namespaces: Sequence[str]) -> DataFrame:
    """The keys of what the index has directly in some namespaces (text form)."""
    parts = min(len(namespaces), spark_parallelism(spark))
    hands = [namespaces[part::parts] for part in range(parts)]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from reader.children(source, revision, KEYS, hands[part])

    return spark.range(0, parts, 1, parts).mapInArrow(read, _KEYS_DDL)


def read_ranges(
    spark: SparkSession, reader: IndexReader, source: str, revision: int, columns: Sequence[str], ddl: str,
    spans: Sequence[KeyRange], *, is_table: bool | None = None,
) -> DataFrame:  # fmt: skip
    """Records of a source at a revision as a DataFrame, one task a key range."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from reader.rows(source, revision, columns, spans[number], is_table=is_table)

    if revision == 0:
        return spark.range(0).selectExpr(*(f"cast(null as {kind}) as {name}" for name, kind in map(str.split, ddl.split(", "))))
    return spark.range(0, len(spans), 1, len(spans)).mapInArrow(read, ddl)


def spark_parallelism(spark: SparkSession) -> int:
    """How many tasks a stage over the index is cut into."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)


def _select(keys: pa.Table, what: str) -> list[tuple[int, str]]:
    found = keys.filter(pc.equal(keys["what"], what))
    return list(zip(found["is_table"].to_pylist(), found["path"].to_pylist(), strict=True))
