"""New and changed records that Spark's tasks write into the index, each partition as one part of the draft (ADR 21)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from federator.pipeline.search_words import build_safe_words, incoming_rows
from federator.pipeline.secret_fingerprints import SecretFingerprints
from federator.store import Index, search_entries
from federator.store.draft_parts import PartWriter, WrittenPart
from federator.store.draft_rows import DraftRevision
from federator.store.leases import Lease
from federator.store.partition_reader import IndexReader

# Rows may be wide, and a task has one chunk in memory.
_CHUNK_ROWS = 5_000
_WRITTEN_DDL = "part int, records bigint, digest bigint, unindexed bigint"


@dataclass(frozen=True, slots=True)
class RecordParts:
    """Records of a crawl that are not staged. ``reader`` opens the index in a task, by a secret reference.

    ``replaces`` tells whether some of them replace records of the index. Tasks close these records.
    """

    source: str
    records: DataFrame
    reader: IndexReader
    replaces: bool

    def write(self, index: Index, lease: Lease, draft: DraftRevision) -> list[WrittenPart]:
        """Write all records into the draft and return its parts. Raise LeaseLost if the lease was lost meanwhile."""
        writer = PartWriter(draft, lease.name, lease.token, self.replaces)
        source, reader, fingerprints = self.source, self.reader, SecretFingerprints.of_known_secrets()

        def write_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            opened = reader.open()
            try:
                written = writer.write(opened, context.partitionId(), _iter_chunks(source, batches, fingerprints))
            finally:
                opened.close()
            yield pa.RecordBatch.from_pylist([asdict(written)], _WRITTEN_SCHEMA)

        try:
            rows = self.records.mapInArrow(write_part, _WRITTEN_DDL).collect()
        except PySparkException:
            # A task that finds the lease lost fails in Spark's way. The cause must not be hidden behind it.
            with index.read() as connection:
                lease.require_held(connection)
            raise
        parts = [WrittenPart(*row) for row in rows]
        if any(part.unindexed for part in parts):
            search_entries.insert_missing_entries(index, lease, draft.source, draft.number)
        return parts


_WRITTEN_SCHEMA = pa.schema([("part", pa.int32()), ("records", pa.int64()), ("digest", pa.int64()), ("unindexed", pa.int64())])


def _iter_chunks(
    source: str, batches: Iterator[pa.RecordBatch], fingerprints: SecretFingerprints
) -> Iterator[Sequence[Sequence[Any]]]:
    for batch in batches:
        for start in range(0, len(batch), _CHUNK_ROWS):
            chunk = batch.slice(start, _CHUNK_ROWS)
            yield list(incoming_rows(chunk, build_safe_words(source, chunk, fingerprints)))
