"""Picklable readers that Spark tasks use to read the index in key ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Select, func, select

from federator.connector.options import resolve_reference
from federator.store import records
from federator.store import tables as t
from federator.store.engine import Index, open_index
from federator.store.sql import chunked

KEY_COLUMNS = ("is_table", "path", "kind", "digest", "observed_at")
TABLE_COLUMNS = (
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
_BATCH_ROWS = 20_000


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of some record columns."""
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys greater than ``low``, up to and including ``high``. None: no bound on this side."""

    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True)
class IndexReader:
    """A picklable reader of the index. ``url`` may be a secret reference, which the worker resolves."""

    url: str

    def open(self) -> Index:
        return open_index(resolve_reference(self.url, where="[index] url"))

    def read_range(
        self, source: str, revision: int, columns: Sequence[str], span: KeyRange, *, is_table: bool | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the records of a source at a revision within a key range, as Arrow batches of ``columns``."""
        r = t.record.c
        conditions: list[ColumnElement[bool]] = []
        if span.low is not None:
            conditions.append(r.path > span.low)
        if span.high is not None:
            conditions.append(r.path <= span.high)
        if is_table is not None:
            conditions.append(r.is_table == int(is_table))
        query = records.select_at_revision(source, revision, *conditions, columns=[r[name] for name in columns])
        yield from self._batches([query], columns)

    def read_children(
        self, source: str, revision: int, columns: Sequence[str], namespaces: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Stream the direct children of some namespaces (path keys) at a revision, as Arrow batches of ``columns``."""
        r = t.record.c
        selected = [r[name] for name in columns]
        # The root may have a record of its own, whose parent is the empty key too: it is not its own child.
        inside = (r.parent.in_(chunk) for chunk in chunked(namespaces))
        queries = [records.select_at_revision(source, revision, parents, r.path != "", columns=selected) for parents in inside]
        yield from self._batches(queries, columns)

    def count_keys(self, source: str, revision: int, namespaces: Collection[str] | None = None) -> int:
        """Return the number of records of a source at a revision, or of those directly in some namespaces (path keys)."""
        index = self.open()
        r = t.record.c
        inside = [[]] if namespaces is None else [[r.parent.in_(chunk)] for chunk in chunked(sorted(namespaces))]
        try:
            with index.read() as connection:
                return sum(
                    connection.execute(
                        select(func.count()).select_from(
                            records.select_at_revision(source, revision, *conditions, columns=[r.path]).subquery()
                        )
                    ).scalar_one()
                    for conditions in inside
                )
        finally:
            index.close()

    def _batches(self, queries: Sequence[Select[Any]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        index = self.open()
        schema = arrow_schema(columns)
        try:
            with index.read() as connection:
                streamed = connection.execution_options(stream_results=True, yield_per=_BATCH_ROWS)
                for query in queries:
                    for chunk in streamed.execute(query).partitions():
                        values = list(zip(*chunk, strict=True))
                        arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        finally:
            index.close()

    def plan_ranges(self, source: str, parts: int) -> list[KeyRange]:
        """Return at most ``parts`` key ranges of about equal size over a source's records; one range for a small source."""
        index = self.open()
        r = t.record.c
        try:
            with index.read() as connection:
                _, tables = records.count_objects(connection, source)
                if tables < 2 * _BATCH_ROWS or parts < 2:
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
