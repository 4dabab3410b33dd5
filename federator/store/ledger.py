"""The ledger: the index of owned objects.

Its key is mirror, origin path and target path, never a location.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, exists, func, insert, select, update

from federator.model import Path, parse_path_key, path_key
from federator.planning.cells import LedgerRow
from federator.planning.ledger import OwnedObject
from federator.store import tables as t
from federator.store.sql import chunked

_KEY = ("mirror", "origin_source", "origin_path", "target_path", "is_table")


def upsert_entry(connection: Connection, entry: OwnedObject) -> None:
    """Write an entry; replace one with the same key. Its ``updated_at`` is now."""
    connection.execute(delete(t.ledger).where(_is_entry(entry)))
    connection.execute(insert(t.ledger), [asdict(entry) | {"updated_at": time.time()}])


def delete_target_entries(
    connection: Connection, target_source: str, target_path: str, *, is_table: bool, mirror: str | None
) -> bool:
    """Delete the entries at a target path, of one mirror or, with None, of all mirrors.

    Return whether there was an entry. A mirror that adopts an object deletes the entries of every mirror.
    """
    e = t.ledger.c
    same = (e.target_source == target_source) & (e.target_path == target_path) & (e.is_table == int(is_table))
    query = delete(t.ledger).where(same if mirror is None else same & (e.mirror == mirror))
    return connection.execute(query).rowcount > 0


def record_native_id(connection: Connection, mirror: str, target_source: str, target_path: str, native_id: str | None) -> None:
    """Store the new native id of a table that was recreated."""
    e = t.ledger.c
    same = (e.mirror == mirror) & (e.target_source == target_source) & (e.target_path == target_path) & (e.is_table == 1)
    connection.execute(update(t.ledger).where(same).values(native_id=native_id, updated_at=time.time()))


def rebind(connection: Connection, entry: OwnedObject, native_id: str | None) -> None:
    """Replace the native id of an entry whose object got a new id in a catalog migration."""
    connection.execute(update(t.ledger).where(_is_entry(entry)).values(native_id=native_id, updated_at=time.time()))


def list_entries_of_source(connection: Connection, source: str) -> list[OwnedObject]:
    """List every entry whose origin or target is a source, by mirror and target path."""
    e = t.ledger.c
    query = select(t.ledger).where((e.origin_source == source) | (e.target_source == source)).order_by(e.mirror, e.target_path)
    return [OwnedObject(**row) for row in connection.execute(query).mappings()]


def list_entries_of_object(connection: Connection, source: str, path: str) -> list[OwnedObject]:
    """List the entries with an object as origin or target, by mirror and target path."""
    e = t.ledger.c
    is_target = and_(e.target_source == source, e.target_path == path)
    is_origin = and_(e.origin_source == source, e.origin_path == path)
    return _list_where(connection, is_target | is_origin)


def list_entries(connection: Connection, mirror: str) -> list[OwnedObject]:
    """List every entry of a mirror, by target path."""
    return _list_where(connection, t.ledger.c.mirror == mirror)


def list_namespaces(connection: Connection, mirror: str) -> list[OwnedObject]:
    """List the namespace entries of a mirror, by target path."""
    return _list_where(connection, and_(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 0))


def _list_where(connection: Connection, condition: ColumnElement[bool]) -> list[OwnedObject]:
    query = select(t.ledger).where(condition).order_by(t.ledger.c.mirror, t.ledger.c.target_path)
    return [OwnedObject(**row) for row in connection.execute(query).mappings()]


def list_sides(connection: Connection, mirror: str) -> set[tuple[str, str]]:
    """List the origins and targets of a mirror's entries, as pairs of a source and its side."""
    query = select(t.ledger.c.origin_source, t.ledger.c.target_source).where(t.ledger.c.mirror == mirror).distinct()
    return {pair for origin, target in connection.execute(query) for pair in ((origin, "origin"), (target, "target"))}


def list_owned_tables(connection: Connection, mirror: str, target: str, paths: Collection[str]) -> set[str]:
    """Return those of the target paths (path keys) that a mirror has declared as tables."""
    e, owned = t.ledger.c, set[str]()
    for chunk in chunked(paths):
        query = select(e.target_path).where(e.target_source == target, e.target_path.in_(chunk), e.is_table == 1)
        owned |= set(connection.execute(query.where(e.mirror == mirror)).scalars())
    return owned


def select_rows(mirror: str, origin: str, revision: int, target: str) -> Select[Any]:
    """Return a select of a mirror's tables in a target, with the columns of ``LedgerRow``. ``revision`` is of its origin."""
    r, entry = t.record.c, t.ledger.c
    same = (r.source == origin) & (r.is_table == 1) & (r.path == entry.origin_path) & (r.valid_from <= revision)
    open_, pending = exists().where(same, r.valid_to.is_(None)), exists().where(same, r.valid_to > revision)
    origin_exists = (entry.origin_source == origin) & (open_ | pending)
    columns = [entry[f.name] if f.name != "origin_exists" else origin_exists.label(f.name) for f in fields(LedgerRow)]
    return select(*columns).where(entry.mirror == mirror, entry.target_source == target, entry.is_table == 1)


def list_origins(connection: Connection, source: str, paths: Collection[Path]) -> set[Path]:
    """Return those of the paths that are tables of a source and the origin of any entry."""
    e, origins = t.ledger.c, set[Path]()
    for chunk in chunked([path_key(path) for path in paths]):
        query = select(e.origin_path).where(e.origin_source == source, e.is_table == 1, e.origin_path.in_(chunk))
        origins |= {parse_path_key(key) for key in connection.execute(query).scalars()}
    return origins


def list_paths_at(connection: Connection, target: str, canonical: str) -> set[str]:
    """Return the paths of a target's tables that any mirror has declared at a canonical location."""
    e = t.ledger.c
    query = select(e.target_path).where(e.target_source == target, e.canonical == canonical, e.is_table == 1)
    return set(connection.execute(query).scalars())


def count_tables(connection: Connection, mirror: str) -> int:
    """Count the tables of a mirror. The deletion guard compares removals with this number."""
    query = select(func.count()).select_from(t.ledger).where(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 1)
    return int(connection.execute(query).scalar_one())


def count_namespaces(connection: Connection, mirror: str) -> int:
    """Count the namespaces of a mirror."""
    query = select(func.count()).select_from(t.ledger).where(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 0)
    return int(connection.execute(query).scalar_one())


def _is_entry(entry: OwnedObject) -> ColumnElement[bool]:
    return and_(*(t.ledger.c[name] == getattr(entry, name) for name in _KEY))
