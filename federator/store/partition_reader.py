"""Picklable readers that Spark tasks use to read the index in key ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, Select, func, select

from federator.connector.options import resolve_reference
from federator.store import ledger, records
from federator.store import tables as t
from federator.store.engine import Index, open_index
from federator.store.sql import chunked

BATCH_ROWS = 20_000
#: columns of ``record``: for the comparison with a crawl, and with the whole content of a table
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

#: with fewer rows, a second task costs more than it saves
MIN_ROWS_TO_SPLIT = 2 * BATCH_ROWS
# The columns that are not texts.
_TYPES = {"is_table": pa.int16(), "observed_at": pa.float64(), "valid_from": pa.int64(), "origin_exists": pa.bool_()}


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of some columns of ``record`` or of the ledger's rows. A column is a text, unless ``_TYPES`` names it."""
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys greater than ``low``, up to and including ``high``. None: no bound on this side."""

    low: str | None
    high: str | None

    def conditions_on(self, key: ColumnElement[str]) -> list[ColumnElement[bool]]:
        """Return the conditions that a column is in this range."""
        conditions = [key > self.low] if self.low is not None else []
        return [*conditions, key <= self.high] if self.high is not None else conditions


@dataclass(frozen=True, slots=True)
class IndexReader:
    """A picklable reader of the index's records. ``url`` may be a secret reference, which the Spark worker resolves.

    The methods raise ConfigError for an invalid ``url``. Each of them except ``open`` closes what it opens.
    """

    url: str

    @property
    def is_sqlite(self) -> bool:
        return self._resolved_url.startswith("sqlite")

    def open(self) -> Index:
        """Open the index. The caller closes it."""
        return open_index(self._resolved_url)

    def read_range(
        self, source: str, revision: int, columns: Sequence[str], key_range: KeyRange, *, is_table: bool | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the records of a source at a revision within a key range, as Arrow batches of ``columns``."""
        r = t.record.c
        conditions = key_range.conditions_on(r.path)
        if is_table is not None:
            conditions.append(r.is_table == int(is_table))
        query = records.select_at_revision(source, revision, *conditions, columns=[r[name] for name in columns])
        yield from self._iter_batches([query], columns)

    def read_children(
        self, source: str, revision: int, columns: Sequence[str], namespaces: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Stream the direct children of some namespaces (path keys) at a revision, as Arrow batches of ``columns``."""
        r = t.record.c
        selected = [r[name] for name in columns]
        # The parent of the root's own record is the root's path key, "", but the root is not its own child.
        queries = [
            records.select_at_revision(source, revision, r.parent.in_(chunk), r.path != "", columns=selected)
            for chunk in chunked(namespaces)
        ]
        yield from self._iter_batches(queries, columns)

    def read_tables(
        self, source: str, revision: int, columns: Sequence[str], tables: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Stream some tables (path keys) at a revision, as Arrow batches of ``columns``."""
        r = t.record.c
        selected = [r[name] for name in columns]
        queries = [
            records.select_at_revision(source, revision, r.path.in_(chunk), r.is_table == 1, columns=selected)
            for chunk in chunked(tables)
        ]
        yield from self._iter_batches(queries, columns)

    def read_ledger(
        self, mirror: str, origin: str, revision: int, target: str, key_range: KeyRange
    ) -> Iterator[pa.RecordBatch]:
        """Stream a mirror's tables in a target within a range of target paths (``ledger.select_rows``), as Arrow batches."""
        query = ledger.select_rows(mirror, origin, revision, target).where(*key_range.conditions_on(t.ledger.c.target_path))
        yield from self._iter_batches([query], query.selected_columns.keys())

    def count_ledger(self, mirror: str) -> int:
        """Return the number of a mirror's tables in the ledger, in all its targets."""
        index = self.open()
        try:
            with index.read() as connection:
                return ledger.count_tables(connection, mirror)
        finally:
            index.close()

    def count_records(self, source: str, revision: int, namespaces: Collection[str] | None = None) -> int:
        """Return the number of records of a source at a revision: all, or those whose parent is one of ``namespaces`` (path keys)."""
        r = t.record.c
        if namespaces is None:
            queries = [records.select_at_revision(source, revision, columns=[r.path])]
        else:
            queries = [
                records.select_at_revision(source, revision, r.parent.in_(chunk), columns=[r.path])
                for chunk in chunked(sorted(namespaces))
            ]
        index = self.open()
        try:
            with index.read() as connection:
                counts = (select(func.count()).select_from(query.subquery()) for query in queries)
                return sum(connection.execute(count).scalar_one() for count in counts)
        finally:
            index.close()

    @property
    def _resolved_url(self) -> str:
        return resolve_reference(self.url, where="[index] url")

    def _iter_batches(self, queries: Sequence[Select[Any]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if not queries:
            return
        index = self.open()
        try:
            yield from stream_batches(index, queries, arrow_schema(columns))
        finally:
            index.close()

    def plan_ranges(self, source: str, parts: int) -> list[KeyRange]:
        """Return at most ``parts`` key ranges over all paths of a source; one range for a small source.

        They split the current tables about equally. The outer ranges have no bounds, so together they contain the records of any
        revision.
        """
        index = self.open()
        r = t.record.c
        try:
            with index.read() as connection:
                _, tables = records.count_objects(connection, source)
                if tables < MIN_ROWS_TO_SPLIT or parts < 2:
                    return [KeyRange(None, None)]
                current = select(r.path).where(r.source == source, r.is_table == 1, r.valid_to.is_(None))
                return split_rows(connection, current.order_by(r.path), tables, parts)
        finally:
            index.close()


def split_rows(connection: Connection, ordered: Select[Any], rows: int, parts: int) -> list[KeyRange]:
    """Return at most ``parts`` key ranges of about equal size. ``ordered`` selects the sorted keys of ``rows`` rows."""
    offsets = [rows * part // parts for part in range(1, parts)]
    bounds = [connection.execute(ordered.offset(offset).limit(1)).scalar() for offset in offsets]
    edges = [None, *(bound for bound in dict.fromkeys(bounds) if bound is not None), None]
    return [KeyRange(low, high) for low, high in pairwise(edges)]


def stream_batches(index: Index, queries: Sequence[Select[Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Stream the rows of some queries as Arrow batches. The columns of each query are those of ``schema``, in its order."""
    with index.read() as connection:
        streamed = connection.execution_options(stream_results=True, yield_per=BATCH_ROWS)
        for query in queries:
            for chunk in streamed.execute(query).partitions():
                columns = zip(*chunk, strict=True)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
