"""Feed state of a source: its feed cursor and the state for an incremental crawl."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, select

from federator.model import Path
from federator.planning.incremental import FeedState, IndexedSource, origins_needing_misses
from federator.planning.rule import MirrorRule
from federator.store import coverage, ledger, misses, records
from federator.store import tables as t


def read_feed_state(connection: Connection, source: str) -> FeedState:
    """Return the feed state of a source; an empty one if the source is not in the index."""
    s = t.source.c
    query = select(s.cursor, s.full_at, s.full_config).where(s.name == source)
    row = connection.execute(query).mappings().first()
    return FeedState(**row) if row is not None else FeedState()


def read_indexed_source(
    connection: Connection, source: str, revision: int, rules: Iterable[MirrorRule], tables: Collection[Path]
) -> IndexedSource:
    """Return the indexed state of a source at its published revision.

    ``rules`` are the mirrors with this origin. ``tables`` are those that the change feed names.
    """
    missing = misses.list_missing_origins(connection, source, revision)
    return IndexedSource(
        coverage=coverage.read_coverage(connection, source, revision),
        namespaces=records.list_namespace_keys(connection, source),
        pending=origins_needing_misses(missing, misses.list_misses(connection, source), rules),
        named=records.list_existing_tables(connection, source, revision, tables),
        origins=ledger.list_origins(connection, source, tables),
    )
