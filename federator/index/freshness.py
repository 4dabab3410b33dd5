"""How fresh the index's knowledge of each source is: what every answer about a catalog carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select

from federator.connector import NamespaceNotFound
from federator.index import coverage, visible
from federator.index import tables as t
from federator.index.engine import Index
from federator.index.prepared import built_once
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
    with index.read() as connection:
        return read(connection, scopes)


def read(connection: Connection, scopes: Scopes = EVERYTHING) -> dict[str, Freshness]:
    """``freshness``, within a transaction."""
    rows = connection.execute(_sources(connection, scopes)).mappings().all()
    return {row["name"]: Freshness(row["name"], *_told(connection, row, scopes)) for row in rows}


@built_once
def _sources(_: Connection, scopes: Scopes) -> Select[Any]:
    columns = (t.source.c[name] for name in ("name", "revision", "state", "message", "crawled_at", "published_at"))
    return select(*columns).where(visible.sources(scopes, t.source.c.name)).order_by(t.source.c.name)


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
    return among(freshness(index, scopes), source)


def among(known: Mapping[str, Freshness], source: str) -> Freshness:
    """One of the sources that a scope shows. Raises NamespaceNotFound that lists them."""
    if source not in known:
        names = ", ".join(known) or "none; run federator crawl"
        raise NamespaceNotFound(f"no source {source!r} is in the index", hint=f"known: {names}")
    return known[source]
