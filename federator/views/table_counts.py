"""Counts of tables by verification state, and of datasets. Counting reads every table, so counts are kept until the index changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from sqlalchemy import ColumnElement, Connection, case, func, select, union_all

from federator.model.scopes import EVERYTHING, Scopes
from federator.store import records, visibility
from federator.store import tables as t
from federator.store.stores import has_facts, read_stores, select_store
from federator.store.verifications import UNVERIFIED
from federator.views.live import read_version_in

# Principals with equal scopes share a result.
_MAX_KEPT = 100

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


class TableCounts:
    """Keeps the newest counts of each set of scopes. Thread-safe: at worst, two threads count at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Scopes, tuple[object, Counts]] = {}

    def read(self, connection: Connection, scopes: Scopes) -> Counts:
        """Return the counts of what the scopes cover. They are counted again if the index has changed since."""
        # Read before the counts: a change in between then only makes the next call count again.
        version = (read_version_in(connection), connection.execute(select(func.max(d.checked_at))).scalar())
        kept = self._kept.get(scopes)
        if kept is not None and kept[0] == version:
            return kept[1]
        counts = Counts(group_states(connection, scopes), *count_datasets(connection, scopes))
        with self._lock:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[scopes] = version, counts
        return counts


def group_states(connection: Connection, scopes: Scopes = EVERYTHING) -> dict[str, dict[str, StateGroup]]:
    """Return the tables by verification state, by source. Only tables that the scopes cover are counted."""
    state = func.coalesce(d.state, UNVERIFIED)
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    current = union_all(*records.select_current_tables([r.source, r.canonical], covered)).subquery()
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
