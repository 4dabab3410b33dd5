"""Misses of tables: complete listings that did not contain a known table."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, delete, exists, insert, select

from federator.planning.misses import Missed, MissUpdate, valid_misses
from federator.store import tables as t


def list_misses(connection: Connection, source: str) -> dict[str, list[float]]:
    """Return the times of the misses of each table, by path. Only tables with an entry in the ledger, as origins, have misses.

    A process with an old configuration of the source may have crawled with it. Such misses are left out.
    """
    return _valid_misses(connection, source, stored_misses(connection, source))


def list_misses_of(connection: Connection, source: str, path: str) -> list[float]:
    """Return the times of the misses of one table, which ``list_misses`` has among others."""
    return _valid_misses(connection, source, stored_misses(connection, source, path)).get(path, [])


def _valid_misses(connection: Connection, source: str, stored: Mapping[str, Missed]) -> dict[str, list[float]]:
    config = connection.execute(select(t.source.c.config_digest).where(t.source.c.name == source)).scalar()
    return valid_misses(stored, config) if config is not None else {}


def stored_misses(connection: Connection, source: str, path: str | None = None) -> dict[str, Missed]:
    """Return the stored misses of a source, or of one of its tables, by path, under any configuration."""
    a = t.absence.c
    query = select(a.path, a.misses, a.config_digest).where(a.source == source)
    if path is not None:
        query = query.where(a.path == path)
    return {path: Missed(json.loads(misses), config) for path, misses, config in connection.execute(query)}


def list_missing_origins(connection: Connection, source: str, revision: int) -> set[str]:
    """Return the origins in the ledger that a revision of their source does not contain: only they can be missed."""
    r, origin = t.record.c, t.ledger.c
    open_ = r.valid_to.is_(None) | (r.valid_to > revision)
    in_revision = exists().where(
        r.source == source, r.is_table == 1, r.path == origin.origin_path, r.valid_from <= revision, open_
    )
    query = select(origin.origin_path).where(origin.origin_source == source, origin.is_table == 1, ~in_revision).distinct()
    return set(connection.execute(query).scalars())


def save_misses(connection: Connection, source: str, config_digest: str, update: MissUpdate) -> None:
    """Store the changes that a crawl with a configuration made to the misses of its source."""
    a = t.absence.c
    changed = [{"path_": path} for path in {*update.forgotten, *update.counted}]
    if changed:
        connection.execute(delete(t.absence).where(a.source == source, a.path == bindparam("path_")), changed)
    rows = [
        {"source": source, "path": path, "misses": json.dumps(misses), "config_digest": config_digest}
        for path, misses in update.counted.items()
    ]
    if rows:
        connection.execute(insert(t.absence), rows)
