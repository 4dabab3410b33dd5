"""Readers of complete index tables for Spark tasks: Arrow batches in key ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlalchemy import Double, Integer, func, select

from federator.store import tables as t
from federator.store.partition_reader import MIN_ROWS_TO_SPLIT, IndexReader, KeyRange, split_rows, stream_batches


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
                if rows < MIN_ROWS_TO_SPLIT:
                    return [KeyRange(None, None)]
                return split_rows(connection, select(key).order_by(key), rows, parts)
        finally:
            index.close()

    def read_range(self, key_range: KeyRange) -> Iterator[pa.RecordBatch]:
        """Stream the rows within a key range, in batches."""
        table = t.metadata.tables[self.table]
        query = select(*(table.c[name] for name in self.columns))
        if self.key is not None and key_range.low is not None:
            query = query.where(table.c[self.key] > key_range.low)
        if self.key is not None and key_range.high is not None:
            query = query.where(table.c[self.key] <= key_range.high)
        index = self.reader.open()
        try:
            yield from stream_batches(index, [query], self.schema)
        finally:
            index.close()


def _arrow_type(kind: object) -> pa.DataType:
    # SmallInteger and BigInteger are subclasses of Integer; Double is not.
    return pa.float64() if isinstance(kind, Double) else pa.int64() if isinstance(kind, Integer) else pa.string()
