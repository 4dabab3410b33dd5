"""The ledger: what we put where. Its key is mirror, origin path and target path; a location is evidence, never a key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, exists, func, insert, select, update

from federator.index import tables as t

_KEY = ("mirror", "origin_source", "origin_path", "target_path", "is_table")


def put(connection: Connection, row: Mapping[str, Any]) -> None:
    """Writes an entry, replacing the one with its key. ``row`` has every column but ``updated_at``."""
    _delete(connection, row)
    connection.execute(insert(t.ledger), [{**row, "updated_at": time.time()}])


def forget_target(connection: Connection, row: Mapping[str, Any], *, every_mirror: bool = False) -> bool:
    """Removes whatever the mirror of ``row`` had declared at its target path; or ``every_mirror``, of which one takes it over.

    Returns whether there was anything.
    """
    e = t.ledger.c
    same = (e.target_source == row["target_source"]) & (e.target_path == row["target_path"]) & (e.is_table == row["is_table"])
    query = delete(t.ledger).where(same if every_mirror else same & (e.mirror == row["mirror"]))
    return connection.execute(query).rowcount > 0


def identify(connection: Connection, mirror: str, target_source: str, target_path: str, native_id: str | None) -> None:
    """Notes the identity of a table that we declared again as it was."""
    e = t.ledger.c
    same = (e.mirror == mirror) & (e.target_source == target_source) & (e.target_path == target_path) & (e.is_table == 1)
    connection.execute(update(t.ledger).where(same).values(native_id=native_id, updated_at=time.time()))


def rebind(connection: Connection, row: Mapping[str, Any], native_id: str | None) -> None:
    """Replace the native id of an entry, whose object a migrated catalog gave a new one."""
    same = [t.ledger.c[name] == row[name] for name in _KEY]
    connection.execute(update(t.ledger).where(*same).values(native_id=native_id, updated_at=time.time()))


def of_source(connection: Connection, source: str) -> list[RowMapping]:
    """List every entry whose origin or target is a source, by mirror and target path."""
    e = t.ledger.c
    query = select(t.ledger).where((e.origin_source == source) | (e.target_source == source)).order_by(e.mirror, e.target_path)
    return list(connection.execute(query).mappings())


def of_mirror(connection: Connection, mirror: str) -> list[RowMapping]:
    """Every entry of a mirror, by target path."""
    query = select(t.ledger).where(t.ledger.c.mirror == mirror).order_by(t.ledger.c.target_path)
    return list(connection.execute(query).mappings())


def with_origins(connection: Connection, mirror: str) -> list[dict[str, Any]]:
    """The table entries of a mirror as plain data, each with ``origin_there``: whether its origin is in the current state."""
    r, entry = t.record.c, t.ledger.c
    revision = select(t.source.c.revision).where(t.source.c.name == entry.origin_source).correlate(t.ledger).scalar_subquery()
    same = (r.source == entry.origin_source) & (r.is_table == 1) & (r.path == entry.origin_path) & (r.valid_from <= revision)
    open_, pending = exists().where(same, r.valid_to.is_(None)), exists().where(same, r.valid_to > revision)
    query = select(t.ledger, (open_ | pending).label("origin_there")).where(entry.mirror == mirror, entry.is_table == 1)
    rows = connection.execute(query.order_by(entry.target_path)).mappings()
    return [{**row, "origin_there": bool(row["origin_there"])} for row in rows]


def names_at(connection: Connection, target: str, canonical: str) -> set[str]:
    """Paths of a target's tables that some mirror has put at a canonical location."""
    e = t.ledger.c
    query = select(e.target_path).where(e.target_source == target, e.canonical == canonical, e.is_table == 1)
    return set(connection.execute(query).scalars())


def count_tables(connection: Connection, mirror: str) -> int:
    """How many live tables of a mirror there are: the base of the deletion guard."""
    query = select(func.count()).select_from(t.ledger).where(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 1)
    return int(connection.execute(query).scalar_one())


def count_namespaces(connection: Connection, mirror: str) -> int:
    """How many namespaces a mirror has made."""
    query = select(func.count()).select_from(t.ledger).where(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 0)
    return int(connection.execute(query).scalar_one())


def origins(connection: Connection, source: str) -> set[str]:
    """Paths of the source's tables that some mirror has copied: those whose absence is worth proving."""
    query = select(t.ledger.c.origin_path).where(t.ledger.c.origin_source == source, t.ledger.c.is_table == 1).distinct()
    return set(connection.execute(query).scalars())


def _delete(connection: Connection, row: Mapping[str, Any]) -> None:
    same = [t.ledger.c[name] == row[name] for name in _KEY]
    connection.execute(delete(t.ledger).where(*same))
