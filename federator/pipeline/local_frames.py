"""Small DataFrames from rows of the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = 10_000


def local_frame(
    spark: SparkSession, names: Sequence[str], rows: Sequence[tuple[str | None, ...]], *, parts: int = 1
) -> DataFrame:
    """Return rows of text columns as a DataFrame of ``parts`` partitions. ``build_batches`` is sent to the tasks with all rows in it.

    ``SparkSession.createDataFrame`` would first import pandas on the driver, which takes a second.
    """
    schema = pa.schema([(name, pa.string()) for name in names])
    partitions = [rows[part::parts] for part in range(parts)]

    def build_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                for start in range(0, len(partitions[part]), _BATCH_ROWS):
                    columns = zip(*partitions[part][start : start + _BATCH_ROWS], strict=True)
                    yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=schema)

    # Each partition of the range has one number: that of its part.
    return spark.range(0, parts, 1, parts).mapInArrow(build_batches, ", ".join(f"`{name}` string" for name in names))
