"""Diff: compare a crawl with the index by key and digest, and read full records only for differences.

Listed objects are written as crawled. Objects that were not listed are closed only if the crawl proves that they are absent.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.model import Kind
from federator.model.rows import RECORD_COLUMNS
from federator.pipeline.crawl_columns import RECORD
from federator.pipeline.parallelism import spark_parallelism
from federator.pipeline.record_parts import RecordParts
from federator.pipeline.search_words import add_search_words, complete_search_words, incoming_rows
from federator.pipeline.small_crawls import DIFFERING, MAX_ROWS, compare_staged_keys, run_in_task, select_records
from federator.pipeline.staging_area import StagingArea
from federator.pipeline.validation import ValidatedCrawl, staged_rows
from federator.planning.publication import Effect, removable
from federator.store.partition_reader import KEY_COLUMNS, IndexReader, KeyRange

_DIFFERING = tuple(effect.value for effect in DIFFERING)
_KEYS_DDL = "is_table smallint, path string, kind string, digest string, observed_at double"


@dataclass(frozen=True, slots=True)
class StagedRecords:
    """Records at ``path`` in the staging area. ``selected`` are their keys, if the path has other rows too."""

    staging: StagingArea
    path: str
    selected: frozenset[tuple[int, str]] | None = None

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the records, with all columns or with these."""
        if self.selected is None:
            return iter(self.staging.read(self.path, columns))
        return select_records(iter(self.staging.read(self.path, ["row", *(columns or RECORD_COLUMNS)])), self.selected)


@dataclass(frozen=True, slots=True)
class DifferingKeys:
    """The keys ``(is_table, path)`` of the objects that differ, with the crawl's effect on each, at ``path`` in the staging area.

    Iterating yields the keys whose effect is one of ``closing``: the driver closes their records. Keys are read in batches, because
    there may be millions.
    """

    staging: StagingArea
    path: str
    crawled: ValidatedCrawl
    closing: frozenset[Effect] = frozenset({Effect.CHANGED, Effect.MISSING})

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for effect, keys in self.read():
            if effect in self.closing:
                yield from keys

    def read(self) -> Iterator[tuple[Effect, list[tuple[int, str]]]]:
        """Yield keys of one effect at a time. Missing objects are left out unless the crawl proves that they are absent."""
        named = frozenset(self.crawled.list_named_tables())
        for batch in self.staging.read(self.path, ["is_table", "path", "effect"]):
            for effect in DIFFERING:
                differing = batch.filter(pc.equal(batch.column("effect"), effect.value))
                keys = list(zip(*(differing.column(name).to_pylist() for name in ("is_table", "path")), strict=True))
                if effect is Effect.MISSING:
                    keys = removable(keys, self.crawled.coverage, self.crawled.namespaces, named)
                yield effect, keys


@dataclass(frozen=True, slots=True)
class RevisionDelta:
    """The changes of a crawl: the keys of the records to close, the records to insert, and the counts.

    ``closed`` are the keys ``(is_table, path)`` of the records to close. ``counts`` are the objects by effect and ``is_table``. The
    records to insert are staged (``records``), or tasks write them into the index (``parts``). With ``parts``, ``closed`` has only
    removed objects.
    """

    source: str
    counts: Counter[tuple[Effect, int]] = field(default_factory=Counter)
    closed: Iterable[tuple[int, str]] = ()
    records: StagedRecords | None = None
    parts: RecordParts | None = None

    @property
    def added(self) -> int:
        return self._count(Effect.ADDED)

    @property
    def changed(self) -> int:
        return self._count(Effect.CHANGED)

    @property
    def removed(self) -> int:
        return self._count(Effect.MISSING)

    @property
    def is_empty(self) -> bool:
        return not self.counts.total()

    @classmethod
    def unchanged(cls, source: str) -> RevisionDelta:
        return cls(source)

    def iter_inserts(self) -> Iterator[Sequence[Any]]:
        """Yield new and changed records for ``revisions.add_records``."""
        for batch in self.records.read() if self.records is not None else ():
            yield from incoming_rows(batch, complete_search_words(self.source, batch))

    def _count(self, effect: Effect) -> int:
        return self.counts[effect, 0] + self.counts[effect, 1]


def diff_crawl(
    spark: SparkSession, reader: IndexReader, crawled: ValidatedCrawl, revision: int, staging: StagingArea
) -> RevisionDelta:
    """Compare a crawl with the source's published revision (0: none yet).

    Namespaces that the crawl did not read do not differ.
    """
    if crawled.staged is None:
        return RevisionDelta.unchanged(crawled.source)
    if crawled.small and reader.count_records(crawled.source, revision, crawled.namespaces_to_read) <= MAX_ROWS:
        return _diff_in_task(spark, reader, crawled, crawled.staged, revision, staging)
    records = staged_rows(spark, crawled.staged).where(F.col("row") == RECORD)
    # A listing may have an object twice, if its pages shifted meanwhile. Such an object counts once.
    compared = _compare_keys(spark, reader, crawled, records, revision).dropDuplicates(["is_table", "path"])
    differing = staging.write(compared, f"{crawled.source}.differing")
    keys = DifferingKeys(staging, differing, crawled)
    counts = _count_effects(keys.read())
    delta = RevisionDelta(crawled.source, counts, keys)
    written = delta.added + delta.changed
    if not written:
        return delta
    written_keys = spark.read.parquet(differing).where("effect <> 'missing'").select("is_table", "path")
    inserted = records.select(*RECORD_COLUMNS).join(written_keys, ["is_table", "path"], "left_semi")
    # Keep one of the copies.
    inserted = inserted.dropDuplicates(["is_table", "path"]).select(*RECORD_COLUMNS)
    # For few records, another stage of Python workers would take longer than the driver, if it can read what was staged.
    if (written > MAX_ROWS or staging.is_remote) and not reader.is_sqlite:
        parts = RecordParts(crawled.source, inserted, reader, replaces=delta.changed > 0)
        return replace(delta, closed=replace(keys, closing=frozenset({Effect.MISSING})), parts=parts)
    rows = staging.write(
        add_search_words(inserted, crawled.source) if written > MAX_ROWS else inserted, f"{crawled.source}.rows"
    )
    return replace(delta, records=StagedRecords(staging, rows))


def _diff_in_task(
    spark: SparkSession, reader: IndexReader, crawled: ValidatedCrawl, staged: str, revision: int, staging: StagingArea
) -> RevisionDelta:
    """Compare a small crawl in one task. Its new and changed records are read from its staged rows."""
    scope = crawled.namespaces_to_read, crawled.list_named_tables()
    compare = partial(compare_staged_keys, reader, crawled.source, revision, staged, *scope, crawled.began_at, current_time())
    effects = run_in_task(spark, compare)
    added, changed, missing = (
        [key for key, effect in effects if effect is kind] for kind in (Effect.ADDED, Effect.CHANGED, Effect.MISSING)
    )
    removed = removable(missing, crawled.coverage, crawled.namespaces, frozenset(crawled.list_named_tables()))
    counts = _count_effects([(Effect.ADDED, added), (Effect.CHANGED, changed), (Effect.MISSING, removed)])
    selected = frozenset([*added, *changed])
    differences = StagedRecords(staging, staged, selected) if selected else None
    return RevisionDelta(crawled.source, counts, [*removed, *changed], differences)


def _count_effects(effects: Iterable[tuple[Effect, list[tuple[int, str]]]]) -> Counter[tuple[Effect, int]]:
    """Return the number of keys by effect and ``is_table``."""
    return Counter((effect, is_table) for effect, keys in effects for is_table, _ in keys)


def current_time() -> float:
    """Return the time of the comparison. An observation after it does not count, because the clock was set back since."""
    return time.time()


def _compare_keys(
    spark: SparkSession, reader: IndexReader, crawled: ValidatedCrawl, records: DataFrame, revision: int
) -> DataFrame:
    staged = records.select("is_table", "path", "kind", "digest", "began_at")
    if crawled.namespaces_to_read is None:
        ranges = reader.plan_ranges(crawled.source, spark_parallelism(spark))
        indexed = read_ranges(spark, reader, crawled.source, revision, KEY_COLUMNS, _KEYS_DDL, ranges)
        is_one_partition = len(ranges) == 1
    else:
        indexed = _keys_in_scope(
            spark, reader, crawled.source, revision, sorted(crawled.namespaces_to_read), crawled.list_named_tables()
        )
        is_one_partition = True
    if is_one_partition and crawled.record_count <= MAX_ROWS:
        # One partition on each side joins without a shuffle, which would take most of the time for small sources.
        staged, indexed = staged.coalesce(1), indexed.coalesce(1)
    joined = staged.alias("s").join(
        indexed.alias("i"), (F.col("s.is_table") == F.col("i.is_table")) & (F.col("s.path") == F.col("i.path")), "full"
    )
    return joined.select(
        F.coalesce("s.is_table", "i.is_table").alias("is_table"),
        F.coalesce("s.path", "i.path").alias("path"),
        effect_column(crawled.began_at, current_time()).alias("effect"),
    ).where(F.col("effect").isin(*_DIFFERING))


def effect_column(began_at: float, now: float) -> Column:
    """Return ``planning.publication.compare_versions`` as an expression over the full join of crawled (``s``) and indexed (``i``)
    keys.

    The times of indexed observations are those of ``planning.publication.known_time``.
    """
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


def _keys_in_scope(
    spark: SparkSession, reader: IndexReader, source: str, revision: int, namespaces: Sequence[str], tables: Sequence[str]
) -> DataFrame:
    """Return the keys of the indexed objects directly in some namespaces, and of some tables (path keys)."""
    parts = max(1, min(len(namespaces), spark_parallelism(spark)))
    tasks = [(namespaces[part::parts], tables[part::parts]) for part in range(parts)]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                in_namespaces, by_name = tasks[part]
                yield from reader.read_children(source, revision, KEY_COLUMNS, in_namespaces)
                yield from reader.read_tables(source, revision, KEY_COLUMNS, by_name)

    return spark.range(0, parts, 1, parts).mapInArrow(read, _KEYS_DDL)


def read_ranges(
    spark: SparkSession, reader: IndexReader, source: str, revision: int, columns: Sequence[str], ddl: str,
    ranges: Sequence[KeyRange], *, is_table: bool | None = None,
) -> DataFrame:  # fmt: skip
    """Return the records of a source at a revision as a DataFrame, with one task per key range."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from reader.read_range(source, revision, columns, ranges[number], is_table=is_table)

    if revision == 0:
        return spark.range(0).selectExpr(*(f"cast(null as {kind}) as {name}" for name, kind in map(str.split, ddl.split(", "))))
    return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read, ddl)
