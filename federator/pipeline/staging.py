"""Staging: the Parquet files of one crawl of one source. One action writes records and coverage.

A row is a record, a coverage or an identity reading (column ``row``). The record columns are those of ``federator.model.rows``. The
last row of each task contains its call counts (``federator.connector.call_metrics.CallCounts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from federator.model import Coverage, CoverageState, Evidence, Identity, Record, parse_path_key
from federator.model.rows import coverage_to_row, record_to_row
from federator.pipeline.crawl_columns import CALLS, COLUMNS, COVERAGE, IDENTITY, RECORD
from federator.planning.identity import IdentityReading

_ARROW = {
    "string": pa.string(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
    "boolean": pa.bool_(),
}  # fmt: skip
SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in COLUMNS.items()])

BATCH_ROWS = 10_000


def crawl_batches(
    items: Iterable[Record | Coverage | IdentityReading], *, source: str, shard: int, began_at: float, calls: Callable[[], str]
) -> Iterator[pa.RecordBatch]:
    """Yield records and coverage as Arrow batches of the staging schema. ``calls`` is called after all items were read."""
    rows: list[dict[str, Any]] = []
    for item in items:
        rows.append(_row(item))
        if len(rows) >= BATCH_ROWS:
            yield _batch(rows, source, shard, began_at)
            rows = []
    rows.append({"row": CALLS, "calls": calls()})
    yield _batch(rows, source, shard, began_at)


def coverage_from_row(row: dict[str, Any]) -> Coverage:
    """Build the coverage of a staged row."""
    return Coverage(
        source=row["source"],
        namespace=parse_path_key(row["namespace"]),
        presence=Evidence(CoverageState(row["presence"]), row["presence_reason"], row["presence_code"]),
        detail=Evidence(CoverageState(row["detail"]), row["detail_reason"], row["detail_code"]),
        records=row["records"],
        digest=row["fold"],
        found=row["found"],
    )


def identity_from_row(row: dict[str, Any]) -> IdentityReading:
    """Build the identity reading of a staged row."""
    return IdentityReading(Identity.from_json(row["identity"]) if row["identity"] else None, row["identity_error"])


def _row(item: Record | Coverage | IdentityReading) -> dict[str, Any]:
    if isinstance(item, IdentityReading):
        text = item.identity.to_json() if item.identity is not None else None
        return {"row": IDENTITY, "identity": text, "identity_error": item.error}
    return _coverage(item) if isinstance(item, Coverage) else {"row": RECORD, **record_to_row(item)}


def _batch(rows: list[dict[str, Any]], source: str, shard: int, began_at: float) -> pa.RecordBatch:
    count = len(rows)
    constant = {
        "source": pa.array([source] * count, pa.string()),
        "shard": pa.array([shard] * count, pa.int32()),
        "began_at": pa.array([began_at] * count, pa.float64()),
    }
    columns = [
        constant[field.name] if field.name in constant else pa.array([row.get(field.name) for row in rows], field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {"row": COVERAGE, **coverage_to_row(coverage), "fold": coverage.digest, "found": coverage.found}
