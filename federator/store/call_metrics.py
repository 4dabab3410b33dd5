"""Counters of catalog calls over all processes. They never decrease, as ``/metrics`` requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.exc import SQLAlchemyError

from federator import logs
from federator.connector.call_metrics import BUCKET_LABELS, PROCESS_METER, CallCounts, CallMeter
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.sql import insert_or_update

_log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OperationLatency:
    """Latencies of one operation. ``cumulative`` counts the calls up to each bound of ``BUCKET_LABELS``; ``seconds`` is their sum."""

    source: str
    operation: str
    cumulative: tuple[int, ...]
    seconds: float


def add_counts(connection: Connection, counts: CallCounts) -> None:
    """Add to the counters, in the caller's transaction."""
    calls = [
        {"source": source, "operation": operation, "bucket": bucket, "calls": number, "seconds": counts.seconds.get(key, 0.0)}
        for key, number in sorted(counts.calls.items())
        for source, operation, bucket in (key,)
    ]
    errors = [
        {"source": source, "operation": operation, "code": code, "errors": number}
        for (source, operation, code), number in sorted(counts.errors.items())
    ]
    _upsert_sums(connection, t.catalog_call, calls, ("calls", "seconds"))
    _upsert_sums(connection, t.catalog_error, errors, ("errors",))


def flush_meter(index: Index, meter: CallMeter = PROCESS_METER) -> None:
    """Add the counts of this process. If the index is unavailable, they are added by the next call."""
    counts = meter.drain()
    if not counts:
        return
    try:
        with index.write() as connection:
            add_counts(connection, counts)
    except BaseException as error:
        meter.restore(counts)
        if not isinstance(error, SQLAlchemyError):
            raise
        _log.warning("call metrics not stored yet", error=type(error).__name__)


def list_latencies(connection: Connection) -> list[OperationLatency]:
    """List the latencies of all operations that were ever called, by source and name."""
    c = t.catalog_call.c
    by_operation: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
    for source, operation, bucket, calls, seconds in connection.execute(
        select(c.source, c.operation, c.bucket, c.calls, c.seconds).order_by(c.source, c.operation)
    ):
        by_operation.setdefault((source, operation), {})[bucket] = (calls, seconds)
    return [_build_latency(source, operation, buckets) for (source, operation), buckets in by_operation.items()]


def count_errors(connection: Connection) -> dict[tuple[str, str, str], int]:
    """Return the number of errors by source, operation and Lance error code."""
    return {tuple(row[:3]): row[3] for row in connection.execute(select(t.catalog_error))}


def _build_latency(source: str, operation: str, buckets: Mapping[str, tuple[int, float]]) -> OperationLatency:
    total, cumulative = 0, []
    for bucket in BUCKET_LABELS:
        total += buckets.get(bucket, (0, 0.0))[0]
        cumulative.append(total)
    return OperationLatency(source, operation, tuple(cumulative), sum(seconds for _, seconds in buckets.values()))


def _upsert_sums(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], summed: Sequence[str]) -> None:
    if not rows:
        return
    insert = insert_or_update(connection, table)
    sums = {name: table.c[name] + insert.excluded[name] for name in summed}
    connection.execute(insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=sums), list(rows))
