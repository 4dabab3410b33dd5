"""Inputs of a report: the index's tables as Spark DataFrames.

Each table is read once, in key ranges, into the run's staging directory. All queries of a report read it from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.pipeline.diff import read_ranges
from federator.pipeline.parallelism import spark_parallelism
from federator.pipeline.staging_area import StagingArea
from federator.store.partition_reader import IndexReader
from federator.store.stores import DEFAULT_STORE, PATH_PREFIX
from federator.store.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """The columns that reports read of a table, and the column by which it is split into ranges; None for a small table."""

    columns: tuple[str, ...]
    key: str | None = None


#: the tables of the index that a query may use
TABLES: dict[str, ReadColumns] = {
    "source": ReadColumns(("name", "impl", "revision", "state", "message", "crawled_at", "published_at", "horizon")),
    "revision": ReadColumns(("source", "number", "run_id", "state", "published_at", "added", "changed", "removed")),
    "dataset": ReadColumns(
        ("canonical", "access", "state", "version", "rows", "fragments", "size", "indices", "format", "changed_at", "checked_at"),
        "canonical",
    ),
    "source_store": ReadColumns(("source", "store", "access")),
    "alias": ReadColumns(("canonical", "place"), "canonical"),
    "drift": ReadColumns(
        ("kind", "severity", "source", "subject", "other", "detail", "first_seen", "last_seen", "resolved_at"), "subject"
    ),
    "ledger": ReadColumns(
        ("mirror", "origin_source", "origin_path", "target_source", "target_path", "is_table", "location", "run_id", "updated_at"),
        "target_path",
    ),
    "journal": ReadColumns(
        ("op_id", "run_id", "mirror", "action", "state", "code", "target_source", "target_path", "intent_at"), "op_id"
    ),
    "plan": ReadColumns(("digest", "mirror", "run_id", "state", "body", "created_at"), "digest"),
    "run": ReadColumns(("id", "kind", "state", "trigger", "actor", "started_at", "finished_at"), "id"),
    "coverage": ReadColumns(
        ("source", "namespace", "presence", "presence_reason", "detail", "detail_reason", "records", "valid_from", "valid_to"), "id"
    ),
    "record": ReadColumns(("source", "is_table", "path", "valid_from", "valid_to"), "id"),
    "audit_event": ReadColumns(("seq", "at", "kind", "actor", "run_id", "subject"), "seq"),
    "audit_outbox": ReadColumns(("id",)),
    "token": ReadColumns(("name", "role", "scopes", "created_at", "created_by", "expires_at", "revoked_at", "revoked_by")),
}  # fmt: skip
#: the name under which the queries of figures read the result of the details query
DETAILS = "details"
#: the name under which queries read the current records, and the tables that these are computed from
_CURRENT = "current"
_READ_FOR_CURRENT = ("source", "source_store")
#: the Spark types of the columns of ``record`` among those of ``current``
_CURRENT_TYPES = {
    "is_table": "smallint", "path": "string", "parent": "string", "kind": "string", "location": "string", "canonical": "string",
    "owner": "string", "native_id": "string", "problem": "string", "valid_from": "bigint",
}  # fmt: skip


def value_column(values: Mapping[str, str], source: str, canonical: Column) -> Column:
    """Return ``store.stores.value_at`` as an expression. The value of a record without a location has no meaning."""
    return F.when(canonical.startswith(PATH_PREFIX), DEFAULT_STORE).otherwise(values.get(source, DEFAULT_STORE))


def staged_name(name: str) -> str:
    """Return the file name in the staging area for a table that a report reads, or for its details."""
    return f"report-{name}.parquet"


@dataclass
class Inputs:
    """The tables that the queries of one report read, as frames over Parquet.

    The table ``current`` has the records of every source at its published revision, with the ``store`` and the ``access`` of their
    locations.
    ``load_tables`` must be called before ``get_frame`` is called in several threads, or two of them could write the same file.
    """

    spark: SparkSession
    reader: IndexReader
    staging: StagingArea
    _staged: dict[str, DataFrame] = field(default_factory=dict)

    def load_tables(self, names: Collection[str], pool: Executor) -> None:
        """Read the tables of these names in parallel, except the details, which are no table of the index."""
        if _CURRENT in names:
            # Reading the current records reads these tables first: two threads must not write the same file.
            for name in _READ_FOR_CURRENT:
                self.get_frame(name)
        # ``list`` waits for all of them and raises the first error.
        list(pool.map(self.get_frame, sorted(set(names) - {DETAILS})))

    def get_frame(self, name: str) -> DataFrame:
        """Return a table of ``TABLES``, or ``current``, and read it unless it was read before. Raise KeyError for another name."""
        if name not in self._staged:
            computed = self._read_current_records() if name == _CURRENT else self._read_table(name)
            self._staged[name] = self.materialize(computed, name)
        return self._staged[name]

    def materialize(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame to Parquet and read it from there, so that it is computed only once."""
        return self.spark.read.parquet(self.staging.write(frame, staged_name(name)))

    def _read_table(self, name: str) -> DataFrame:
        scan = TableScan(self.reader, name, TABLES[name].columns, TABLES[name].key)
        ranges = scan.plan_ranges(spark_parallelism(self.spark))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from scan.read_range(ranges[number])

        return self.spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read, scan.ddl)

    def _read_current_records(self) -> DataFrame:
        ddl = ", ".join(f"{name} {kind}" for name, kind in _CURRENT_TYPES.items())
        parts = spark_parallelism(self.spark)
        named = self.get_frame("source_store").collect()
        values = {name: {row["source"]: row[name] for row in named} for name in ("store", "access")}
        frames = []
        for row in self.get_frame("source").select("name", "revision").collect():
            source, ranges = row["name"], self.reader.plan_ranges(row["name"], parts)
            frame = read_ranges(self.spark, self.reader, source, row["revision"], list(_CURRENT_TYPES), ddl, ranges)
            frames.append(
                frame.withColumns(
                    {
                        "source": F.lit(source),
                        **{name: value_column(each, source, F.col("canonical")) for name, each in values.items()},
                    }
                )
            )
        if not frames:
            return self.spark.range(0).selectExpr(
                *(
                    f"cast(null as {kind}) as {name}"
                    for name, kind in (*_CURRENT_TYPES.items(), ("source", "string"), ("store", "string"), ("access", "string"))
                )
            )
        records = frames[0]
        for frame in frames[1:]:
            records = records.unionByName(frame)
        return records
