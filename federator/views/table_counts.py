"""Counts of tables by verification state, and of datasets. Counting reads every table, so counts are kept until tables change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from threading import Lock

from sqlalchemy import ColumnElement, Connection, case, func, or_, select, union_all

from federator.model.scopes import EVERYTHING, Scopes
from federator.store import records, visibility
from federator.store import tables as t
from federator.store.stores import has_facts, read_stores, select_store
from federator.store.verifications import UNVERIFIED
from federator.views.live import read_version_in

# Principals with equal scopes share a result.
_MAX_KEPT = 100
# A direct inspection may be stored after others that ended later.
_LATE_SECONDS = 60.0
# A run stores its inspections when the last one has ended, up to an hour after the first. Of so many newest runs this is noticed.
_NEWEST_RUNS = 100
# With more new results of inspections, all sources are counted again.
_MAX_INSPECTED = 500

r, d, a = t.record.c, t.dataset.c, t.alias.c


@dataclass(frozen=True, slots=True)
class StateGroup:
    """Tables of one source in one verification state: their number, and when the first and the last of them were found in it.

    Times are in seconds since the epoch, None if they are not known.
    """

    count: int
    since: float | None
    newest: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """What the overview counts: tables by source and verification state (``states``), datasets, and those of them with several
    declarations (``shared``)."""

    states: Mapping[str, Mapping[str, StateGroup]]
    datasets: int
    shared: int


@dataclass(frozen=True, slots=True)
class _Basis:
    """What counts are based on: the sources with their revisions, the time of the newest inspection, and everything else.

    ``latest`` has number and sum of the times of the inspections up to ``_LATE_SECONDS`` before the newest one: it shows those that
    were stored late. ``verifications`` has the start of each stage ``verify`` that has ended, by run and source.
    """

    revisions: Mapping[str, int]
    checked_at: float
    latest: tuple[int, float | None]
    verifications: Mapping[tuple[str, str], float]
    rest: object


class TableCounts:
    """Keeps the newest counts of each set of scopes. Thread-safe: at worst, two threads count at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Scopes, tuple[_Basis, Counts]] = {}

    def read(self, connection: Connection, scopes: Scopes) -> Counts:
        """Return the counts of what the scopes cover. The tables of a source are counted again if its records, or the verification
        state of one of its tables, have changed since."""
        # Read before the counts: a change in between then only makes the next call count again.
        basis = _read_basis(connection)
        known = self._kept.get(scopes)
        if known is not None and known[0] == basis:
            return known[1]
        counts = _count_again(connection, scopes, known, basis)
        with self._lock:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[scopes] = basis, counts
        return counts


def _read_basis(connection: Connection) -> _Basis:
    revisions = dict(connection.execute(select(t.source.c.name, t.source.c.revision)).tuples().all())
    stores = sorted(map(tuple, connection.execute(select(t.source_store)).all()))
    # Aliases follow a crawl in a transaction of their own. Few deployments have any: these count after each change of the index.
    has_aliases = connection.execute(select(a.canonical).limit(1)).first() is not None
    checked_at = connection.execute(select(func.max(d.checked_at))).scalar() or 0.0
    times = select(func.count(), func.sum(d.checked_at)).where(d.checked_at > checked_at - _LATE_SECONDS)
    latest = connection.execute(times).tuples().one()
    rest = (stores, read_version_in(connection) if has_aliases else None)
    return _Basis(revisions, checked_at, latest, _read_ended_verifications(connection), rest)


def _read_ended_verifications(connection: Connection) -> dict[tuple[str, str], float]:
    s, run = t.run_stage.c, t.run.c
    newest = select(run.id).order_by(run.id.desc()).limit(_NEWEST_RUNS)
    # The stage of a run that died has no end.
    has_ended = or_(s.finished_at.is_not(None), run.finished_at.is_not(None))
    query = select(s.run_id, s.subject, s.started_at).join(t.run, run.id == s.run_id)
    rows = connection.execute(query.where(s.run_id.in_(newest), s.stage == "verify", has_ended))
    return {(run_id, source): started_at for run_id, source, started_at in rows}


def _count_again(connection: Connection, scopes: Scopes, known: tuple[_Basis, Counts] | None, basis: _Basis) -> Counts:
    if known is None or known[0].rest != basis.rest:
        return Counts(group_states(connection, scopes), *count_datasets(connection, scopes))
    before, counts = known
    names = before.revisions.keys() | basis.revisions.keys()
    crawled = {name for name in names if _has_changed(connection, name, before.revisions.get(name), basis.revisions.get(name))}
    states, changed = counts.states, crawled | _list_inspected(connection, before, basis)
    if changed:
        states = {name: by_state for name, by_state in states.items() if name not in changed}
        states = dict(sorted((states | group_states(connection, scopes, changed)).items()))
    number, shared = count_datasets(connection, scopes) if crawled else (counts.datasets, counts.shared)
    return Counts(states, number, shared)


def _has_changed(connection: Connection, source: str, before: int | None, after: int | None) -> bool:
    """Return whether the revisions of a source after ``before`` have other records. Most crawls find nothing new."""
    if before == after:
        return False
    if before is None or after is None or after < before:
        return True
    v = t.revision.c
    changes = func.coalesce(func.sum(v.added + v.changed + v.removed), 0)
    later = (v.source == source, v.number > before, v.number <= after)
    number, changed = connection.execute(select(func.count(), changes).where(*later)).one()
    # No revision is ever deleted. Should one be missing, it is not known what it changed.
    return bool(number < after - before or changed > 0)


def _list_inspected(connection: Connection, before: _Basis, basis: _Basis) -> set[str]:
    """Return the sources with a table that was inspected later, for the first time or with another result than before."""
    ended = [start for key, start in basis.verifications.items() if before.verifications.get(key) != start]
    if (before.checked_at, before.latest) == (basis.checked_at, basis.latest) and not ended:
        return set()
    later = min([before.checked_at, *ended]) - _LATE_SECONDS
    locations = list(
        connection.execute(select(d.canonical).where(d.checked_at > later, d.since > later).limit(_MAX_INSPECTED)).scalars()
    )
    if len(locations) == _MAX_INSPECTED:
        return set(basis.revisions)
    return set(
        connection.execute(select(r.source).distinct().where(r.canonical.in_(locations), r.valid_to.is_(None))).scalars()
    )


def group_states(
    connection: Connection, scopes: Scopes = EVERYTHING, sources: Collection[str] | None = None
) -> dict[str, dict[str, StateGroup]]:
    """Return the tables by verification state, by source: of some sources, or of all. Only tables that the scopes cover are counted."""
    state = func.coalesce(d.state, UNVERIFIED)
    covered = [visibility.is_covered(connection, scopes, r.source, r.path)]
    if sources is not None:
        covered.append(r.source.in_(sorted(sources)))
    current = union_all(*records.select_current_tables([r.source, r.canonical], *covered)).subquery()
    query = select(current.c.source, state, func.count(), func.min(d.since), func.max(d.since)).select_from(
        current.outerjoin(t.dataset, has_facts(current.c.source, current.c.canonical))
    )
    grouped: dict[str, dict[str, StateGroup]] = {}
    for source, name, number, since, newest in connection.execute(query.group_by(current.c.source, state)):
        grouped.setdefault(source, {})[name] = StateGroup(number, since or None, newest or None)
    return {source: dict(sorted(states.items())) for source, states in sorted(grouped.items())}


def count_datasets(connection: Connection, scopes: Scopes = EVERYTHING) -> tuple[int, int]:
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
