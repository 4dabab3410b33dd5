"""How fresh the index's knowledge of each source is: what every answer about a catalog carries."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from federator.connector import NamespaceNotFound
from federator.index import coverage, visible
from federator.index import tables as t
from federator.index.engine import Index
from federator.model.scopes import EVERYTHING, Scopes


@dataclass(frozen=True, slots=True)
class Freshness:
    """A source's published revision, and how and when its last crawl went. Times are seconds since the epoch."""

    source: str
    revision: int
    state: str
    message: str | None
    crawled_at: float | None
    published_at: float | None


def freshness(index: Index, scopes: Scopes = EVERYTHING) -> dict[str, Freshness]:
    """Every source in the index of which a scope covers something, by name.

    Of a source that is covered in part, the state is that of the part, and there is no message: it may name the rest.
    """
    columns = ("name", "revision", "state", "message", "crawled_at", "published_at")
    query = select(*(t.source.c[name] for name in columns)).where(visible.sources(scopes, t.source.c.name))
    with index.read() as connection:
        rows = connection.execute(query.order_by(t.source.c.name)).mappings().all()
        return {row["name"]: Freshness(row["name"], *_told(connection, row, scopes)) for row in rows}


def state_of(connection: Connection, row: RowMapping, scopes: Scopes) -> tuple[str, str | None]:
    """The state and message of a source's row as a scope may know them."""
    if scopes.covers((row["name"],)):
        return row["state"], row["message"]
    if row["state"] != "partial":
        return row["state"], None
    unread = coverage.unread(connection, row["name"], row["revision"], scopes, detail=True)
    return "partial" if unread else "ok", None


def _told(connection: Connection, row: RowMapping, scopes: Scopes) -> tuple[int, str, str | None, float | None, float | None]:
    return row["revision"], *state_of(connection, row, scopes), row["crawled_at"], row["published_at"]


def of_source(index: Index, source: str, scopes: Scopes = EVERYTHING) -> Freshness:
    """One source's. Raises NamespaceNotFound that lists the known ones, also for a source of which the scope covers nothing."""
    known = freshness(index, scopes)
    if source not in known:
        names = ", ".join(known) or "none; run federator crawl"
        raise NamespaceNotFound(f"no source {source!r} is in the index", hint=f"known: {names}")
    return known[source]
