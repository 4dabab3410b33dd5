"""Results of root scans: tables found in storage, and gaps that could not be listed.

A table stays in ``root_table`` until a scan lists every directory above it and does not find it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, exists, insert, literal_column, select, union, update

from federator.model import CoverageState, LocationAliases, canonical_location, parent_locations
from federator.store import tables as t
from federator.store.coverage import select_current_coverage
from federator.store.sql import chunked, unindexed

p, r, s = t.root_table.c, t.record.c, t.source.c


@dataclass(frozen=True, slots=True)
class ScanGap:
    """A directory that a scan could not list. ``location`` is canonical.

    ``code`` is ``denied``, ``unreachable``, ``failed``, ``limit``, or ``depth`` if the configured depth was reached.
    """

    location: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ScanResult:
    """A scan of a root. ``state`` is ``complete``, ``partial`` or ``failed``; the counts are of listed directories and found tables."""

    root: str
    location: str
    state: str
    message: str | None
    scanned_at: float
    directories: int
    tables: int
    gaps: int


@dataclass(frozen=True, slots=True)
class RootTable:
    """A table that a scan found in storage."""

    canonical: str
    location: str
    root: str


def save_scan(
    connection: Connection, scanned: ScanResult, locations: Sequence[str], gaps: Sequence[ScanGap], aliases: LocationAliases
) -> None:
    """Store the result of a scan. Delete known tables that it did not find, except in a gap or after a failed scan."""
    spelling_by_location = {canonical_location(location, aliases): location for location in locations}
    unlisted = {canonical_location(gap.location, aliases): gap for gap in gaps}
    scan_columns = {"root": scanned.root, "seen_at": scanned.scanned_at}
    known = set(connection.execute(select(p.canonical).where(p.root == scanned.root)).scalars())
    same_root = p.root == scanned.root
    for chunk in chunked(location for location in spelling_by_location if location in known):
        connection.execute(update(t.root_table).where(same_root, p.canonical.in_(chunk)).values(seen_at=scanned.scanned_at))
    for chunk in chunked(location for location in spelling_by_location if location not in known):
        connection.execute(
            insert(t.root_table), [{"canonical": c, "location": spelling_by_location[c], **scan_columns} for c in chunk]
        )
    if scanned.state != "failed":
        absent = [location for location in known if location not in spelling_by_location and not _is_in_gap(location, unlisted)]
        for chunk in chunked(absent):
            connection.execute(delete(t.root_table).where(same_root, p.canonical.in_(chunk)))
    connection.execute(delete(t.root_gap).where(t.root_gap.c.root == scanned.root))
    for chunk in chunked(unlisted):
        rows = [{"root": scanned.root, "place": c, "code": unlisted[c].code, "message": unlisted[c].message} for c in chunk]
        connection.execute(insert(t.root_gap), rows)
    connection.execute(delete(t.root).where(t.root.c.name == scanned.root))
    row = {name: getattr(scanned, name) for name in ("location", "state", "message", "scanned_at", "directories")}
    connection.execute(insert(t.root), [{"name": scanned.root, **row}])


def delete_other_roots(connection: Connection, names: Collection[str]) -> None:
    """Delete the rows of roots that are no longer configured. ``names`` are the configured roots."""
    for table, column in ((t.root, t.root.c.name), (t.root_gap, t.root_gap.c.root), (t.root_table, p.root)):
        connection.execute(delete(table).where(column.not_in(list(names))))


def find_root_table(connection: Connection, canonical: str) -> RootTable | None:
    """Return the table that a scan found at a canonical location, declared or not. None if there is none."""
    row = connection.execute(select(t.root_table).where(p.canonical == canonical).order_by(p.root).limit(1)).mappings().first()
    return RootTable(row["canonical"], row["location"], row["root"]) if row is not None else None


def iter_orphans(connection: Connection, locations: Sequence[str] | None = None) -> Iterator[RootTable]:
    """Stream the tables in storage that no source declares now, or only those at the canonical ``locations``."""
    if locations is None:
        yield from _iter_rows(connection, _select_undeclared())
        return
    for chunk in chunked(locations):
        yield from _iter_rows(connection, _select_undeclared().where(p.canonical.in_(chunk)))


def list_partially_crawled_sources(connection: Connection) -> list[str]:
    """List the sources whose declarations are not all known: never crawled, or with a failed listing."""
    never_crawled = select(s.name).where(s.revision == 0)
    failed = select_current_coverage([s.name], t.coverage.c.presence == CoverageState.FAILED.value)
    return sorted(connection.execute(union(never_crawled, *failed)).scalars())


def _select_undeclared() -> Select[tuple[str, str, str]]:
    # Each of the four conditions is an index look-up. A single combined condition could use no index.
    direct, aliased = (r.canonical == p.canonical,), (t.alias.c.place == p.canonical, r.canonical == t.alias.c.canonical)
    declared = [
        exists(literal_column("1")).where(
            *match, r.source == s.name, unindexed(r.valid_from) <= s.revision, r.is_table == 1, period
        )
        for match in (direct, aliased)
        for period in (r.valid_to.is_(None), r.valid_to > s.revision)
    ]
    return select(p.canonical, p.location, p.root).where(*(~condition for condition in declared)).order_by(p.canonical, p.root)


def _iter_rows(connection: Connection, query: Select[tuple[str, str, str]]) -> Iterator[RootTable]:
    for canonical, location, root in connection.execute(query):
        yield RootTable(canonical, location, root)


def _is_in_gap(location: str, gaps: Collection[str]) -> bool:
    return bool(gaps) and (location in gaps or any(parent in gaps for parent in parent_locations(location)))
