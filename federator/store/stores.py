"""Stores: which object store the locations of a source are in, and which sources open them with equal options.

Locations are names in a store. Sources whose stores differ declare different tables at equal locations. Verification keeps its facts
for each location and each access, the digest of a store and of the options to open it: a source shows only what its own options could
read (docs/adr/0022-facts-by-store.md). A path of the file system is in no object store, and needs no options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, insert, select, update

from federator.store import tables as t

d, n = t.dataset.c, t.source_store.c

#: how the canonical location of a path of the file system begins
PATH_PREFIX = "file:///"
#: the store of paths, and of sources that name none: the public one of the location's scheme
DEFAULT_STORE = ""
# Migration 0027 put this before the store of facts: they are shown nowhere until it is known which source they were verified through.
_BEFORE_ACCESS = "before 0027 "


@dataclass(frozen=True, slots=True)
class SourceStore:
    """A source's store (``lance.opening.name_store``) and its access to it (``lance.opening.digest_access``), empty if unknown."""

    store: str
    access: str


def save_stores(connection: Connection, stores: Mapping[str, SourceStore]) -> None:
    """Store the stores and accesses of sources.

    When a source's access is stored for the first time, the facts that were verified through it become those of this access: earlier
    versions kept them for all sources of a store.
    """
    known = read_source_stores(connection)
    for source, new in stores.items():
        old = known.get(source, SourceStore(DEFAULT_STORE, ""))
        if old == new:
            continue
        if not old.access:
            _move_facts(connection, source, old.store, new.access)
        connection.execute(delete(t.source_store).where(n.source == source))
        connection.execute(insert(t.source_store), [{"source": source, "store": new.store, "access": new.access}])


def _move_facts(connection: Connection, source: str, store: str, access: str) -> None:
    before = _BEFORE_ACCESS + store
    own = select(d.canonical).where(d.checked_through == source, d.access == before)
    # Who can read a table now can read its earlier versions. Other states of the past may be what another source has read.
    readable = own.where(d.state == "valid")
    # The past first: ``own`` finds the facts where they are.
    for table, moved in ((t.dataset_past, readable), (t.dataset, own)):
        has_newer = select(table.c.canonical).where(table.c.access == access)
        here = (table.c.access == before, table.c.canonical.in_(moved), table.c.canonical.not_in(has_newer))
        connection.execute(update(table).where(*here).values(access=access))


def read_source_stores(connection: Connection) -> dict[str, SourceStore]:
    """Return the stores and accesses of the sources, by source."""
    return {row.source: SourceStore(row.store, row.access) for row in connection.execute(select(t.source_store))}


def read_stores(connection: Connection) -> dict[str, str]:
    """Return the names of the sources' stores, by source."""
    return dict(connection.execute(select(n.source, n.store)).tuples().all())


def read_accesses(connection: Connection) -> dict[str, str]:
    """Return the accesses of the sources, by source."""
    return dict(connection.execute(select(n.source, n.access)).tuples().all())


def value_at(values: Mapping[str, str], source: str, canonical: str) -> str:
    """Return the store or the access of a source's canonical location. ``values`` are ``read_stores`` or ``read_accesses``."""
    return value_of_location(values.get(source, DEFAULT_STORE), canonical)


def value_of_location(value: str, canonical: str) -> str:
    """Return the store or the access of a canonical location of a source that has ``value`` for object stores."""
    return DEFAULT_STORE if canonical.startswith(PATH_PREFIX) else value


def list_sharing(connection: Connection, source: str, canonical: str, sources: Iterable[str]) -> list[str]:
    """Return those of the sources whose declarations of a canonical location are of the same dataset as the one of ``source``."""
    stores = read_stores(connection)
    own = value_at(stores, source, canonical)
    return [name for name in sources if value_at(stores, name, canonical) == own]


def select_store(source: Any, canonical: ColumnElement[str]) -> ColumnElement[str]:
    """Return the SQL expression of a location's store for a column or a value of the source."""
    return _select_value(n.store, source, canonical)


def select_access(source: Any, canonical: ColumnElement[str]) -> ColumnElement[str]:
    """Return the SQL expression of a location's access for a column or a value of the source."""
    return _select_value(n.access, source, canonical)


def _select_value(column: ColumnElement[str], source: Any, canonical: ColumnElement[str]) -> ColumnElement[str]:
    named = select(column).where(n.source == source).scalar_subquery()
    return case((_is_path(canonical), DEFAULT_STORE), else_=func.coalesce(named, DEFAULT_STORE))


def _is_path(canonical: ColumnElement[str]) -> ColumnElement[bool]:
    return func.substr(canonical, 1, len(PATH_PREFIX)) == PATH_PREFIX


def has_facts(source: Any, canonical: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a row of ``dataset`` has the facts of a source's canonical location."""
    return and_(d.canonical == canonical, d.access == select_access(source, canonical))
