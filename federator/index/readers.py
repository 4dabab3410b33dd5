"""Picklable readers that Spark tasks use to read the index in key ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Select, select

from federator.connector.options import resolve
from federator.index import records
from federator.index import tables as t
from federator.index.bulk import chunks
from federator.index.engine import Index, open_index

KEYS = ("is_table", "path", "kind", "digest", "observed_at")
TABLES = (
    "path",
    "kind",
    "canonical",
    "location",
    "properties",
    "doc",
    "owner",
    "schema",
    "native_id",
    "version",
    "problem",
    "digest",
)

_TYPES = {"is_table": pa.int16(), "observed_at": pa.float64(), "valid_from": pa.int64()}
_BATCH = 20_000


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of some record columns."""
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Paths greater than ``low`` up to ``high``; an empty ``high`` has no bound, and the range that starts the order holds the root."""

    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True)
class IndexReader:
    """Where the index is, as a reference that a worker resolves."""

    url: str

    def open(self) -> Index:
        return open_index(resolve(self.url, where="[index] url"))

    def rows(
        self, source: str, revision: int, columns: Sequence[str], span: KeyRange, *, is_table: bool | None = None
    ) -> Iterator[pa.RecordBatch]:
        """A source's records at a revision within a key range, as Arrow batches of ``columns``."""
        r = t.record.c
        conditions: list[ColumnElement[bool]] = []
        if span.low is not None:
            conditions.append(r.path > span.low)
        if span.high is not None:
            conditions.append(r.path <= span.high)
        if is_table is not None:
            conditions.append(r.is_table == int(is_table))
        query = records.at_revision(source, revision, *conditions, columns=[r[name] for name in columns])
        yield from self._batches([query], columns)

    def children(
        self, source: str, revision: int, columns: Sequence[str], namespaces: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """What a source has at a revision directly in some namespaces (text form), as Arrow batches of ``columns``."""
        r = t.record.c
        wanted = [r[name] for name in columns]
        # A root that has a record of its own is no child of itself.
        inside = (r.parent.in_(part) for part in chunks(namespaces))
        queries = [records.at_revision(source, revision, part, r.path != "", columns=wanted) for part in inside]
        yield from self._batches(queries, columns)

    def _batches(self, queries: Sequence[Select[Any]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        index = self.open()
        schema = arrow_schema(columns)
        try:
            with index.read() as connection:
                streamed = connection.execution_options(stream_results=True, yield_per=_BATCH)
                for query in queries:
                    for chunk in streamed.execute(query).partitions():
                        values = list(zip(*chunk, strict=True))
                        arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        finally:
            index.close()

    def ranges(self, source: str, parts: int) -> list[KeyRange]:
        """At most ``parts`` key ranges of about equal size over a source's open records; one where there are few."""
        index = self.open()
        r = t.record.c
        try:
            with index.read() as connection:
                _, tables = records.counts(connection, source)
                if tables < 2 * _BATCH or parts < 2:
                    return [KeyRange(None, None)]
                scope = (r.source == source) & (r.is_table == 1) & r.valid_to.is_(None)
                steps = [tables * part // parts for part in range(1, parts)]
                bounds = [
                    connection.execute(select(r.path).where(scope).order_by(r.path).offset(step).limit(1)).scalar()
                    for step in steps
                ]
        finally:
            index.close()
        edges: list[str | None] = [None, *(bound for bound in dict.fromkeys(bounds) if bound is not None), None]
        return [KeyRange(low, high) for low, high in pairwise(edges)]
