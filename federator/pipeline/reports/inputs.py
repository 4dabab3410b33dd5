"""Inputs of a report: the index's tables as Spark DataFrames.

Each table is read once, in key ranges, into the run's staging directory. All queries of a report read it from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from federator.pipeline.diff import read_ranges, spark_parallelism
from federator.pipeline.staging_area import StagingArea
from federator.store.partition_reader import IndexReader
from federator.store.table_scan import TableScan

#: the tables that a query may use: the columns of each, and the one by which the table is split into ranges
TABLES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "source": (("name", "impl", "revision", "state", "message", "crawled_at", "published_at", "horizon"), None),
    "revision": (("source", "number", "run_id", "state", "published_at", "added", "changed", "removed"), None),
    "dataset": (
        ("canonical", "state", "version", "rows", "fragments", "size", "indices", "format", "changed_at", "checked_at"), "canonical",
    ),
    "alias": (("canonical", "place"), "canonical"),
    "drift": (
        ("kind", "severity", "source", "subject", "other", "detail", "first_seen", "last_seen", "resolved_at"), "subject",
    ),
    "ledger": (
        ("mirror", "origin_source", "origin_path", "target_source", "target_path", "is_table", "location", "run_id", "updated_at"),
        "target_path",
    ),
    "journal": (("op_id", "run_id", "mirror", "action", "state", "code", "target_source", "target_path", "intent_at"), "op_id"),
    "plan": (("digest", "mirror", "run_id", "state", "body", "created_at"), "digest"),
    "run": (("id", "kind", "state", "trigger", "actor", "started_at", "finished_at"), "id"),
    "coverage": (
        ("source", "namespace", "presence", "presence_reason", "detail", "detail_reason", "records", "valid_from", "valid_to"), "id",
    ),
    "record": (("source", "is_table", "path", "valid_from", "valid_to"), "id"),
    "audit_event": (("seq", "at", "kind", "actor", "run_id", "subject"), "seq"),
    "audit_outbox": (("id",), None),
    "token": (("name", "role", "scopes", "created_at", "created_by", "expires_at", "revoked_at", "revoked_by"), None),
}  # fmt: skip
DETAILS = "details"
_CURRENT_NAME = "current"
_CURRENT = {
    "is_table": "smallint", "path": "string", "parent": "string", "kind": "string", "location": "string", "canonical": "string",
    "owner": "string", "native_id": "string", "problem": "string", "valid_from": "bigint",
}  # fmt: skip


def staged_name(name: str) -> str:
    """Return the name in staging of a report's table, or of its details."""
    return f"report-{name}.parquet"


@dataclass
class Inputs:
    """The tables that the queries of one report read. ``current`` are the records of every source at its published revision."""

    spark: SparkSession
    reader: IndexReader
    staging: StagingArea
    _staged: dict[str, DataFrame] = field(default_factory=dict)

    def load_tables(self, names: Collection[str], pool: Executor) -> None:
        """Read tables in parallel, so that ``frame`` has them."""
        if _CURRENT_NAME in names:
            # The current records depend on the table of sources.
            self.frame("source")
        list(pool.map(self.frame, sorted(set(names) - {DETAILS})))

    def frame(self, name: str) -> DataFrame:
        """Return one table by its name, or ``current``. Raise KeyError for another name."""
        if name not in self._staged:
            computed = self._current() if name == _CURRENT_NAME else self._table(name)
            self._staged[name] = self.materialize(computed, name)
        return self._staged[name]

    def materialize(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame to Parquet and read it from there, so that it is computed only once."""
        return self.spark.read.parquet(self.staging.write(frame, staged_name(name)))

    def _table(self, name: str) -> DataFrame:
        columns, key = TABLES[name]
        scan = TableScan(self.reader, name, columns, key)
        spans = scan.plan_ranges(spark_parallelism(self.spark))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from scan.read_range(spans[number])

        return self.spark.range(0, len(spans), 1, len(spans)).mapInArrow(read, scan.ddl)

    def _current(self) -> DataFrame:
        ddl = ", ".join(f"{name} {kind}" for name, kind in _CURRENT.items())
        parts = spark_parallelism(self.spark)
        frames = [
            read_ranges(
                self.spark, self.reader, row["name"], row["revision"], list(_CURRENT), ddl, self.reader.plan_ranges(row["name"], parts)
            ).withColumn("source", F.lit(row["name"]))
            for row in self.frame("source").select("name", "revision").collect()
        ]  # fmt: skip
        if not frames:
            return self.spark.range(0).selectExpr(
                *(f"cast(null as {kind}) as {name}" for name, kind in (*_CURRENT.items(), ("source", "string")))
            )
        records = frames[0]
        for frame in frames[1:]:
            records = records.unionByName(frame)
        return records
