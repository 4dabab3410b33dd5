"""The ledger: what we put where. Its key is mirror, origin path and target path; a location is evidence, never a key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from federator.index import tables as t

_KEY = ("mirror", "origin_source", "origin_path", "target_path", "is_table")


def put(connection: Connection, row: Mapping[str, Any]) -> None:
    """Writes an entry, replacing the one with its key. ``row`` has every column but ``updated_at``."""
    _delete(connection, row)
    connection.execute(insert(t.ledger), [{**row, "updated_at": time.time()}])


def forget(connection: Connection, row: Mapping[str, Any]) -> None:
    """Removes the entry with the key of ``row``."""
    _delete(connection, row)


def of_mirror(connection: Connection, mirror: str) -> list[RowMapping]:
    """Every entry of a mirror, by target path."""
    query = select(t.ledger).where(t.ledger.c.mirror == mirror).order_by(t.ledger.c.target_path)
    return list(connection.execute(query).mappings())


def count_tables(connection: Connection, mirror: str) -> int:
    """How many live tables of a mirror there are: the base of the deletion guard."""
    query = select(func.count()).select_from(t.ledger).where(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 1)
    return int(connection.execute(query).scalar_one())


def origins(connection: Connection, source: str) -> set[str]:
    """Paths of the source's tables that some mirror has copied: those whose absence is worth proving."""
    query = select(t.ledger.c.origin_path).where(t.ledger.c.origin_source == source, t.ledger.c.is_table == 1).distinct()
    return set(connection.execute(query).scalars())


def _delete(connection: Connection, row: Mapping[str, Any]) -> None:
    same = [t.ledger.c[name] == row[name] for name in _KEY]
    connection.execute(delete(t.ledger).where(*same))
