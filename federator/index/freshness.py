"""How fresh the index's knowledge of each source is: what every answer about a catalog carries."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from federator.connector import NamespaceNotFound
from federator.index import tables as t
from federator.index.engine import Index


@dataclass(frozen=True, slots=True)
class Freshness:
    """A source's published revision, and how and when its last crawl went. Times are seconds since the epoch."""

    source: str
    revision: int
    state: str
    message: str | None
    crawled_at: float | None
    published_at: float | None


def freshness(index: Index) -> dict[str, Freshness]:
    """Every source in the index, by name."""
    columns = ("name", "revision", "state", "message", "crawled_at", "published_at")
    with index.read() as connection:
        rows = connection.execute(select(*(t.source.c[name] for name in columns)).order_by(t.source.c.name))
        return {row.name: Freshness(*row) for row in rows}


def of_source(index: Index, source: str) -> Freshness:
    """One source's. Raises NamespaceNotFound that lists the known ones."""
    known = freshness(index)
    if source not in known:
        names = ", ".join(known) or "none; run federator crawl"
        raise NamespaceNotFound(f"no source {source!r} is in the index", hint=f"known: {names}")
    return known[source]
