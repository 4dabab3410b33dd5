"""Pending publications: direct writes that are not yet in a revision, because a crawl holds the source's lease.

``pending_publication`` stores one row per object, as it was observed after the write. A read of one object checks it before
``record``, so every process finds a table that was just declared. Listings show the table after it is published:
``federator.apply.publication`` publishes it when the lease is free.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, select

from federator.model import Coverage, Path, TableRecord, canonical_json, parse_path_key, path_key
from federator.model.rows import namespace_from_row, record_to_row, table_from_row
from federator.planning.evidence import is_covered
from federator.planning.publication import ObservedObject
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.sql import insert_or_update

_p = t.pending_publication.c


def add_pending(index: Index, source: str, observations: Iterable[ObservedObject]) -> None:
    """Store observations of a source's objects until ``remove_published``. They replace older ones of the same objects."""
    with index.write() as connection:
        insert = insert_or_update(connection, t.pending_publication)
        replaced = {name: insert.excluded[name] for name in ("observed_at", "record")}
        newer = insert.excluded.observed_at >= _p.observed_at
        statement = insert.on_conflict_do_update(
            index_elements=list(t.pending_publication.primary_key), set_=replaced, where=newer
        )
        if rows := [_to_row(source, item) for item in observations]:
            connection.execute(statement, rows)


def find_pending(connection: Connection, source: str, path: Path, *, is_table: bool) -> ObservedObject | None:
    """Return the unpublished observation of one object. None if the index has the newest state."""
    key = (_p.source == source, _p.is_table == int(is_table), _p.path == path_key(path))
    row = connection.execute(select(t.pending_publication).where(*key)).mappings().first()
    return None if row is None else _from_row(row)


def list_pending(index: Index, source: str) -> list[ObservedObject]:
    """List the unpublished observations of a source's objects, of all processes."""
    with index.read() as connection:
        return [_from_row(row) for row in connection.execute(_select_source(source)).mappings()]


def list_pending_tables(connection: Connection) -> dict[str, TableRecord | None]:
    """Return the unpublished observations of tables of all sources, by path key with the source. None: the table is absent."""
    rows = connection.execute(select(t.pending_publication).where(_p.is_table == 1)).mappings()
    observed = [(row["source"], _from_row(row)) for row in rows]
    return {
        path_key((source, *item.path)): item.record if isinstance(item.record, TableRecord) else None
        for source, item in observed
    }


def remove_published(index: Index, source: str, keys: Iterable[tuple[bool, Path]], before: float) -> None:
    """Remove the observations, made before a time, of objects that were published: ``(is_table, path)``. A newer observation stays."""
    published = set(keys)
    done = [item for item in list_pending(index, source) if (item.is_table, item.path) in published and item.at < before]
    if done:
        with index.write() as connection:
            _delete(connection, source, done)


def remove_crawled(connection: Connection, source: str, began_at: float, coverage: Mapping[str, Coverage]) -> None:
    """Remove the observations that a crawl has replaced: it began later, and it proves that their objects exist or do not."""
    items = [_from_row(row) for row in connection.execute(_select_source(source)).mappings()]
    _delete(connection, source, [item for item in items if item.at < began_at and is_covered(item.path, coverage)])


def _select_source(source: str) -> Any:
    return select(t.pending_publication).where(_p.source == source).order_by(_p.observed_at)


def _delete(connection: Connection, source: str, items: Iterable[ObservedObject]) -> None:
    for item in items:
        is_table, key = item.key
        same = and_(_p.source == source, _p.is_table == is_table, _p.path == key, _p.observed_at == item.at)
        connection.execute(delete(t.pending_publication).where(same))


def _to_row(source: str, item: ObservedObject) -> dict[str, Any]:
    is_table, key = item.key
    record = None if item.record is None else canonical_json(record_to_row(item.record))
    return {"source": source, "is_table": is_table, "path": key, "observed_at": item.at, "record": record}


def _from_row(row: RowMapping) -> ObservedObject:
    is_table, convert = bool(row["is_table"]), table_from_row if row["is_table"] else namespace_from_row
    record = None if row["record"] is None else convert(row["source"], json.loads(row["record"]))
    return ObservedObject(parse_path_key(row["path"]), record, row["observed_at"], is_table)
