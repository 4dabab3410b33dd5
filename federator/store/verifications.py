"""Verification states: ``dataset`` stores the current state of a location, ``dataset_past`` the earlier ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    case,
    delete,
    exists,
    false,
    insert,
    literal,
    not_,
    or_,
    select,
    update,
)

from federator.lance.inspection import REFERS_OUTSIDE, Inspection
from federator.model import Kind, LocationAliases, TableRecord, canonical_location
from federator.store import records
from federator.store import tables as t
from federator.store.field_types import columns_of
from federator.store.sql import chunked, has_prefix
from federator.store.stores import has_facts, read_accesses, select_access, value_at, value_of_location

d, r = t.dataset.c, t.record.c

#: a source and a canonical location that it declares
SourceLocation = tuple[str, str]
# A canonical location and the access through which it was opened.
_Key = tuple[str, str]

#: the state of a location that was never opened
UNVERIFIED = "unverified"

VERIFICATION_STATES = (
    "valid", "declared_only", "empty", "missing", "not_lance", "corrupt", "denied", "unreachable", REFERS_OUTSIDE, UNVERIFIED,
)  # fmt: skip


# Worst first, but for tables that do not respond: after a few of them, the others in their store are not opened.
_STATES_IN_ORDER = (
    "denied", REFERS_OUTSIDE, "corrupt", "missing", "not_lance", "empty", "declared_only", "valid", "unreachable",
)  # fmt: skip


# Nothing was read of these: the options or the permissions of a source do not suffice, or its store does not respond.
_UNREAD_STATES = ("denied", REFERS_OUTSIDE, "unreachable")


def rank_state(state: str | None, at: float | None) -> tuple[int, float]:
    """Return the rank of a verification state among those of one dataset, which sources may open with different options.

    The highest one is that of the dataset: the newest one through which it was read.
    """
    return (0 if state is None else 1 if state in _UNREAD_STATES else 2), at or 0.0


@dataclass(frozen=True, slots=True)
class Verification:
    """The verification state of a canonical location through an access (``stores``), with one field for each column.

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
    access: str


@dataclass(frozen=True, slots=True)
class DueLocation:
    """A location to verify: its canonical form, and the spelling of a declaration."""

    canonical: str
    location: str
    #: what the table may refer to outside its location, if it is not what the source permits (``stages.shared_permissions``)
    allowed_bases: tuple[str, ...] | None = None
    mounts: tuple[str, ...] | None = None


_COLUMNS = columns_of(t.dataset, Verification)


def find_verification_obstacle(table: TableRecord) -> str | None:
    """Return why verification does not open a table. None if it does."""
    if table.kind is Kind.MANAGED_TABLE and not table.is_read_only:
        return "the table is managed by its catalog; verification does not open such tables"
    return "the catalog does not tell where the table is stored" if table.canonical is None else None


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
    than ``max_age`` seconds ago. Never inspected ones come first, then those declared again, then worse states and older inspections;
    unreachable ones come last.

    A location that is valid through another source, which still declares it, is that source's to inspect for twice as long: a copy that
    a mirror has just declared may be in a source without credentials for the storage.

    A location is also due if one of the ``stricter`` sources, which do not permit all that this one does, has declared it since.
    ``only_shared``: only these locations are due, if they are valid through the source.
    """
    revision, d = records.published_revision(connection, source), t.dataset.c
    columns = [r.canonical, r.location, r.valid_from]
    # The rule of ``find_verification_obstacle`` in SQL.
    is_opened = or_(r.kind != Kind.MANAGED_TABLE.value, r.problem.is_not(None))
    conditions = (r.is_table == 1, r.canonical.is_not(None), is_opened)
    state = records.select_at_revision(source, revision, *conditions, columns=columns).subquery()
    redeclared = t.revision.c.published_at > d.checked_at
    other = t.record.alias()
    declared_there = exists().where(
        other.c.source == d.checked_through,
        other.c.canonical == d.canonical,
        other.c.is_table == 1,
        other.c.valid_to.is_(None),
        select_access(other.c.source, other.c.canonical) == d.access,
    )
    valid_elsewhere = and_(d.state == "valid", d.checked_through != source, d.checked_at >= now - 2 * max_age, declared_there)
    outdated = or_(redeclared, d.state == "unreachable", d.checked_at < now - max_age)
    due = or_(d.checked_at.is_(None), and_(outdated, not_(valid_elsewhere)))
    if stricter:
        published = and_(t.revision.c.source == other.c.source, t.revision.c.number == other.c.valid_from)
        declared_since = exists().where(
            other.c.source.in_(stricter), other.c.canonical == d.canonical, other.c.is_table == 1, other.c.valid_to.is_(None),
            select_access(other.c.source, other.c.canonical) == d.access, published, t.revision.c.published_at > d.checked_at,
        )  # fmt: skip
        shared = declared_since.correlate(t.dataset)
        due = and_(d.state == "valid", d.checked_through == source, shared) if only_shared else or_(due, shared)
    state_rank = case({name: rank for rank, name in enumerate(_STATES_IN_ORDER)}, value=d.state, else_=0)
    since = and_(t.revision.c.source == source, t.revision.c.number == state.c.valid_from)
    joined = state.outerjoin(t.dataset, has_facts(source, state.c.canonical)).outerjoin(t.revision, since)
    query = (
        select(state.c.canonical, state.c.location)
        .select_from(joined)
        .where(due)
        .order_by(d.checked_at.is_not(None), case((redeclared, 0), else_=1), state_rank, d.checked_at, state.c.canonical)
        .limit(limit)
    )
    distinct = {row.canonical: DueLocation(row.canonical, row.location) for row in connection.execute(query)}
    return list(distinct.values())


def list_verifiers_of_redeclared(connection: Connection, declaring: Sequence[str]) -> set[str]:
    """Return the sources through which locations are valid that a source of ``declaring`` has declared since their inspection."""
    d, published = t.dataset.c, and_(t.revision.c.source == r.source, t.revision.c.number == r.valid_from)
    query = (
        select(d.checked_through)
        .select_from(t.record)
        .join(t.revision, published)
        .join(t.dataset, and_(d.canonical == r.canonical, d.access == select_access(r.source, r.canonical)))
        .where(r.source.in_(declaring), r.is_table == 1, r.valid_to.is_(None), d.state == "valid")
        .where(t.revision.c.published_at > d.checked_at, d.checked_through != r.source)
        .distinct()
    )
    return set(connection.execute(query).scalars())


def list_declaring_sources(connection: Connection, access: str, canonicals: Sequence[str]) -> dict[str, set[str]]:
    """Return the sources with an access that declare tables at canonical locations. Locations without any are left out."""
    sources_by_location: dict[str, set[str]] = {}
    accesses = read_accesses(connection)
    for chunk in chunked(canonicals):
        current = (r.is_table == 1, r.valid_to.is_(None), r.canonical.in_(chunk))
        for row in connection.execute(select(r.canonical, r.source).where(*current).distinct()):
            if value_at(accesses, row.source, row.canonical) == value_of_location(access, row.canonical):
                sources_by_location.setdefault(row.canonical, set()).add(row.source)
    return sources_by_location


def save_inspection(
    connection: Connection, inspection: Inspection, *, canonical: str, location: str, through: str, access: str
) -> None:
    """Store what an inspection has found now.

    ``location`` is the spelling that was inspected, ``through`` the source or storage root with whose options, and ``access`` the
    access of these (``stores.SourceStore``).
    """
    row = {
        "canonical": canonical, "location": location, "checked_at": time.time(), "checked_through": through,
        "access": value_of_location(access, canonical), **asdict(inspection),
    }  # fmt: skip
    save_verifications(connection, [row])


def save_verifications(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Store verification states, and the previous state of each location whose state differs.

    ``rows`` have every column of ``dataset`` except ``since``; ``access`` is the one through which the location was opened.
    """
    for batch in chunked(rows):
        since = record_state_changes(connection, batch)
        connection.execute(delete(t.dataset).where(_is_one_of(t.dataset, list(since))))
        connection.execute(insert(t.dataset), [{**row, "since": since[_key(row)]} for row in batch])


def list_verifications(connection: Connection, declared: Iterable[SourceLocation]) -> dict[SourceLocation, Verification]:
    """Return verification states by source and canonical location. Locations that were never inspected are left out.

    A source has the facts of its own access only, also if another one has opened the same location.
    """
    accesses = read_accesses(connection)
    keys = {(source, canonical): (canonical, value_at(accesses, source, canonical)) for source, canonical in declared}
    states: dict[_Key, Verification] = {}
    for chunk in chunked({canonical for _, canonical in keys}):
        query = select(*_COLUMNS).where(t.dataset.c.canonical.in_(chunk))
        for row in connection.execute(query).mappings():
            states[_key(row)] = Verification(**row)
    return {one: states[key] for one, key in keys.items() if key in states}


def find_verification(connection: Connection, source: str, canonical: str) -> Verification | None:
    """Return the verification state of a source's canonical location. None if the location was never inspected."""
    row = connection.execute(select(*_COLUMNS).where(has_facts(source, literal(canonical)))).mappings().first()
    return Verification(**row) if row is not None else None


def _key(row: Mapping[Any, Any]) -> _Key:
    return str(row["canonical"]), str(row["access"])


def _is_one_of(table: Table, keys: Sequence[_Key]) -> ColumnElement[bool]:
    """Return the condition that a row of ``dataset`` or ``dataset_past`` has one of the keys."""
    by_access: dict[str, list[str]] = {}
    for canonical, access in keys:
        by_access.setdefault(access, []).append(canonical)
    return or_(
        false(), *(and_(table.c.access == access, table.c.canonical.in_(each)) for access, each in sorted(by_access.items()))
    )


def prefix_below(location: str) -> str:
    """Return the prefix of all canonical locations below a location."""
    return location if location.endswith("/") else location + "/"


# The key in the table ``deployment`` for the time from which earlier states are kept.
_HORIZON = "dataset_past_from"


def record_state_changes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> dict[_Key, float]:
    """Copy the states that ``rows`` are about to change into ``dataset_past``. Return the start of the new state by location and
    access.

    The earlier schemas, versions and rows of a location that is not read any more, because it refers to others, are removed.

    ``rows`` are rows of ``dataset``, at most 500. Call this before they replace the stored ones.
    """
    new_rows = {_key(row): row for row in rows}
    known = select(d.canonical, d.access, d.state, d.fingerprint, d.since).where(_is_one_of(t.dataset, list(new_rows)))
    since = {key: float(row["checked_at"]) for key, row in new_rows.items()}
    changed = []
    for row in connection.execute(known).mappings():
        key = _key(row)
        if (row["state"], row["fingerprint"]) == (new_rows[key]["state"], new_rows[key].get("fingerprint")):
            since[key] = row["since"]
        elif row["since"] < since[key]:
            changed.append(key)
    if changed:
        columns = (
            d.canonical, d.access, d.state, d.message, d.schema, d.fingerprint, d.since, d.version, d.rows, d.checked_at,
        )  # fmt: skip
        past = connection.execute(select(*columns).where(_is_one_of(t.dataset, changed))).mappings()
        connection.execute(insert(t.dataset_past), [{**row, "until": since[_key(row)]} for row in past])
    if unread := [key for key, row in new_rows.items() if row["state"] == REFERS_OUTSIDE]:
        # The earlier schemas may be those of the table that this one refers to.
        past_states = update(t.dataset_past).where(_is_one_of(t.dataset_past, unread))
        connection.execute(past_states.values(schema=None, fingerprint=None, version=None, rows=None))
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
