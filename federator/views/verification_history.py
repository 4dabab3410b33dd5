"""History of verification states per canonical location.

``dataset`` stores the current state of a location, ``dataset_past`` the earlier ones. A state with its schema is valid from the first
inspection that found it to the next one that found another. Only changes are stored. Past versions and row counts are not stored,
because a Lance table has its own history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, select

from federator.model import Path, path_key
from federator.model.scopes import Scopes
from federator.store import tables as t
from federator.store import visibility
from federator.store.field_types import Timestamp
from federator.store.snapshots import Snapshot
from federator.store.sql import MAX_BIND_VALUES, byte_ordered, chunked
from federator.store.verifications import UNVERIFIED, get_horizon

d, p, r = t.dataset.c, t.dataset_past.c, t.record.c


@dataclass(frozen=True, slots=True)
class PastVerification:
    """The verification state of a location at a past time. `message` is that of the last inspection with this state."""

    state: Annotated[str, Field(examples=["valid"])]
    message: str | None
    since: Annotated[Timestamp, Field(description="when verification first found this state")]
    schema: Annotated[Any, Field(description="the Lance schema")]


def list_states_at(connection: Connection, canonicals: Iterable[str], as_of: float) -> dict[str, PastVerification]:
    """Return the verification states at a time, by canonical location.

    Locations that had not been inspected, or whose state is not kept, are left out.
    """
    states: dict[str, PastVerification] = {}
    for chunk in chunked(canonicals):
        for c, valid in ((d, d.since <= as_of), (p, (p.since <= as_of) & (p.until > as_of))):
            query = select(c.canonical, c.state, c.message, c.since, c.schema).where(c.canonical.in_(chunk), valid)
            states |= {
                canonical: PastVerification(state, message, since, json.loads(schema) if schema else None)
                for canonical, state, message, since, schema in connection.execute(query)
            }
    return states


def default_state_at(connection: Connection, as_of: float) -> str | None:
    """Return the state of a location without a stored state at a time: ``unverified``, or None if states of that time are not kept."""
    return UNVERIFIED if as_of >= get_horizon(connection) else None


def iter_state_changes(
    connection: Connection, begin: Snapshot, end: Snapshot, *, below: Path = (), after: str = "", scopes: Scopes
) -> Iterator[tuple[str, str, PastVerification, PastVerification]]:
    """Yield the locations whose verification states differ between two snapshots, in order.

    Each comes with a source that declares it in one of the snapshots, its state at ``begin`` and its state at ``end``. A first
    inspection is not a change.
    """
    low, high = sorted((begin.at, end.at))
    location = byte_ordered(connection, p.canonical)
    changed = select(location).where(p.until > low, p.until <= high).distinct().order_by(location).limit(MAX_BIND_VALUES)
    while locations := list(connection.execute(changed.where(location > after)).scalars()):
        first, last = list_states_at(connection, locations, begin.at), list_states_at(connection, locations, end.at)
        differ = [key for key in locations if key in first and key in last and _is_state_change(first[key], last[key])]
        sources = _declaring_sources(connection, (begin, end), differ, below, scopes)
        yield from ((key, sources[key], first[key], last[key]) for key in differ if key in sources)
        after = locations[-1]


def _is_state_change(first: PastVerification, last: PastVerification) -> bool:
    return (first.state, first.schema) != (last.state, last.schema)


def _declaring_sources(
    connection: Connection, snapshots: tuple[Snapshot, Snapshot], locations: Sequence[str], below: Path, scopes: Scopes
) -> dict[str, str]:
    """Return, by location, a source that declares it in one of two snapshots by a table below a path and inside the scopes."""
    sources: dict[str, str] = {}
    if not locations:
        return sources
    for source in sorted({*snapshots[0].revisions, *snapshots[1].revisions}):
        if not scopes.is_visible((source,)) or below[:1] not in ((), (source,)):
            continue
        inside = [visibility.is_covered(connection, scopes, r.source, r.path)]
        if below:
            inside.append(visibility.is_at_or_below(connection, r.path, path_key(below[1:])))
        base = select(r.canonical).where(r.source == source, r.is_table == 1, r.canonical.in_(locations), *inside).distinct()
        for number in {snapshot.revision_of(source) for snapshot in snapshots}:
            # Open rows, and rows that were closed since: each query uses its own index.
            for still_valid in (r.valid_to.is_(None), r.valid_to > number):
                for location in connection.execute(base.where(r.valid_from + 0 <= number, still_valid)).scalars():
                    sources.setdefault(location, source)
    return sources
