"""Small DataFrames from the driver's own rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 10_000


def local_frame(
    spark: SparkSession, names: Sequence[str], rows: Sequence[tuple[str | None, ...]], *, parts: int = 1
) -> DataFrame:
    """Rows of text columns as a DataFrame of ``parts`` partitions; they travel with the job.

    ``SparkSession.createDataFrame`` would import pandas on the driver first, which alone takes a second.
    """
    schema = pa.schema([(name, pa.string()) for name in names])
    hands = [rows[part::parts] for part in range(parts)]

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                for start in range(0, len(hands[part]), _BATCH):
                    columns = zip(*hands[part][start : start + _BATCH], strict=True)
                    yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=schema)

    return spark.range(0, parts, 1, parts).mapInArrow(make, ", ".join(f"`{name}` string" for name in names))
