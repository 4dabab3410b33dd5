"""The staging directory of a run: Parquet that Spark writes, and Spark or the driver reads.

With a local master it is a directory of this machine, which the driver reads directly. On a cluster it is a URI that every executor can
reach; then only Spark reads and writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from federator.pipeline.small_crawls import MAX_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

#: rows may be wide, and a process holds a few batches
BATCH_ROWS = 5_000
# of each column that is read
_BUFFER_BYTES = 2**18


@dataclass(frozen=True)
class StagingArea:
    """The directory of one run. ``root`` is a path of this machine, or a URI with a scheme."""

    spark: SparkSession
    root: str

    def path(self, name: str) -> str:
        """Return the path under which Spark writes and reads ``name``."""
        return f"{self.root}/{name}"

    def write(self, frame: DataFrame, name: str) -> str:
        """Write a DataFrame as ``name``, in place of an earlier attempt, and return its path."""
        frame.write.mode("overwrite").parquet(self.path(name))
        return self.path(name)

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return staged rows (all columns, or these) in batches of at most ``BATCH_ROWS``, of which the driver holds a few."""
        if self.is_remote:
            frame = self.spark.read.parquet(path)
            frame = frame if columns is None else frame.select(*columns)
            schema = to_arrow_schema(frame.schema)
            return pa.RecordBatchReader.from_batches(schema, _batches(frame.toLocalIterator(), schema))
        dataset = pq.ParquetDataset(path)
        names = list(columns) if columns is not None else dataset.schema.names
        schema = pa.schema([dataset.schema.field(name) for name in names])
        # Reading the fragments of the dataset itself would decode a whole row group at once. Without a buffer, it would be loaded.
        files = (pq.ParquetFile(part.path, buffer_size=_BUFFER_BYTES) for part in dataset.fragments)
        parts = (file.iter_batches(BATCH_ROWS, columns=names) for file in files)
        return pa.RecordBatchReader.from_batches(schema, chain.from_iterable(parts))

    def count(self, path: str) -> int:
        """Return the number of staged rows."""
        if self.is_remote:
            return self.spark.read.parquet(path).count()
        return sum(fragment.count_rows() for fragment in pq.ParquetDataset(path).fragments)

    def is_small(self, path: str) -> bool:
        """Return whether a single Python task should read ``path``. It must not be remote, because only Spark can read it there."""
        return not self.is_remote and self.count(path) <= MAX_ROWS

    def remove(self) -> None:
        """Remove a remote directory. A local one is removed with the run's other files.

        A client of Spark Connect cannot delete it: all that is in it is replaced by an empty file.
        """
        if not self.is_remote:
            return
        if not hasattr(self.spark, "_jvm"):
            self.spark.range(0).coalesce(1).write.mode("overwrite").parquet(self.root)
            return
        jvm: Any = self.spark._jvm
        directory = jvm.org.apache.hadoop.fs.Path(self.root)
        directory.getFileSystem(self.spark._jsc.hadoopConfiguration()).delete(directory, True)

    @property
    def is_remote(self) -> bool:
        """Whether only Spark can read it."""
        return "://" in self.root


def _batches(rows: Iterator[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(rows, BATCH_ROWS)):
        columns = zip(*chunk, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
        )
