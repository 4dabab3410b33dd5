"""Freshness of the sources that a response is based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, RowMapping, Select, select

from federator.connector import NamespaceNotFound
from federator.model import path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import coverage, visibility
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp
from federator.store.sql import cache_statement


@dataclass(frozen=True, slots=True)
class Freshness:
    """Revision, state and time of a source's last crawl."""

    source: Annotated[str, Field(examples=["lake_hive"])]
    revision: Annotated[int, Field(examples=[12])]
    state: Annotated[str, Field(examples=["ok"], description="ok, partial, failed, or never (crawled)")]
    message: str | None
    crawled_at: OptionalTimestamp
    published_at: OptionalTimestamp


def list_freshness(index: Index, scopes: Scopes = EVERYTHING) -> dict[str, Freshness]:
    """Return the freshness of the sources that are visible in the scopes, by name.

    A source that is covered in part has the state of this part, and no message, because a message may name hidden objects.
    """
    with index.read() as connection:
        return read_freshness(connection, scopes)


def read_freshness(connection: Connection, scopes: Scopes = EVERYTHING) -> dict[str, Freshness]:
    """Do ``list_freshness`` in a transaction."""
    rows = connection.execute(_select_sources(connection, scopes)).mappings().all()
    return {row["name"]: Freshness(row["name"], *_visible_fields(connection, row, scopes)) for row in rows}


@cache_statement
def _select_sources(_: Connection, scopes: Scopes) -> Select[Any]:
    columns = (t.source.c[name] for name in ("name", "revision", "state", "message", "crawled_at", "published_at"))
    return select(*columns).where(visibility.is_visible_source(scopes, t.source.c.name)).order_by(t.source.c.name)


def visible_state(connection: Connection, row: RowMapping, scopes: Scopes) -> tuple[str, str | None]:
    """Return the state and message of a source's row that may be shown with these scopes."""
    if scopes.covers((row["name"],)):
        return row["state"], row["message"]
    if row["state"] != "partial":
        return row["state"], None
    incomplete = coverage.count_incomplete(connection, row["name"], row["revision"], scopes, detail=True)
    return "partial" if incomplete else "ok", None


def _visible_fields(
    connection: Connection, row: RowMapping, scopes: Scopes
) -> tuple[int, str, str | None, float | None, float | None]:
    return row["revision"], *visible_state(connection, row, scopes), row["crawled_at"], row["published_at"]


class UnknownSource(NamespaceNotFound):
    """A name that no source in the index has, or none that the principal may see: a mistake of the caller on the command line."""


def get_freshness(index: Index, source: str, scopes: Scopes = EVERYTHING) -> Freshness:
    """Return the freshness of one source. Raise UnknownSource if it is unknown or not visible."""
    return require_source(list_freshness(index, scopes), source)


def require_source(known: Mapping[str, Freshness], source: str) -> Freshness:
    """Return the freshness of a source in ``known``. Raise UnknownSource with all known names if it is missing."""
    if source not in known:
        first, *others = source.split(".")
        if others and first in known:
            raise UnknownSource(f"no source {source!r} is in the index", hint=f"did you mean '{path_key((first, *others))}'?")
        names = ", ".join(known) or "none; run federator crawl"
        raise UnknownSource(f"no source {source!r} is in the index", hint=f"known: {names}")
    return known[source]
