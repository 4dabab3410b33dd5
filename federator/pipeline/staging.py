"""Staging: what one crawl of one source handed over, as Parquet. One action writes records and Coverage.

A row is either a record or a Coverage (column ``row``); the record columns are those of ``federator.model.rows``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from federator.model import Coverage, CoverageState, Evidence, Record, parse_key
from federator.model.rows import RECORD_COLUMNS, record_row

RECORD, COVERAGE = "record", "coverage"

_RECORD_TYPES = {name: pa.string() for name in RECORD_COLUMNS} | {"is_table": pa.int16()}
SCHEMA = pa.schema(
    [("source", pa.string()), ("row", pa.string()), ("shard", pa.int32()), ("began_at", pa.float64())]
    + [(name, _RECORD_TYPES[name]) for name in RECORD_COLUMNS]
    + [
        ("namespace", pa.string()), ("presence", pa.string()), ("presence_code", pa.int32()), ("presence_reason", pa.string()),
        ("detail", pa.string()), ("detail_code", pa.int32()), ("detail_reason", pa.string()),
        ("records", pa.int64()), ("fold", pa.int64()), ("found", pa.bool_()),
    ]
)  # fmt: skip

# The same as Spark DDL, so that planning needs no conversion.
DDL = ", ".join(
    f"`{field.name}` {({'string': 'string', 'int16': 'smallint', 'int32': 'int', 'int64': 'bigint', 'double': 'double', 'bool': 'boolean'})[str(field.type)]}"  # noqa: E501
    for field in SCHEMA
)

BATCH = 10_000


def batches(items: Iterable[Record | Coverage], *, source: str, shard: int, began_at: float) -> Iterator[pa.RecordBatch]:
    """Records and Coverage as Arrow batches of the staging schema."""
    rows: list[dict[str, Any]] = []
    for item in items:
        body = _coverage_row(item) if isinstance(item, Coverage) else {"row": RECORD, **record_row(item)}
        rows.append(body)
        if len(rows) >= BATCH:
            yield _batch(rows, source, shard, began_at)
            rows = []
    if rows:
        yield _batch(rows, source, shard, began_at)


def coverage_of(row: dict[str, Any]) -> Coverage:
    """The Coverage of a staged row."""
    return Coverage(
        source=row["source"],
        namespace=parse_key(row["namespace"]),
        presence=Evidence(CoverageState(row["presence"]), row["presence_reason"], row["presence_code"]),
        detail=Evidence(CoverageState(row["detail"]), row["detail_reason"], row["detail_code"]),
        records=row["records"],
        digest=row["fold"],
        found=row["found"],
    )


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


def _coverage_row(coverage: Coverage) -> dict[str, Any]:
    return {
        "row": COVERAGE,
        "namespace": coverage.key,
        "presence": coverage.presence.state.value,
        "presence_code": coverage.presence.code,
        "presence_reason": coverage.presence.reason,
        "detail": coverage.detail.state.value,
        "detail_code": coverage.detail.code,
        "detail_reason": coverage.detail.reason,
        "records": coverage.records,
        "fold": coverage.digest,
        "found": coverage.found,
    }
