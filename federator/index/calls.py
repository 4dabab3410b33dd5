"""Calls to catalogs, added up over all processes and for all time: the counters behind ``/metrics`` only grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from federator.connector.calls import BUCKETS, METER, Counts, Meter
from federator.index import tables as t
from federator.index.engine import Index


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the calls of one operation took: their number up to each bound of ``BUCKETS``, and the seconds of all."""

    source: str
    operation: str
    cumulative: tuple[int, ...]
    seconds: float


def add(connection: Connection, counts: Counts) -> None:
    """Adds to the counters, in the caller's transaction."""
    calls = [
        {"source": source, "operation": operation, "bucket": bucket, "calls": number, "seconds": counts.seconds.get(key, 0.0)}
        for key, number in sorted(counts.calls.items())
        for source, operation, bucket in (key,)
    ]
    errors = [
        {"source": source, "operation": operation, "code": code, "errors": number}
        for (source, operation, code), number in sorted(counts.errors.items())
    ]
    _increase(connection, t.catalog_call, calls, ("calls", "seconds"))
    _increase(connection, t.catalog_error, errors, ("errors",))


def flush(index: Index, meter: Meter = METER) -> None:
    """Adds what this process has counted; where the database does not take it, it is counted again the next time."""
    counts = meter.take()
    if not counts:
        return
    try:
        with index.write() as connection:
            add(connection, counts)
    except BaseException:
        meter.put_back(counts)
        raise


def latencies(connection: Connection) -> list[Latency]:
    """Every operation that was ever called, by source and name."""
    c = t.catalog_call.c
    found: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
    for source, operation, bucket, calls, seconds in connection.execute(
        select(c.source, c.operation, c.bucket, c.calls, c.seconds).order_by(c.source, c.operation)
    ):
        found.setdefault((source, operation), {})[bucket] = (calls, seconds)
    return [_latency(source, operation, buckets) for (source, operation), buckets in found.items()]


def errors(connection: Connection) -> dict[tuple[str, str, str], int]:
    """Errors by source, operation and Lance error code."""
    return {tuple(row[:3]): row[3] for row in connection.execute(select(t.catalog_error))}


def _latency(source: str, operation: str, buckets: Mapping[str, tuple[int, float]]) -> Latency:
    total, cumulative = 0, []
    for bucket in BUCKETS:
        total += buckets.get(bucket, (0, 0.0))[0]
        cumulative.append(total)
    return Latency(source, operation, tuple(cumulative), sum(seconds for _, seconds in buckets.values()))


def _increase(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], summed: Sequence[str]) -> None:
    if not rows:
        return
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(table)
    more = {name: table.c[name] + insert.excluded[name] for name in summed}
    connection.execute(insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=more), list(rows))
