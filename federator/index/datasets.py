"""Datasets: what verification found at each canonical location."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select

from federator.index import records
from federator.index import tables as t


def due(connection: Connection, source: str, *, checked_before: float, limit: int) -> list[RowMapping]:
    """Distinct locations that a source declares and that were never opened or not since; new ones first.

    Rows have ``canonical`` and ``location``.
    """
    r = t.record.c
    at = records.published(connection, source)
    state = records.at_revision(
        source, at, r.is_table == 1, r.canonical.is_not(None), columns=[r.canonical, r.location]
    ).subquery()
    stale = t.dataset.c.checked_at.is_(None) | (t.dataset.c.checked_at < checked_before)
    query = (
        select(state.c.canonical, state.c.location, t.dataset.c.checked_at)
        .join(t.dataset, t.dataset.c.canonical == state.c.canonical, isouter=True)
        .where(stale)
        .order_by(t.dataset.c.checked_at.is_not(None), t.dataset.c.checked_at, state.c.canonical)
        .limit(limit)
    )
    distinct = {row["canonical"]: row for row in connection.execute(query).mappings()}
    return list(distinct.values())


def save(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Stores verification results (every column of ``dataset``)."""
    found = [dict(row) for row in rows]
    if found:
        for start in range(0, len(found), 500):
            batch = found[start : start + 500]
            connection.execute(delete(t.dataset).where(t.dataset.c.canonical.in_([row["canonical"] for row in batch])))
        connection.execute(insert(t.dataset), found)


def states(connection: Connection, canonicals: Sequence[str]) -> dict[str, RowMapping]:
    """Verification by canonical location, for those that were ever checked."""
    found: dict[str, RowMapping] = {}
    for start in range(0, len(canonicals), 500):
        query = select(t.dataset).where(t.dataset.c.canonical.in_(canonicals[start : start + 500]))
        found.update({row["canonical"]: row for row in connection.execute(query).mappings()})
    return found
