"""Extracts: what the index knows as Arrow streams, for other programs. docs/datasets.md says what each column means.

Times are UTC; properties and column lists are JSON, since Lance's and DuckDB's maps do not agree; secrets in properties are masked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, RowMapping, Select, func, select, union_all

from federator.connector.options import masked
from federator.index import tables as t
from federator.index.bulk import chunks
from federator.index.datasets import current
from federator.index.engine import Index
from federator.index.looks import UNVERIFIED
from federator.model import canonical_json, parse_key, path_key

_BATCH = 20_000
_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(pa.string())

r, d, s = t.record.c, t.dataset.c, t.source.c
# What a row of the database and one of our own have in common: values by column.
Row = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Extract:
    """One table: its name, its columns, and its rows from a connection."""

    name: str
    schema: pa.Schema
    rows: Callable[[Connection], Iterable[Row]]

    def batches(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        """Its rows as Arrow batches, streamed."""
        for chunk in chunks(self.rows(connection), _BATCH):
            arrays = [pa.array([_value(row[f.name], f.type) for row in chunk], f.type) for f in self.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@contextmanager
def snapshot(index: Index) -> Iterator[Connection]:
    """A connection for which the index stands still, so that all extracts tell of one state."""
    with index.engine.connect() as connection:
        if not index.sqlite:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def _value(value: Any, kind: pa.DataType) -> Any:
    return value if value is None or kind != _TIME else round(value * 1_000_000)


def _streamed(connection: Connection, query: Select[Any]) -> Iterator[RowMapping]:
    return iter(connection.execute(query.execution_options(yield_per=5000)).mappings())


def _everywhere(columns: list[Any]) -> Any:
    """Columns of every current declaration, with its place and what was found there."""
    place = func.coalesce(t.alias.c.place, r.canonical).label("place")
    queries = current([place, *columns])
    return union_all(
        *(query.outerjoin_from(t.record, t.alias, t.alias.c.canonical == r.canonical) for query in queries)
    ).subquery()


def _datasets(connection: Connection) -> Iterator[Row]:
    at = _everywhere([r.source, r.canonical])
    verified = [d[name] for name in (*_VERIFIED, "state", "message", "schema", "checked_at", "changed_at")]
    query = select(at.c.place, at.c.source, *verified).outerjoin_from(at, t.dataset, d.canonical == at.c.canonical)
    ordered = _streamed(connection, query.where(at.c.place.is_not(None)).order_by(at.c.place))
    for place, group in groupby(ordered, key=lambda row: row["place"]):
        rows = list(group)
        # A place with several names may have been opened by each: the last look counts.
        found = max(rows, key=lambda row: row["checked_at"] or 0.0)
        sources = [row["source"] for row in rows]
        yield {
            **found, "location": place, "state": found["state"] or UNVERIFIED, "declarations": len(rows),
            "sources": sorted(set(sources)),
        }  # fmt: skip


def _declarations(connection: Connection) -> Iterator[Row]:
    names = ("source", "path", "name", "kind", "location", "properties", "doc", "owner", "schema", "native_id", "digest")
    at = _everywhere([r[name] for name in names])
    for row in _streamed(connection, select(at).order_by(at.c.source, at.c.path)):
        path = parse_key(row["path"])
        properties = canonical_json(masked(json.loads(row["properties"])))
        yield {
            **row,
            "id": path_key((row["source"], *path)),
            "path": list(path),
            "dataset": row["place"],
            "properties": properties,
        }


def _plain(table: Any, *order: Any) -> Callable[[Connection], Iterable[Row]]:
    return lambda connection: _streamed(connection, select(table).order_by(*order))


def _coverage(connection: Connection) -> Iterator[Row]:
    c = t.coverage.c
    query = select(t.coverage).where(c.source == s.name, c.valid_from <= s.revision, c.valid_to.is_(None))
    for row in _streamed(connection, query.order_by(c.source, c.namespace)):
        yield {**row, "namespace": list(parse_key(row["namespace"]))}


def _of(**columns: Any) -> pa.Schema:
    return pa.schema(list(columns.items()))


_VERIFIED = ("version", "rows", "size", "fragments", "indices", "fingerprint", "format")
_TEXT, _INT = pa.string(), pa.int64()

EXTRACTS = (
    Extract("datasets", _of(
        location=_TEXT, state=_TEXT, message=_TEXT, declarations=_INT, sources=_TEXTS, version=_INT, rows=_INT, size=_INT,
        fragments=_INT, indices=_INT, fingerprint=_TEXT, format=_TEXT, schema=_TEXT, checked_at=_TIME, changed_at=_TIME,
    ), _datasets),
    Extract("declarations", _of(
        id=_TEXT, source=_TEXT, path=_TEXTS, name=_TEXT, kind=_TEXT, location=_TEXT, dataset=_TEXT, properties=_TEXT, doc=_TEXT,
        owner=_TEXT, schema=_TEXT, native_id=_TEXT, digest=_TEXT,
    ), _declarations),
    Extract("drift", _of(
        kind=_TEXT, severity=_TEXT, source=_TEXT, subject=_TEXT, other=_TEXT, detail=_TEXT, first_seen=_TIME, last_seen=_TIME,
        resolved_at=_TIME,
    ), _plain(t.drift, t.drift.c.kind, t.drift.c.subject, t.drift.c.other)),
    Extract("coverage", _of(
        source=_TEXT, namespace=_TEXTS, presence=_TEXT, presence_code=_INT, presence_reason=_TEXT, detail=_TEXT, detail_code=_INT,
        detail_reason=_TEXT, records=_INT, carried_from=_INT,
    ), _coverage),
    Extract("sources", _of(
        name=_TEXT, impl=_TEXT, revision=_INT, state=_TEXT, message=_TEXT, crawled_at=_TIME, published_at=_TIME,
        full_at=_TIME,
    ), _plain(t.source, s.name)),
    Extract("roots", _of(
        name=_TEXT, location=_TEXT, state=_TEXT, message=_TEXT, scanned_at=_TIME, directories=_INT,
    ), _plain(t.root, t.root.c.name)),
)  # fmt: skip
