"""Verification states: ``dataset`` stores the current state of a location, ``dataset_past`` the earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    insert,
    not_,
    or_,
    select,
    update,
)

from federator.lance.inspection import REFERS_OUTSIDE
from federator.model import Kind, LocationAliases, canonical_location
from federator.store import records
from federator.store import tables as t
from federator.store.field_types import columns_of
from federator.store.sql import chunked, has_prefix

d, r = t.dataset.c, t.record.c


#: the state of a location that was never opened
UNVERIFIED = "unverified"

VERIFICATION_STATES = (
    "valid", "declared_only", "empty", "missing", "not_lance", "corrupt", "denied", "unreachable", REFERS_OUTSIDE, UNVERIFIED,
)  # fmt: skip


_STATES_WORST_FIRST = (
    "unreachable", "denied", REFERS_OUTSIDE, "corrupt", "missing", "not_lance", "empty", "declared_only", "valid",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verification:
    """The verification state of a canonical location, with one field for each column.

    ``location`` is the spelling that was inspected, ``size`` in bytes, ``schema`` JSON of the Lance schema, ``fingerprint`` its hash.
    ``changed_at`` is the time of the newest version, and ``since`` the time since which state and schema are as they are.
    """

    canonical: str
    location: str
    state: str
    message: str | None
    version: int | None
    rows: int | None
    fragments: int | None
    schema: str | None
    checked_at: float
    checked_through: str
    size: int | None
    indices: int | None
    fingerprint: str | None
    format: str | None
    changed_at: float | None
    since: float


@dataclass(frozen=True, slots=True)
class DueLocation:
    """A location to verify: its canonical form, and the spelling of a declaration."""

    canonical: str
    location: str
    #: what the table may refer to outside its location, if it is not what the source permits (``stages.shared_permissions``)
    allowed_bases: tuple[str, ...] | None = None
    mounts: tuple[str, ...] | None = None


_COLUMNS = columns_of(t.dataset, Verification)
_STATE = select(*_COLUMNS).where(t.dataset.c.canonical == bindparam("canonical"))


def refresh_location_aliases(connection: Connection, aliases: LocationAliases) -> None:
    """Refresh the ``alias`` table for declared locations. Call it after each published crawl."""
    resolved: dict[str, str] = {}
    for prefix in aliases.prefixes:
        inside = or_(r.canonical == prefix, has_prefix(connection, r.canonical, prefix_below(prefix)))
        query = select(r.canonical).where(inside, r.is_table == 1).distinct()
        resolved |= {location: canonical_location(location, aliases) for location in connection.execute(query).scalars()}
    connection.execute(delete(t.alias))
    if resolved:
        connection.execute(insert(t.alias), [{"canonical": alias, "place": location} for alias, location in resolved.items()])


def list_due_locations(
    connection: Connection, source: str, *, now: float, max_age: float, limit: int, stricter: Sequence[str] = (),
    only_shared: bool = False,
) -> list[DueLocation]:  # fmt: skip
    """List distinct declared locations of a source that are due for verification at ``now``, in seconds since the epoch.

    A location is due if it was never inspected, declared again since its inspection, unreachable at its inspection, or inspected more
    than ``max_age`` seconds ago. Never inspected ones come first, then those declared again, then worse states and older inspections.

    A location that is valid through another source, which still declares it, is that source's to inspect for twice as long: a copy that
    a mirror has just declared may be in a source without credentials for the storage.

    A location is also due if one of the ``stricter`` sources, which do not permit all that this one does, has declared it since.
    ``only_shared``: only these locations are due, if they are valid through the source.
    """
    revision, d = records.published_revision(connection, source), t.dataset.c
    columns = [r.canonical, r.location, r.valid_from]
    # Nothing here opens a managed table, unless it is read-only (TableRecord.is_read_only).
    is_opened = or_(r.kind != Kind.MANAGED_TABLE.value, r.problem.is_not(None))
    conditions = (r.is_table == 1, r.canonical.is_not(None), is_opened)
    state = records.select_at_revision(source, revision, *conditions, columns=columns).subquery()
    redeclared = t.revision.c.published_at > d.checked_at
    other = t.record.alias()
    declared_there = exists().where(
        other.c.source == d.checked_through, other.c.canonical == d.canonical, other.c.is_table == 1, other.c.valid_to.is_(None)
    )
    valid_elsewhere = and_(d.state == "valid", d.checked_through != source, d.checked_at >= now - 2 * max_age, declared_there)
    outdated = or_(redeclared, d.state == "unreachable", d.checked_at < now - max_age)
    due = or_(d.checked_at.is_(None), and_(outdated, not_(valid_elsewhere)))
    if stricter:
        published = and_(t.revision.c.source == other.c.source, t.revision.c.number == other.c.valid_from)
        declared_since = exists().where(
            other.c.source.in_(stricter), other.c.canonical == d.canonical, other.c.is_table == 1, other.c.valid_to.is_(None),
            published, t.revision.c.published_at > d.checked_at,
        )  # fmt: skip
        shared = declared_since.correlate(t.dataset)
        due = and_(d.state == "valid", d.checked_through == source, shared) if only_shared else or_(due, shared)
    state_rank = case({name: rank for rank, name in enumerate(_STATES_WORST_FIRST)}, value=d.state, else_=0)
    query = (
        select(state.c.canonical, state.c.location)
        .join(t.dataset, d.canonical == state.c.canonical, isouter=True)
        .join(t.revision, and_(t.revision.c.source == source, t.revision.c.number == state.c.valid_from), isouter=True)
        .where(due)
        .order_by(d.checked_at.is_not(None), case((redeclared, 0), else_=1), state_rank, d.checked_at, state.c.canonical)
        .limit(limit)
    )
    distinct = {row.canonical: DueLocation(row.canonical, row.location) for row in connection.execute(query)}
    return list(distinct.values())


def list_declaring_sources(connection: Connection, canonicals: Sequence[str]) -> dict[str, set[str]]:
    """Return the sources that declare tables at canonical locations. Locations without any are left out."""
    found: dict[str, set[str]] = {}
    for chunk in chunked(canonicals):
        current = (r.is_table == 1, r.valid_to.is_(None), r.canonical.in_(chunk))
        for row in connection.execute(select(r.canonical, r.source).where(*current).distinct()):
            found.setdefault(row.canonical, set()).add(row.source)
    return found


def save_verifications(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Store verification states, and the previous state of each location whose state differs.

    ``rows`` have every column of ``dataset`` except ``since``.
    """
    for batch in chunked(rows):
        since = record_state_changes(connection, batch)
        connection.execute(delete(t.dataset).where(t.dataset.c.canonical.in_(list(since))))
        connection.execute(insert(t.dataset), [{**row, "since": since[row["canonical"]]} for row in batch])


def list_verifications(connection: Connection, canonicals: Sequence[str]) -> dict[str, Verification]:
    """Return verification states by canonical location. Locations that were never inspected are left out."""
    states: dict[str, Verification] = {}
    for chunk in chunked(canonicals):
        query = select(*_COLUMNS).where(t.dataset.c.canonical.in_(chunk))
        states.update({row["canonical"]: Verification(**row) for row in connection.execute(query).mappings()})
    return states


def find_verification(connection: Connection, canonical: str) -> Verification | None:
    """Return the verification state of a canonical location. None if the location was never inspected."""
    row = connection.execute(_STATE, {"canonical": canonical}).mappings().first()
    return Verification(**row) if row is not None else None


def prefix_below(location: str) -> str:
    """Return the prefix of all canonical locations below a location."""
    return location if location.endswith("/") else location + "/"


# The key in the table ``deployment`` for the time from which earlier states are kept.
_HORIZON = "dataset_past_from"


def record_state_changes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Copy the states that ``rows`` are about to change into ``dataset_past``. Return the start of the new state per location.

    The earlier schemas of a location that is not read any more, because it refers to others, are removed.

    ``rows`` are rows of ``dataset``, at most 500. Call this before they replace the stored ones.
    """
    new_rows = {row["canonical"]: row for row in rows}
    known = select(d.canonical, d.state, d.fingerprint, d.since).where(d.canonical.in_(list(new_rows)))
    since = {canonical: float(row["checked_at"]) for canonical, row in new_rows.items()}
    changed = []
    for row in connection.execute(known):
        if (row.state, row.fingerprint) == (new_rows[row.canonical]["state"], new_rows[row.canonical].get("fingerprint")):
            since[row.canonical] = row.since
        elif row.since < since[row.canonical]:
            changed.append(row.canonical)
    if changed:
        columns = (d.canonical, d.state, d.message, d.schema, d.fingerprint, d.since)
        past = connection.execute(select(*columns).where(d.canonical.in_(changed))).mappings()
        connection.execute(insert(t.dataset_past), [{**row, "until": since[row["canonical"]]} for row in past])
    if unread := [canonical for canonical, row in new_rows.items() if row["state"] == REFERS_OUTSIDE]:
        # The earlier schemas may be those of the table that this one refers to.
        p = t.dataset_past.c
        connection.execute(update(t.dataset_past).where(p.canonical.in_(unread)).values(schema=None, fingerprint=None))
    return since


def get_horizon(connection: Connection) -> float:
    """Return the time from which earlier verification states are kept; 0 if all are kept."""
    query = select(t.deployment.c.value).where(t.deployment.c.key == _HORIZON)
    return float(connection.execute(query).scalar() or 0)


def set_horizon(connection: Connection, kept_from: float) -> None:
    """Set the time from which earlier verification states are kept. An earlier time than the current one has no effect."""
    if kept_from > get_horizon(connection):
        connection.execute(delete(t.deployment).where(t.deployment.c.key == _HORIZON))
        connection.execute(insert(t.deployment), [{"key": _HORIZON, "value": repr(kept_from)}])
