"""Readers of complete index tables for Spark tasks: Arrow batches in key ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from sqlalchemy import Double, Integer, func, select

from federator.store import tables as t
from federator.store.partition_reader import IndexReader, KeyRange

_BATCH_ROWS = 20_000
# With fewer rows, a second task costs more than it saves.
_MIN_ROWS_TO_SPLIT = 2 * _BATCH_ROWS


@dataclass(frozen=True, slots=True)
class TableScan:
    """Some columns of one table. ``key`` is the column that splits the table into ranges; None for a small table."""

    reader: IndexReader
    table: str
    columns: tuple[str, ...]
    key: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema. It has strings, 64-bit integers and doubles."""
        types = {name: t.metadata.tables[self.table].c[name].type for name in self.columns}
        return pa.schema([(name, _arrow_type(kind)) for name, kind in types.items()])

    @property
    def ddl(self) -> str:
        """Return the schema in Spark's DDL format."""
        names = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double"}
        return ", ".join(f"`{field.name}` {names[field.type]}" for field in self.schema)

    def plan_ranges(self, parts: int) -> list[KeyRange]:
        """Return at most ``parts`` key ranges of about equal size; one range for a table with few rows."""
        if self.key is None or parts < 2:
            return [KeyRange(None, None)]
        table = t.metadata.tables[self.table]
        key = table.c[self.key]
        index = self.reader.open()
        try:
            with index.read() as connection:
                rows = connection.execute(select(func.count()).select_from(table)).scalar_one()
                if rows < _MIN_ROWS_TO_SPLIT:
                    return [KeyRange(None, None)]
                steps = [rows * part // parts for part in range(1, parts)]
                bounds = [connection.execute(select(key).order_by(key).offset(step).limit(1)).scalar() for step in steps]
        finally:
            index.close()
        edges = [None, *(bound for bound in dict.fromkeys(bounds) if bound is not None), None]
        return [KeyRange(low, high) for low, high in pairwise(edges)]

    def read_range(self, span: KeyRange) -> Iterator[pa.RecordBatch]:
        """Stream the rows within a key range, in batches."""
        table = t.metadata.tables[self.table]
        query = select(*(table.c[name] for name in self.columns))
        if self.key is not None and span.low is not None:
            query = query.where(table.c[self.key] > span.low)
        if self.key is not None and span.high is not None:
            query = query.where(table.c[self.key] <= span.high)
        yield from _batches(self.reader, query, self.schema)


def _batches(reader: IndexReader, query: object, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    index = reader.open()
    try:
        with index.read() as connection:
            result = connection.execution_options(stream_results=True, yield_per=_BATCH_ROWS).execute(query)  # type: ignore[call-overload]
            for chunk in result.partitions():
                columns: Sequence[Sequence[object]] = list(zip(*chunk, strict=True))
                arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    finally:
        index.close()


def _arrow_type(kind: object) -> pa.DataType:
    # SmallInteger and BigInteger are subclasses of Integer; Double is not.
    return pa.float64() if isinstance(kind, Double) else pa.int64() if isinstance(kind, Integer) else pa.string()
