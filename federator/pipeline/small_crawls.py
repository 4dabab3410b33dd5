"""Small crawls: each question about the staged rows is one Python task, which calls the pure rules.

Grouping and joining in Spark generate and compile code for each query, and shuffle. Below some ten thousand rows, that takes longer
than the rows themselves.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from federator.connector.call_metrics import CallCounts
from federator.pipeline.crawl_columns import CALLS, COVERAGE, IDENTITY, RECORD
from federator.pipeline.staging import coverage_from_row, identity_from_row
from federator.planning.crawls import Arrival, ArrivalCollector
from federator.planning.identity import IdentityReading
from federator.planning.publication import Effect, Version, compare_versions, known_time
from federator.store.partition_reader import KEY_COLUMNS, IndexReader, KeyRange

#: up to this many rows, a crawl is validated and compared in one task each
MAX_ROWS = 40_000

#: effects that change the index
DIFFERING = (Effect.ADDED, Effect.CHANGED, Effect.MISSING)
_KEYS = ["row", "is_table", "path", "kind", "digest", "began_at"]
_EVIDENCE = [
    "row", "source", "is_table", "path", "parent", "digest", "namespace", "presence", "presence_code", "presence_reason", "detail",
    "detail_code", "detail_reason", "records", "fold", "found", "calls", "identity", "identity_error",
]  # fmt: skip

Arrivals = tuple[dict[str, Arrival], CallCounts, tuple[IdentityReading, ...]]
#: key of an object, ``(is_table, path)``, and the effect of the crawl on it
Differences = list[tuple[tuple[int, str], Effect]]


def run_in_task(spark: SparkSession, function: Callable[[], Any]) -> Any:
    """Call a function in one Python task, and return its result."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            results = [pickle.dumps(function()) for _ in batch.column(0)]
            yield pa.RecordBatch.from_arrays([pa.array(results, pa.binary())], names=["result"])

    ((result,),) = spark.range(0, 1, 1, 1).mapInArrow(run, "result binary").collect()
    return pickle.loads(bytes(result))  # noqa: S301 - pickled by the function above, as Spark itself does


def collect_staged_arrivals(staged: str) -> Arrivals:
    """Return what arrived of each namespace, the calls of the crawl, and the identities of its connections."""
    collector, calls, identities = ArrivalCollector(), CallCounts(), list[IdentityReading]()
    for row in _staged_rows(staged, _EVIDENCE):
        match row["row"]:
            case kind if kind == RECORD:
                collector.add_record(row["path"], row["parent"], row["digest"], is_namespace=not row["is_table"])
            case kind if kind == COVERAGE:
                collector.add_coverage(coverage_from_row(row))
            case kind if kind == IDENTITY:
                identities.append(identity_from_row(row))
            case kind if kind == CALLS:
                calls.merge(CallCounts.from_json(row["calls"]))
    return collector.arrivals, calls, tuple(identities)


def compare_staged_keys(
    reader: IndexReader,
    source: str,
    revision: int,
    staged: str,
    namespaces: Collection[str] | None,
    tables: Sequence[str],
    began_at: float,
    now: float,
) -> Differences:
    """Return the objects that differ between a crawl and the published revision.

    ``namespaces`` are the path keys of the namespaces that were to be read (None: all), and ``tables`` those of tables of other
    namespaces. Observations later than ``now`` do not count.
    """
    crawled: dict[tuple[int, str], Version] = {}
    for row in _staged_rows(staged, _KEYS):
        if row["row"] == RECORD:
            # If pages shift during the listing, an object may appear twice; keep the first.
            crawled.setdefault((row["is_table"], row["path"]), Version(row["kind"], row["digest"], row["began_at"]))
    indexed: dict[tuple[int, str], Version] = {}
    for batch in _indexed_keys(reader, source, revision, namespaces, tables):
        for is_table, path, kind, digest, observed_at in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            indexed[is_table, path] = Version(kind, digest, known_time(observed_at, now))
    effects = ((key, compare_versions(indexed.get(key), crawled.get(key), began_at)) for key in {**crawled, **indexed})
    return [(key, effect) for key, effect in effects if effect in DIFFERING]


def select_records(batches: Iterator[pa.RecordBatch], keys: Collection[tuple[int, str]]) -> Iterator[pa.RecordBatch]:
    """Yield the staged records with these keys, each once. The batches have the columns ``row``, ``is_table`` and ``path``."""
    left = set(keys)
    for batch in batches:
        mask = []
        for kind, *key in zip(*(batch.column(name).to_pylist() for name in ("row", "is_table", "path")), strict=True):
            selected = kind == RECORD and tuple(key) in left
            left -= {tuple(key)} if selected else set()
            mask.append(selected)
        if any(mask):
            yield batch.filter(pa.array(mask))


def _indexed_keys(
    reader: IndexReader, source: str, revision: int, namespaces: Collection[str] | None, tables: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    if revision == 0:
        return
    if namespaces is None:
        yield from reader.read_range(source, revision, KEY_COLUMNS, KeyRange(None, None))
        return
    yield from reader.read_children(source, revision, KEY_COLUMNS, sorted(namespaces))
    yield from reader.read_tables(source, revision, KEY_COLUMNS, tables)


def _staged_rows(staged: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for part in pq.ParquetDataset(staged).fragments:
        for batch in part.to_batches(columns=list(columns)):
            yield from batch.to_pylist()
