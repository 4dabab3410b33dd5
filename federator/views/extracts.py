"""Extracts of the index as Arrow streams, for other programs. docs/how-to/export.md documents the columns.

Times are in UTC. Properties and column lists are JSON, because the map types of Lance and DuckDB differ. Secrets in properties and the
userinfo of URLs in all texts are masked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, RowMapping, Select, func, select, union_all

from federator.connector.options import mask_secrets
from federator.model import canonical_json, parse_path_key, path_key
from federator.store import tables as t
from federator.store.coverage import select_current_coverage
from federator.store.records import select_current_tables
from federator.store.sql import chunked
from federator.store.stores import has_facts, select_store
from federator.store.verifications import UNVERIFIED, rank_state

_BATCH_ROWS = 20_000
_TEXT, _TEXTS, _INT = pa.string(), pa.list_(pa.string()), pa.int64()
_TIME = pa.timestamp("us", tz="UTC")
_VERIFIED = ("version", "rows", "size", "fragments", "indices", "fingerprint", "format")

r, d, s = t.record.c, t.dataset.c, t.source.c
# A row of the database, or a dictionary that has a key for each column of the extract. Further keys are ignored.
Row = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Extract:
    """One extracted table: its name, its columns, and a function that reads its rows.

    A text or list of texts is extracted masked, a time from seconds since the epoch.
    """

    name: str
    schema: pa.Schema
    rows: Callable[[Connection], Iterable[Row]]

    def batches(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        """Stream the rows as Arrow batches of at most 20,000 rows."""
        for chunk in chunked(self.rows(connection), _BATCH_ROWS):
            arrays = [pa.array([_to_arrow_value(row[f.name], f.type) for row in chunk], f.type) for f in self.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _to_arrow_value(value: Any, column_type: pa.DataType) -> Any:
    if column_type in (_TEXT, _TEXTS):
        return mask_secrets(value)
    return value if value is None or column_type != _TIME else round(value * 1_000_000)


def _stream_rows(connection: Connection, query: Select[Any]) -> Iterator[RowMapping]:
    return iter(connection.execute(query.execution_options(yield_per=5000)).mappings())


def _select_declarations(columns: list[Any]) -> Any:
    """Return a subquery over all current declarations: the given columns of ``record``, and ``dataset``, the canonical location with
    aliases resolved."""
    dataset = func.coalesce(t.alias.c.place, r.canonical).label("dataset")
    queries = select_current_tables([dataset, *columns])
    return union_all(
        *(query.outerjoin_from(t.record, t.alias, t.alias.c.canonical == r.canonical) for query in queries)
    ).subquery()


def _iter_datasets(connection: Connection) -> Iterator[Row]:
    """Stream one row per dataset, and one for each store that has the location. ``location`` is the canonical location."""
    declared = _select_declarations([r.source, r.canonical, select_store(r.source, r.canonical).label("store")])
    verified = [d[name] for name in (*_VERIFIED, "state", "message", "schema", "checked_at", "changed_at")]
    query = select(declared.c.dataset, declared.c.source, declared.c.store, *verified)
    query = query.outerjoin_from(declared, t.dataset, has_facts(declared.c.source, declared.c.canonical))
    query = query.where(declared.c.dataset.is_not(None)).order_by(declared.c.dataset, declared.c.store)
    for (location, _), group in groupby(_stream_rows(connection, query), key=lambda row: (row["dataset"], row["store"])):
        rows = list(group)
        # A dataset may have been inspected under each of its aliases, and with the options of each source.
        newest = max(rows, key=lambda row: rank_state(row["state"], row["checked_at"]))
        sources = [row["source"] for row in rows]
        yield {
            **newest, "location": location, "state": newest["state"] or UNVERIFIED, "declarations": len(rows),
            "sources": sorted(set(sources)),
        }  # fmt: skip


def _iter_declarations(connection: Connection) -> Iterator[Row]:
    """Stream one row per declaration. ``location`` is the location as the catalog wrote it."""
    names = ("source", "path", "name", "kind", "location", "properties", "doc", "owner", "schema", "native_id", "digest")
    declared = _select_declarations([r[name] for name in names])
    for row in _stream_rows(connection, select(declared).order_by(declared.c.source, declared.c.path)):
        path = parse_path_key(row["path"])
        # Parsed first: masking needs the keys.
        properties = canonical_json(mask_secrets(json.loads(row["properties"])))
        yield {
            **row,
            "id": path_key((row["source"], *path)),
            "path": list(path),
            "properties": properties,
        }


def _read_all_rows(table: Any, *order: Any) -> Callable[[Connection], Iterable[Row]]:
    """Return a function that streams all rows of a table, sorted by ``order``."""
    return lambda connection: _stream_rows(connection, select(table).order_by(*order))


def _iter_coverage(connection: Connection) -> Iterator[Row]:
    coverage = union_all(*select_current_coverage(list(t.coverage.c))).subquery()
    for row in _stream_rows(connection, select(coverage).order_by(coverage.c.source, coverage.c.namespace)):
        yield {**row, "namespace": list(parse_path_key(row["namespace"]))}


def _build_schema(**columns: Any) -> pa.Schema:
    return pa.schema(list(columns.items()))


EXTRACTS = (
    Extract("datasets", _build_schema(
        location=_TEXT, state=_TEXT, message=_TEXT, declarations=_INT, sources=_TEXTS, version=_INT, rows=_INT, size=_INT,
        fragments=_INT, indices=_INT, fingerprint=_TEXT, format=_TEXT, schema=_TEXT, checked_at=_TIME, changed_at=_TIME,
    ), _iter_datasets),
    Extract("declarations", _build_schema(
        id=_TEXT, source=_TEXT, path=_TEXTS, name=_TEXT, kind=_TEXT, location=_TEXT, dataset=_TEXT, properties=_TEXT, doc=_TEXT,
        owner=_TEXT, schema=_TEXT, native_id=_TEXT, digest=_TEXT,
    ), _iter_declarations),
    Extract("drift", _build_schema(
        kind=_TEXT, severity=_TEXT, source=_TEXT, subject=_TEXT, other=_TEXT, detail=_TEXT, first_seen=_TIME, last_seen=_TIME,
        resolved_at=_TIME,
    ), _read_all_rows(t.drift, t.drift.c.kind, t.drift.c.subject, t.drift.c.other)),
    Extract("coverage", _build_schema(
        source=_TEXT, namespace=_TEXTS, presence=_TEXT, presence_code=_INT, presence_reason=_TEXT, detail=_TEXT, detail_code=_INT,
        detail_reason=_TEXT, records=_INT, carried_from=_INT,
    ), _iter_coverage),
    Extract("sources", _build_schema(
        name=_TEXT, impl=_TEXT, revision=_INT, state=_TEXT, message=_TEXT, crawled_at=_TIME, published_at=_TIME,
        full_at=_TIME,
    ), _read_all_rows(t.source, s.name)),
    Extract("roots", _build_schema(
        name=_TEXT, location=_TEXT, state=_TEXT, message=_TEXT, scanned_at=_TIME, directories=_INT,
    ), _read_all_rows(t.root, t.root.c.name)),
)  # fmt: skip
