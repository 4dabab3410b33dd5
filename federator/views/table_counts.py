"""Counts of tables by verification state, and of datasets. They are kept, and what has changed since is counted again.

Tables are counted by *block*: records whose ids have the same quotient by ``_BLOCK``. A change of few records or verification states
concerns few blocks, wherever their tables are. The number of datasets follows from the declarations that revisions have opened and
closed. After many changes, everything is counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from sys import intern
from threading import Lock
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Row, and_, case, func, literal, or_, select, union_all

from federator.model import parse_path_key
from federator.model.scopes import Scopes
from federator.store import Index, records, visibility
from federator.store import tables as t
from federator.store.sql import MAX_BIND_VALUES, chunked, numbers_in, unindexed
from federator.store.stores import has_facts, read_stores, select_store, value_at
from federator.store.verifications import UNVERIFIED
from federator.views.live import read_version_in

# Principals with equal scopes share a result. With 1,000,000 tables, a result takes 3 MB.
_MAX_KEPT = 30
# A direct inspection may be stored after others that ended later.
_LATE_SECONDS = 60.0
# A run stores its inspections when the last one has ended, up to an hour after the first. Of so many newest runs this is noticed.
_NEWEST_RUNS = 100
# With more changed records, or new results of inspections, everything is counted again.
_MAX_CHANGED = 10_000
_MAX_INSPECTED = 2_000
_BLOCK = 128

r, s, d, a = t.record.c, t.source.c, t.dataset.c, t.alias.c
# Of a table that may be counted.
_TABLE = (r.id, r.source, r.path, r.canonical, r.valid_from)


@dataclass(frozen=True, slots=True)
class StateGroup:
    """Tables of one source in one verification state: their number, and when the first and the last of them were found in it.

    Times are in seconds since the epoch, None if they are not known.
    """

    count: int
    since: float | None
    newest: float | None


# The tables by block: source, verification state, and the group.
_Blocks = dict[int, list[tuple[str, str, StateGroup]]]


@dataclass(frozen=True, slots=True)
class Counts:
    """What the overview counts: tables by source and verification state (``states``), datasets, and those of them with several
    declarations (``shared``)."""

    states: Mapping[str, Mapping[str, StateGroup]]
    datasets: int
    shared: int


@dataclass(frozen=True, slots=True)
class _Basis:
    """What counts are based on: revisions and retention horizons of sources, the time of the newest inspection, and everything else.

    ``latest`` has number and sum of the times of the inspections up to ``_LATE_SECONDS`` before the newest one: it shows those that
    were stored late. ``verifications`` has the start of each stage ``verify`` that has ended, by run and source.
    """

    revisions: Mapping[str, tuple[int, int]]
    checked_at: float
    latest: tuple[int, float | None]
    verifications: Mapping[tuple[str, str], float]
    rest: object


@dataclass(frozen=True, slots=True)
class _CachedCounts:
    """Counts with their basis."""

    basis: _Basis
    blocks: _Blocks
    counts: Counts


class TableCounts:
    """Keeps the newest counts of each set of scopes. Thread-safe: at worst, two threads count at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Scopes, _CachedCounts] = {}

    def read(self, index: Index, scopes: Scopes) -> Counts:
        """Return the counts of what the scopes cover."""
        known = self._kept.get(scopes)
        # What has changed is added to known counts: it must be read from one state of the index, which is not older than theirs.
        with index.read_consistently() as connection:
            basis = _read_basis(connection)
            if known is not None and known.basis == basis:
                return known.counts
            kept = _count_changes(connection, scopes, known, basis) if known is not None else None
            kept = kept or _count_all(connection, scopes, basis)
        with self._lock:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[scopes] = kept
        return kept.counts


def _read_basis(connection: Connection) -> _Basis:
    sources = connection.execute(select(s.name, s.revision, s.horizon))
    revisions = {name: (revision, horizon) for name, revision, horizon in sources}
    stores = sorted(map(tuple, connection.execute(select(t.source_store)).all()))
    # Aliases follow a crawl in a transaction of their own. Few deployments have any: these count all after each change of the index.
    has_aliases = connection.execute(select(a.canonical).limit(1)).first() is not None
    checked_at = connection.execute(select(func.max(d.checked_at))).scalar() or 0.0
    times = select(func.count(), func.sum(d.checked_at)).where(d.checked_at > checked_at - _LATE_SECONDS)
    latest = connection.execute(times).tuples().one()
    rest = (stores, read_version_in(connection) if has_aliases else None)
    return _Basis(revisions, checked_at, latest, _read_ended_verifications(connection), rest)


def _read_ended_verifications(connection: Connection) -> dict[tuple[str, str], float]:
    stage, run = t.run_stage.c, t.run.c
    newest = select(run.id).order_by(run.id.desc()).limit(_NEWEST_RUNS)
    # The stage of a run that died has no end.
    has_ended = or_(stage.finished_at.is_not(None), run.finished_at.is_not(None))
    query = select(stage.run_id, stage.subject, stage.started_at).join(t.run, run.id == stage.run_id)
    rows = connection.execute(query.where(stage.run_id.in_(newest), stage.stage == "verify", has_ended))
    return {(run_id, source): started_at for run_id, source, started_at in rows}


def _count_all(connection: Connection, scopes: Scopes, basis: _Basis) -> _CachedCounts:
    blocks = _count_blocks(connection, scopes)
    return _CachedCounts(basis, blocks, Counts(_sum_states(blocks), *_count_datasets(connection, scopes)))


def _count_changes(connection: Connection, scopes: Scopes, known: _CachedCounts, basis: _Basis) -> _CachedCounts | None:
    """Return the counts from known ones. None if it is not known what has changed since, or if it is much."""
    if known.basis.rest != basis.rest:
        return None
    changed, inspected = _list_changed_tables(connection, known.basis, basis), _list_inspected(connection, known.basis, basis)
    if changed is None or inspected is None:
        return None
    tables = [table for table, _ in changed] + _list_declaring(connection, inspected, basis)
    recounted = {table.id // _BLOCK for table in tables if _is_covered(scopes, table)}
    others = {block: groups for block, groups in known.blocks.items() if block not in recounted}
    blocks = others | _count_blocks(connection, scopes, recounted)
    datasets, shared = _count_changed_datasets(connection, scopes, changed, basis)
    counts = Counts(_sum_states(blocks), known.counts.datasets + datasets, known.counts.shared + shared)
    return _CachedCounts(basis, blocks, counts)


def _list_changed_tables(connection: Connection, before: _Basis, basis: _Basis) -> list[tuple[Row[Any], int]] | None:
    """Return the tables that revisions since ``before`` have opened, with 1, and those that they have closed, with -1."""
    changed: list[tuple[Row[Any], int]] = []
    names = before.revisions.keys() | basis.revisions.keys()
    for name in sorted(names):
        (first, _), (last, horizon) = before.revisions.get(name, (0, 0)), basis.revisions.get(name, (0, 0))
        if first == last:
            continue
        # Rows that were closed up to the horizon may be deleted.
        if last < first or last - first > MAX_BIND_VALUES or first < horizon:
            return None
        numbers, is_later = range(first + 1, last + 1), or_(r.valid_to.is_(None), r.valid_to > last)
        conditions = {
            1: and_(r.valid_from.in_(numbers), is_later),
            -1: and_(r.valid_to.in_(numbers), unindexed(r.valid_from) <= first),
        }
        for sign, condition in conditions.items():
            query = select(*_TABLE).where(r.source == name, r.is_table == 1, condition)
            changed += ((table, sign) for table in connection.execute(query.limit(_MAX_CHANGED)))
        if len(changed) >= _MAX_CHANGED:
            return None
    return changed


def _list_inspected(connection: Connection, before: _Basis, basis: _Basis) -> list[str] | None:
    """Return the locations that were inspected later, for the first time or with another result than before. None if it is many."""
    ended = [start for key, start in basis.verifications.items() if before.verifications.get(key) != start]
    if (before.checked_at, before.latest) == (basis.checked_at, basis.latest) and not ended:
        return []
    later = min([before.checked_at, *ended]) - _LATE_SECONDS
    query = select(d.canonical).where(d.checked_at > later, d.since > later).limit(_MAX_INSPECTED)
    locations = list(connection.execute(query).scalars())
    return locations if len(locations) < _MAX_INSPECTED else None


def _list_declaring(connection: Connection, locations: Collection[str], basis: _Basis) -> list[Row[Any]]:
    """Return the tables at canonical locations: open rows, and rows that a draft revision has closed."""
    tables: list[Row[Any]] = []
    for chunk in chunked(locations):
        at_locations = select(*_TABLE).where(r.is_table == 1, r.canonical.in_(chunk))
        tables += connection.execute(at_locations.where(r.valid_to.is_(None)))
        closed = and_(r.source == s.name, r.valid_to > s.revision)
        tables += connection.execute(at_locations.where(closed))
    return [table for table in tables if table.valid_from <= basis.revisions[table.source][0]]


def _is_covered(scopes: Scopes, table: Row[Any]) -> bool:
    return scopes.covers((table.source, *parse_path_key(table.path)))


def _count_changed_datasets(
    connection: Connection, scopes: Scopes, changed: Collection[tuple[Row[Any], int]], basis: _Basis
) -> tuple[int, int]:
    """Return by how much the numbers of ``_count_datasets`` have changed. There are no aliases."""
    stores = read_stores(connection)

    def dataset(table: Row[Any]) -> tuple[str, str]:
        return table.canonical, value_at(stores, table.source, table.canonical)

    more: Counter[tuple[str, str]] = Counter()
    for table, sign in changed:
        if table.canonical is not None and _is_covered(scopes, table):
            more[dataset(table)] += sign
    more = Counter({key: number for key, number in more.items() if number})
    declared = _list_declaring(connection, sorted({canonical for canonical, _ in more}), basis)
    present = Counter(dataset(table) for table in declared if _is_covered(scopes, table))
    pairs = [(present[key] - number, present[key]) for key, number in more.items()]
    return sum((now > 0) - (then > 0) for then, now in pairs), sum((now > 1) - (then > 1) for then, now in pairs)


def _count_blocks(connection: Connection, scopes: Scopes, blocks: Collection[int] | None = None) -> _Blocks:
    """Return the tables that the scopes cover, by block, source and verification state: of some blocks, or of all."""
    columns = [r.id, r.source, r.canonical]
    if blocks is None:
        covered = visibility.is_covered(connection, scopes, r.source, r.path)
        current = union_all(*records.select_current_tables(columns, covered)).subquery()
    else:
        # Ids select few rows, a source or a path many: the expressions leave planners only the ids.
        source, first = r.source.concat(""), numbers_in(connection, blocks) * _BLOCK
        current = (
            select(*columns)
            .where(r.id >= first, r.id < first + _BLOCK, s.name == source, unindexed(r.is_table) == 1)
            .where(unindexed(r.valid_from) <= s.revision, or_(r.valid_to.is_(None), unindexed(r.valid_to) > s.revision))
            .where(visibility.is_covered(connection, scopes, source, r.path.concat("")))
            .subquery()
        )
    block, state = (current.c.id // literal(_BLOCK, Integer)).label("block"), func.coalesce(d.state, UNVERIFIED)
    query = (
        select(block, current.c.source, state, func.count(), func.min(d.since), func.max(d.since))
        .select_from(current.outerjoin(t.dataset, has_facts(current.c.source, current.c.canonical)))
        .group_by(block, current.c.source, state)
    )
    groups: _Blocks = {}
    for number, name, of_state, count, since, newest in connection.execute(query):
        groups.setdefault(number, []).append((intern(name), intern(of_state), StateGroup(count, since or None, newest or None)))
    return groups


def _sum_states(blocks: _Blocks) -> dict[str, dict[str, StateGroup]]:
    grouped: dict[tuple[str, str], list[StateGroup]] = {}
    for groups in blocks.values():
        for source, state, group in groups:
            grouped.setdefault((source, state), []).append(group)
    states: dict[str, dict[str, StateGroup]] = {}
    for (source, state), parts in sorted(grouped.items()):
        since = min((part.since for part in parts if part.since is not None), default=None)
        newest = max((part.newest for part in parts if part.newest is not None), default=None)
        states.setdefault(source, {})[state] = StateGroup(sum(part.count for part in parts), since, newest)
    return states


def _count_datasets(connection: Connection, scopes: Scopes) -> tuple[int, int]:
    """Return the number of datasets, and of those that have several declarations, from the declarations that the scopes cover."""
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    tables = records.select_current_tables([r.source, r.canonical], covered, r.canonical.is_not(None))
    current = union_all(*tables).subquery()
    rows = select(func.count().label("declarations")).select_from(current)
    dataset: list[ColumnElement[str]] = [current.c.canonical]
    # Few deployments have aliases or several stores. Without them, the database has an index in the order of the datasets.
    if connection.execute(select(a.canonical).limit(1)).first():
        rows = rows.outerjoin(t.alias, a.canonical == current.c.canonical)
        dataset = [func.coalesce(a.place, current.c.canonical)]
    if any(read_stores(connection).values()):
        dataset.append(select_store(current.c.source, current.c.canonical))
    declared = rows.group_by(*dataset).subquery()
    several = func.coalesce(func.sum(case((declared.c.declarations > 1, 1), else_=0)), 0)
    number, shared = connection.execute(select(func.count(), several).select_from(declared)).one()
    return int(number), int(shared)
