"""The dirty set of drift detection: objects changed since the last detection, and open drift.

Each detection stores a watermark: the revision of each source, the digest of each mirror's rule, the digest of the location
aliases and of the sources' stores and accesses, and the time. The next detection compares the current watermark with the stored one to
find what changed. If more than ``MAX_DIRTY_OBJECTS`` changed, everything is compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, or_, select

from federator.model import parse_path_key, path_key
from federator.model.drift import DriftKind
from federator.planning.rule import MirrorRule
from federator.store import tables as t
from federator.store.records import select_current_tables
from federator.store.sql import chunked
from federator.store.stores import read_source_stores

#: the largest dirty set (tables and locations); above this, everything is compared
MAX_DIRTY_OBJECTS = 20_000
# Clocks of other processes may be behind by this much. Rows that are older than the watermark by less than this count as changed.
_CLOCK_SKEW_SECONDS = 300.0

r, x, e = t.record.c, t.drift.c, t.ledger.c


@dataclass
class DirtySet:
    """The objects that the next drift detection compares."""

    #: seconds since the epoch; ledger entries that were updated at this time or later are compared too
    since: float
    #: path keys of tables by source
    paths: dict[str, set[str]] = field(default_factory=dict)
    #: canonical locations
    locations: set[str] = field(default_factory=set)
    #: names of mirrors of which every ledger entry is compared, because their rule changed
    mirrors: set[str] = field(default_factory=set)
    #: whether a storage root was scanned since the last detection; then all orphans are compared
    roots_scanned: bool = False

    def add_table(self, object_id: str) -> None:
        """Add a table by its object id."""
        source, *path = parse_path_key(object_id)
        self.paths.setdefault(source, set()).add(path_key(tuple(path)))


def build_watermark(connection: Connection, rules: Mapping[str, MirrorRule], now: float) -> dict[str, str]:
    """Return the watermark of the current state, as text by name: ``at``, ``aliases``, ``source:NAME`` and ``mirror:NAME``.

    ``rules`` are all mirrors by name. ``now`` is in seconds since the epoch.
    """
    sources = connection.execute(select(t.source.c.name, t.source.c.revision))
    return {
        "at": repr(now), "aliases": _digest_aliases_and_stores(connection),
        **{f"source:{name}": str(revision) for name, revision in sources},
        **{f"mirror:{name}": rule.digest for name, rule in rules.items()},
    }  # fmt: skip


def save_watermark(connection: Connection, watermark: Mapping[str, str]) -> None:
    """Replace the stored watermark. Call it in the transaction that records the detected drift."""
    connection.execute(delete(t.drift_seen))
    connection.execute(insert(t.drift_seen), [{"name": name, "value": value} for name, value in watermark.items()])


def compute_dirty_set(connection: Connection, watermark: Mapping[str, str]) -> DirtySet | None:
    """Return the objects that may have changed between the stored watermark and ``watermark``, the current one.

    None means everything: no watermark is stored, an alias or a store changed, a source was removed, too much changed, or the history
    since the stored watermark is no longer kept.
    """
    stored = {row.name: row.value for row in connection.execute(select(t.drift_seen))}
    removed_sources = [name for name in stored if name.startswith("source:") and name not in watermark]
    if stored.get("aliases") != watermark["aliases"] or removed_sources:
        return None
    dirty = DirtySet(float(stored["at"]) - _CLOCK_SKEW_SECONDS)
    dirty.mirrors = {
        name.partition(":")[2]
        for name in watermark.keys() | stored.keys()
        if name.startswith("mirror:") and stored.get(name) != watermark.get(name)
    }
    for name, revision in watermark.items():
        if name.startswith("source:") and stored.get(name) != revision:
            source = name.partition(":")[2]
            if not _add_changed_objects(connection, dirty, source, int(stored.get(name, "0"))):
                return None
    for row in connection.execute(select(x.subject, x.other, x.kind).where(x.resolved_at.is_(None))):
        _add_open_drift(dirty, row.kind, row.subject, row.other)
    verified = select(t.dataset.c.canonical).where(t.dataset.c.checked_at >= dirty.since)
    dirty.locations |= set(connection.execute(verified).scalars())
    dirty.roots_scanned = bool(
        connection.execute(select(t.root.c.name).where(t.root.c.scanned_at >= dirty.since).limit(1)).first()
    )
    if sum(map(len, dirty.paths.values())) + len(dirty.locations) > MAX_DIRTY_OBJECTS:
        return None
    _add_locations(connection, dirty)
    return dirty


class MirroredTable(NamedTuple):
    """A ledger entry of a table: the mirror, and source and path key of origin and target."""

    mirror: str
    origin_source: str
    origin_path: str
    target_source: str
    target_path: str


MIRRORED_TABLE_COLUMNS = tuple(e[name] for name in MirroredTable._fields)


def iter_dirty_ledger_entries(connection: Connection, dirty: DirtySet, mirrors: Collection[str]) -> Iterator[MirroredTable]:
    """Yield the dirty ledger entries of the mirrors, each once. Entries with the same pair of sources follow each other."""
    entries = select(*MIRRORED_TABLE_COLUMNS).where(e.is_table == 1, e.mirror.in_(list(mirrors)))
    # Of a mirror with a changed rule, all entries are dirty. Of others, those that were updated or whose origin or target changed.
    queries = [entries.where(e.updated_at >= dirty.since)]
    queries += [entries.where(e.mirror == name) for name in dirty.mirrors]
    for source, paths in dirty.paths.items():
        for chunk in chunked(paths):
            queries.append(entries.where(e.origin_source == source, e.origin_path.in_(chunk)))
            queries.append(entries.where(e.target_source == source, e.target_path.in_(chunk)))
    distinct = {MirroredTable(*row) for query in queries for row in connection.execute(query)}
    yield from sorted(distinct, key=lambda entry: (entry.origin_source, entry.target_source, entry))


def _add_changed_objects(connection: Connection, dirty: DirtySet, source: str, since_revision: int) -> bool:
    """Add the tables, and their locations, that a source's revisions after ``since_revision`` changed. 0 adds all tables.

    Return False if they are too many, or if the history since that revision is no longer kept.
    """
    horizon = connection.execute(select(t.source.c.horizon).where(t.source.c.name == source)).scalar() or 0
    if horizon > since_revision > 0:
        return False
    changed = select(r.path, r.canonical).where(r.source == source, r.is_table == 1)
    # Rows that were opened since, and rows that were closed since.
    for condition in (r.valid_from > since_revision, r.valid_to > since_revision):
        rows: Sequence[Any] = connection.execute(changed.where(condition).limit(MAX_DIRTY_OBJECTS + 1)).all()
        if len(rows) > MAX_DIRTY_OBJECTS:
            return False
        dirty.paths.setdefault(source, set()).update(row.path for row in rows)
        dirty.locations.update(row.canonical for row in rows if row.canonical is not None)
    return True


def _add_open_drift(dirty: DirtySet, kind: str, subject: str, other: str) -> None:
    """Add the objects of open drift, so that its end is detected.

    The subject is a table's object id; of an orphan, it is a location. The other object is a location or an object id, by kind.
    """
    if kind == DriftKind.ORPHAN:
        dirty.locations.add(subject)
        return
    dirty.add_table(subject)
    if kind in (DriftKind.MISSING, DriftKind.SCHEMA_DIFFERS):
        dirty.locations.add(other)
    elif other:
        dirty.add_table(other)


def _add_locations(connection: Connection, dirty: DirtySet) -> None:
    """Add the current locations of the dirty tables, and of each dirty location its aliases and the location that it stands for."""
    for source, paths in dirty.paths.items():
        for chunk in chunked(paths):
            for query in select_current_tables([r.canonical], r.source == source, r.path.in_(chunk), r.canonical.is_not(None)):
                dirty.locations.update(connection.execute(query).scalars())
    a = t.alias.c
    for chunk in chunked(set(dirty.locations)):
        for row in connection.execute(select(a.canonical, a.place).where(or_(a.canonical.in_(chunk), a.place.in_(chunk)))):
            dirty.locations |= {row.canonical, row.place}


def _digest_aliases_and_stores(connection: Connection) -> str:
    digest = hashlib.sha256()
    for row in connection.execute(select(t.alias.c.canonical, t.alias.c.place).order_by(t.alias.c.canonical)):
        digest.update(f"{row.canonical}\n{row.place}\n".encode(errors="surrogatepass"))
    for source, known in sorted(read_source_stores(connection).items()):
        digest.update(f"{source}\n{known.store}\n{known.access}\n".encode())
    return digest.hexdigest()
