"""History of verification states per canonical location and access (``stores``).

``dataset`` stores the current state of a location, ``dataset_past`` the earlier ones. A state with its schema is valid from the first
inspection that found it to the next one that found another. Only changes are stored, each with the version and the rows that its last
inspection found. Versions in between are not stored, because a Lance table has its own history.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlalchemy import Connection, select

from federator.model import Path, path_key
from federator.model.scopes import Scopes
from federator.store import tables as t
from federator.store import visibility
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.snapshots import Snapshot
from federator.store.sql import MAX_BIND_VALUES, byte_ordered, chunked, unindexed
from federator.store.stores import read_accesses, value_at
from federator.store.verifications import UNVERIFIED, SourceLocation, get_horizon

d, p, r = t.dataset.c, t.dataset_past.c, t.record.c


@dataclass(frozen=True, slots=True)
class PastVerification:
    """The verification state of a location at a past time. `message` is that of the last inspection with this state."""

    state: Annotated[str, Field(examples=["valid"])]
    message: str | None
    since: Annotated[Timestamp, Field(description="when verification first found this state")]
    schema: Annotated[Any, Field(description="the Lance schema")]


@dataclass(frozen=True, slots=True)
class VerifiedState:
    """A verification state of a location, from its first inspection (`since`) to its last one (`checked_at`)."""

    state: Annotated[str, Field(examples=["valid"])]
    message: str | None
    since: Annotated[Timestamp, Field(description="first inspection that found this state")]
    checked_at: Annotated[OptionalTimestamp, Field(description="last inspection that found it; null: not recorded")]
    version: int | None
    rows: int | None


class StateChange(NamedTuple):
    """A location whose verification state differs between two snapshots. ``source`` declares it in one of them."""

    location: str
    source: str
    first: PastVerification
    last: PastVerification


_FIELDS = ("state", "message", "since", "checked_at", "version", "rows")
# The most states of one location; older ones are left out.
_MAX_STATES = 50


def list_states_of(connection: Connection, source: str, canonical: str) -> list[VerifiedState]:
    """Return the kept verification states of a source's location, oldest first: the last one is the current state."""
    access = value_at(read_accesses(connection), source, canonical)
    states = []
    for c in (d, p):
        query = select(*(c[field] for field in _FIELDS)).where(c.canonical == canonical, c.access == access)
        rows = connection.execute(query.order_by(c.since.desc()).limit(_MAX_STATES)).mappings()
        states += [VerifiedState(**row) for row in rows]
    return states[::-1]


def list_states_at(
    connection: Connection, declared: Iterable[SourceLocation], as_of: float
) -> dict[SourceLocation, PastVerification]:
    """Return the verification states at a time, by source and canonical location.

    Locations that had not been inspected, or whose state is not kept, are left out. The states are those that the source's present
    options could read (``store.stores``), because earlier options are not kept.
    """
    accesses = read_accesses(connection)
    keys = {(source, canonical): (canonical, value_at(accesses, source, canonical)) for source, canonical in declared}
    states = _list_states(connection, {canonical for _, canonical in keys}, as_of)
    return {location: states[key] for location, key in keys.items() if key in states}


def _list_states(connection: Connection, canonicals: Iterable[str], as_of: float) -> dict[tuple[str, str], PastVerification]:
    """Return the verification states at a time, by canonical location and access."""
    states: dict[tuple[str, str], PastVerification] = {}
    for chunk in chunked(canonicals):
        for c, valid in ((d, d.since <= as_of), (p, (p.since <= as_of) & (p.until > as_of))):
            query = select(c.canonical, c.access, c.state, c.message, c.since, c.schema).where(c.canonical.in_(chunk), valid)
            states |= {
                (canonical, access): PastVerification(state, message, since, json.loads(schema) if schema else None)
                for canonical, access, state, message, since, schema in connection.execute(query)
            }
    return states


def default_state_at(connection: Connection, as_of: float) -> str | None:
    """Return the state of a location without a stored state at a time: ``unverified``, or None if states of that time are not kept."""
    return UNVERIFIED if as_of >= get_horizon(connection) else None


def iter_state_changes(
    connection: Connection, begin: Snapshot, end: Snapshot, *, below: Path = (), after: str = "", scopes: Scopes
) -> Iterator[StateChange]:
    """Yield the changes of verification states from ``begin`` to ``end``, by location.

    A first inspection is not a change. A location that changed through several accesses (``stores``) is yielded for each. ``below`` is
    a path prefix, and ``after`` the last location of the previous page.
    """
    low, high = sorted((begin.at, end.at))
    location = byte_ordered(connection, p.canonical)
    changed = select(location).where(p.until > low, p.until <= high).distinct().order_by(location).limit(MAX_BIND_VALUES)
    while locations := list(connection.execute(changed.where(location > after)).scalars()):
        first, last = _list_states(connection, locations, begin.at), _list_states(connection, locations, end.at)
        differ = [key for key in first.keys() & last.keys() if _is_state_change(first[key], last[key])]
        sources = _declaring_sources(connection, (begin, end), {canonical for canonical, _ in differ}, below, scopes)
        order = {location: number for number, location in enumerate(locations)}
        for key in sorted(differ, key=lambda key: (order[key[0]], key[1])):
            if key in sources:
                yield StateChange(key[0], sources[key], first[key], last[key])
        after = locations[-1]


def _is_state_change(first: PastVerification, last: PastVerification) -> bool:
    return (first.state, first.schema) != (last.state, last.schema)


def _declaring_sources(
    connection: Connection, snapshots: tuple[Snapshot, Snapshot], locations: Collection[str], below: Path, scopes: Scopes
) -> dict[tuple[str, str], str]:
    """Return a source that declares each location in one of two snapshots, by location and access.

    Only tables below the path ``below`` and inside the scopes count. Locations that no such table declares are left out.
    """
    sources: dict[tuple[str, str], str] = {}
    if not locations:
        return sources
    accesses = read_accesses(connection)
    for source in sorted({*snapshots[0].revisions, *snapshots[1].revisions}):
        is_below = not below or below[0] == source
        if not (is_below and scopes.is_visible((source,))):
            continue
        inside = [visibility.is_covered(connection, scopes, r.source, r.path)]
        if below:
            inside.append(visibility.is_at_or_below(connection, r.path, path_key(below[1:])))
        base = select(r.canonical).where(r.source == source, r.is_table == 1, r.canonical.in_(locations), *inside).distinct()
        for number in {snapshot.revision_of(source) for snapshot in snapshots}:
            # Open rows, and rows that were closed since: each query uses its own index.
            for still_valid in (r.valid_to.is_(None), r.valid_to > number):
                for location in connection.execute(base.where(unindexed(r.valid_from) <= number, still_valid)).scalars():
                    sources.setdefault((location, value_at(accesses, source, location)), source)
    return sources
