"""Roots: the physical tables that the scans of storage roots found, and what they could not list.

A table stays known until a scan that listed everything above it did not find it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, exists, insert, literal_column, select, update

from federator.index import tables as t
from federator.index.bulk import chunks
from federator.index.engine import Index
from federator.model import Aliases, canonical_location, places_above

p, r, s = t.root_table.c, t.record.c, t.source.c


@dataclass(frozen=True, slots=True)
class Gap:
    """A place (canonical) below which nobody knows what is: ``denied``, ``unreachable``, ``failed``, ``limit``, or ``depth``, which is
    as configured."""

    place: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """A scan of a root: ``complete``, ``partial`` or ``failed``; how many directories it listed and tables it found."""

    root: str
    location: str
    state: str
    message: str | None
    scanned_at: float
    directories: int
    tables: int
    gaps: int


@dataclass(frozen=True, slots=True)
class Orphan:
    """A physical table that no catalog declares."""

    canonical: str
    location: str
    root: str


def save(connection: Connection, scanned: Scanned, locations: Sequence[str], gaps: Sequence[Gap], aliases: Aliases) -> None:
    """Takes in what a scan found. A table of before that it did not find is forgotten, unless it lies in a gap or the scan failed."""
    places = {canonical_location(location, aliases): location for location in locations}
    unknown = {canonical_location(gap.place, aliases): gap for gap in gaps}
    at = {"root": scanned.root, "seen_at": scanned.scanned_at}
    known = set(connection.execute(select(p.canonical).where(p.root == scanned.root)).scalars())
    mine = p.root == scanned.root
    for chunk in chunks(place for place in places if place in known):
        connection.execute(update(t.root_table).where(mine, p.canonical.in_(chunk)).values(seen_at=scanned.scanned_at))
    for chunk in chunks(place for place in places if place not in known):
        connection.execute(insert(t.root_table), [{"canonical": c, "location": places[c], **at} for c in chunk])
    if scanned.state != "failed":
        gone = [c for c in known if c not in places and not _within(c, unknown)]
        for chunk in chunks(gone):
            connection.execute(delete(t.root_table).where(mine, p.canonical.in_(chunk)))
    connection.execute(delete(t.root_gap).where(t.root_gap.c.root == scanned.root))
    for chunk in chunks(unknown):
        rows = [{"root": scanned.root, "place": c, "code": unknown[c].code, "message": unknown[c].message} for c in chunk]
        connection.execute(insert(t.root_gap), rows)
    connection.execute(delete(t.root).where(t.root.c.name == scanned.root))
    row = {name: getattr(scanned, name) for name in ("location", "state", "message", "scanned_at", "directories")}
    connection.execute(insert(t.root), [{"name": scanned.root, **row}])


def keep_only(connection: Connection, names: Collection[str]) -> None:
    """Forgets roots that are not configured any more."""
    for table, column in ((t.root, t.root.c.name), (t.root_gap, t.root_gap.c.root), (t.root_table, p.root)):
        connection.execute(delete(table).where(column.not_in(list(names))))


def scans(index: Index) -> list[tuple[Scanned, list[Gap]]]:
    """The last scan of each root, with what it could not list."""
    found = []
    with index.read() as connection:
        for row in connection.execute(select(t.root).order_by(t.root.c.name)).mappings():
            query = select(t.root_gap).where(t.root_gap.c.root == row["name"]).order_by(t.root_gap.c.place)
            gaps = [Gap(each["place"], each["code"], each["message"]) for each in connection.execute(query).mappings()]
            tables = len(connection.execute(select(p.canonical).where(p.root == row["name"])).all())
            values = {name: value for name, value in row.items() if name != "name"}
            found.append((Scanned(root=row["name"], tables=tables, gaps=len(gaps), **values), gaps))
    return found


def at(connection: Connection, canonical: str) -> Orphan | None:
    """The physical table that a scan found at a place, declared or not."""
    row = connection.execute(select(t.root_table).where(p.canonical == canonical).order_by(p.root).limit(1)).mappings().first()
    return Orphan(row["canonical"], row["location"], row["root"]) if row is not None else None


def orphans(connection: Connection, places: Sequence[str] | None = None) -> Iterator[Orphan]:
    """Physical tables that no source's current state declares; only those at ``places`` (canonical), if given."""
    if places is None:
        yield from _orphans(connection, _undeclared())
        return
    for chunk in chunks(places):
        yield from _orphans(connection, _undeclared().where(p.canonical.in_(chunk)))


def unread_sources(connection: Connection) -> list[str]:
    """Sources that have not been read in full: what they declare is not all known."""
    c = t.coverage.c
    failed = exists().where(c.source == s.name, c.valid_to.is_(None), c.presence == "failed")
    query = select(s.name).where((s.revision == 0) | failed).order_by(s.name)
    return list(connection.execute(query).scalars())


def _undeclared() -> Select[tuple[str, str, str]]:
    # Each of the four is a look into an index; together in one condition they would be none.
    here, there = (r.canonical == p.canonical,), (t.alias.c.place == p.canonical, r.canonical == t.alias.c.canonical)
    stands = [
        exists(literal_column("1")).where(*at, r.source == s.name, r.valid_from + 0 <= s.revision, r.is_table == 1, period)
        for at in (here, there)
        for period in (r.valid_to.is_(None), r.valid_to > s.revision)
    ]
    return select(p.canonical, p.location, p.root).where(*(~each for each in stands)).order_by(p.canonical, p.root)


def _orphans(connection: Connection, query: Select[tuple[str, str, str]]) -> Iterator[Orphan]:
    for canonical, location, root in connection.execute(query):
        yield Orphan(canonical, location, root)


def _within(place: str, gaps: Collection[str]) -> bool:
    return bool(gaps) and (place in gaps or any(above in gaps for above in places_above(place)))
