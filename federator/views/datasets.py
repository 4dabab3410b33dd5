"""Datasets: one view per canonical location in a store, with its declarations and its verification state.

Only the verification state is stored. Everything else is computed from the current declarations at each query, so it is never stale.
The table ``alias`` resolves location aliases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    exists,
    func,
    or_,
    select,
    union,
)

from federator.connector import TableNotFound
from federator.model import LocationAliases, TableRecord, canonical_location, parent_locations, parse_path_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.comparison import Disagreement, find_disagreements
from federator.store import pending_publications, visibility
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.records import list_declarations_at, resolve_alias_spellings, select_current_tables
from federator.store.sql import MAX_BIND_VALUES, chunked, has_prefix
from federator.store.stores import has_facts, list_sharing, read_stores, value_at
from federator.store.verifications import (
    UNVERIFIED,
    SourceLocation,
    Verification,
    list_verifications,
    prefix_below,
    rank_state,
)

# The most tables below one location that its detail lists; a bucket may contain a million.
_MAX_CONTAINED = 100
# Keys of objects are not longer. Of longer and deeper locations, ``inside`` is not complete.
_MAX_LENGTH_WITH_PARENTS, _MAX_PARENTS = 1_200, 64
_ANY_PATH = "file:///"

CHECKED_THROUGH = "source whose storage options were used; null: a source that the principal cannot see"
DISAGREEMENTS = (
    "fields in which declarations contradict each other: schema, doc or property:<key>; "
    "`sides`: the declarations, grouped by the value of the field"
)

r, s = t.record.c, t.source.c


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration of this dataset in one catalog."""

    id: Annotated[str, Field(examples=["lake_hive$sales$orders"])]
    kind: Annotated[str, Field(examples=["table"], description="table, managed_table or undescribed")]
    location: Annotated[str, Field(examples=["s3a://lake/sales/orders.lance/"], description="location as the catalog wrote it")]


@dataclass(frozen=True, slots=True)
class DatasetVerification:
    """The verification result of a location, from its newest manifest."""

    message: str | None
    version: int | None
    rows: int | None
    size: Annotated[int | None, Field(description="size of the data files in bytes")]
    fragments: int | None
    indices: int | None
    format: Annotated[str | None, Field(examples=["2.1"], description="version of the Lance file format")]
    fingerprint: Annotated[str | None, Field(description="hash of the schema")]
    changed_at: Annotated[OptionalTimestamp, Field(description="time at which the newest version was written")]
    checked_at: Timestamp
    checked_through: Annotated[str | None, Field(description=CHECKED_THROUGH)]
    schema: Annotated[Any, Field(description="the Lance schema")]
    since: Annotated[float, Field(exclude=True)]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset: what is stored at one canonical location of a store, with all its declarations."""

    location: Annotated[str, Field(examples=["s3://lake/sales/orders.lance"])]
    state: Annotated[str, Field(examples=["valid"], description="verification state; unverified: not verified yet")]
    declarations: list[Declaration]
    disagreements: Annotated[list[Disagreement], Field(description=DISAGREEMENTS)]
    duplicates: Annotated[
        list[str], Field(description="declarations of sources that declare the location under more than one name")
    ]
    inside: Annotated[
        list[str], Field(description="declared locations among the 64 nearest directories above this one, nearest first")
    ]
    holds: Annotated[
        list[str],
        Field(description="declared locations below this one, the first 100; only in the response for one dataset"),
    ]
    verified: DatasetVerification | None

    @property
    def has_conflict(self) -> bool:
        return bool(self.disagreements or self.duplicates)


def list_sources(declarations: Sequence[Declaration]) -> list[str]:
    """Return the source of each declaration."""
    return [parse_path_key(declaration.id)[0] for declaration in declarations]


@dataclass(frozen=True, slots=True)
class DatasetFilter:
    """A filter of datasets: by state (``unverified``: never inspected), by source, with duplicates or disagreements, or with several
    declarations."""

    state: str | None = None
    declared_in: str | None = None
    conflicts: bool = False
    several: bool = False

    def matches(self, state: str | None, declarations: int, *, has_conflict: bool) -> bool:
        """Check what SQL conditions cannot: the state and the number of declarations of a dataset with aliases, and whether they
        contradict each other."""
        return self.state in (None, state) and (has_conflict or not self.conflicts) and (declarations > 1 or not self.several)

    @property
    def compares_declarations(self) -> bool:
        """Whether a dataset with one declaration never matches."""
        return self.conflicts or self.several


NO_FILTER = DatasetFilter()


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """One page of datasets by location, and the cursor of the next page; None on the last page."""

    datasets: list[Dataset]
    next: str | None


def list_datasets(
    index: Index, filters: DatasetFilter = NO_FILTER, *, after: str = "", limit: int = 200, scopes: Scopes = EVERYTHING
) -> DatasetPage:
    """List datasets by location, from the declarations that the scopes cover. ``after`` is the cursor of the previous page."""
    datasets: list[Dataset] = []
    with index.read() as connection:
        while len(datasets) <= limit:
            size = MAX_BIND_VALUES if filters.compares_declarations else limit + 1
            locations = _list_locations(connection, filters, scopes, after=after, limit=size)
            if not locations:
                break
            views = _build_views(connection, locations, scopes, conflicting=filters.conflicts)
            datasets += [
                view for view in views if filters.matches(view.state, len(view.declarations), has_conflict=view.has_conflict)
            ]
            after = locations[-1]
    page, following = cut_page(datasets, limit)
    return DatasetPage(page, following)


class _Located(Protocol):
    @property
    def location(self) -> str: ...


_View = TypeVar("_View", bound=_Located)


def cut_page(views: list[_View], limit: int) -> tuple[list[_View], str | None]:
    """Return the first datasets, and the location after which the next page begins; None after the last one.

    They are more than ``limit`` if several stores have the last location: a page ends with all datasets of a location.
    """
    if len(views) <= limit:
        return views, None
    last = views[limit - 1].location
    return [*views[:limit], *takewhile(lambda view: view.location == last, views[limit:])], last


def get_dataset(
    index: Index, location: str, aliases: LocationAliases, *, declared_in: str | None = None, scopes: Scopes = EVERYTHING
) -> Dataset:
    """Return the dataset at a location, in any spelling. Raise TableNotFound if the scopes cover no declaration of it.

    ``declared_in`` is a source that declares it, if several stores have the location. Without it, the first source by name counts.
    """
    canonical = canonical_location(location, aliases)
    with index.read() as connection:
        views = _build_views(connection, [canonical], scopes)
        datasets = [view for view in views if declared_in is None or declared_in in list_sources(view.declarations)]
        if not datasets:
            raise TableNotFound(f"no table is declared at {canonical}", hint="federator datasets lists the declared locations")
        names = connection.execute(select(s.name)).scalars()
        sharing = list_sharing(connection, list_sources(datasets[0].declarations)[0], canonical, names)
        return replace(datasets[0], holds=_list_locations_below(connection, canonical, sharing, scopes))


def count_declarations(connection: Connection, source: str, keys: Sequence[str], scopes: Scopes) -> dict[str, int]:
    """Return the number of declarations that the scopes cover of the datasets of some tables of a source, by path key."""
    a, stores = t.alias.c, read_stores(connection)
    location = func.coalesce(a.place, r.canonical)
    declared: dict[str, tuple[str, str]] = {}
    for chunk in chunked(keys):
        for tables in select_current_tables(
            [r.path, r.canonical, location.label("location")], r.source == source, r.path.in_(chunk)
        ):
            for row in connection.execute(tables.outerjoin(t.alias, a.canonical == r.canonical)):
                if row.canonical is not None:
                    declared[row.path] = (row.location, value_at(stores, source, row.canonical))
    counts: Counter[tuple[str, str]] = Counter()
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    for chunk in chunked(sorted({location for location, _ in declared.values()})):
        spellings = resolve_alias_spellings(connection, chunk)
        for tables in select_current_tables(
            [r.source, r.canonical, func.count().label("number")], r.canonical.in_(list(spellings)), covered
        ):
            for row in connection.execute(tables.group_by(r.source, r.canonical)):
                counts[spellings[row.canonical], value_at(stores, row.source, row.canonical)] += row.number
    return {key: counts[dataset] for key, dataset in declared.items()}


def list_declaring_tables(index: Index, location: str, aliases: LocationAliases) -> frozenset[str]:
    """Return the tables of all sources that are declared at a location, in any spelling, as path keys with their sources.

    Direct writes that are not yet published count.
    """
    canonical = canonical_location(location, aliases)
    with index.read() as connection:
        # Read first, because a publication removes the pending observation last.
        pending = pending_publications.list_pending_tables(connection)
        declared = list_declarations_at(connection, [canonical]).get(canonical, [])
    published = {path_key((table.source, *table.path)) for table in declared}
    pending_here = {
        key
        for key, record in pending.items()
        if record is not None and record.location and canonical_location(record.location, aliases) == canonical
    }
    return frozenset((published - pending.keys()) | pending_here)


def list_tables_that_may_overlap(
    index: Index, location: str, aliases: LocationAliases, *, neighbours: bool = False
) -> dict[str, str]:
    """Return the tables of all sources at, below or above a location, by object id, with their canonical locations.

    ``neighbours``: also tables whose location begins with the same text (``orders2`` beside ``orders``). For a path, all tables with a
    path are returned, because symbolic links can lead from one to another. Direct writes that are not yet published count.
    """
    canonical = canonical_location(location, aliases)
    begin = canonical if neighbours else prefix_below(canonical)
    prefix = _ANY_PATH if canonical.startswith(_ANY_PATH) else begin
    own, alias = r.canonical, t.alias.c.place
    at_or_above = [canonical, *parent_locations(canonical)]
    with index.read() as connection:
        # Read first, because a publication removes the pending observation last.
        pending = pending_publications.list_pending_tables(connection)
        conditions = [
            (own, ~exists().where(t.alias.c.canonical == own)),
            (alias, t.alias.c.canonical == own),
        ]
        location_by_table = {
            path_key((row.source, *parse_path_key(row.path))): str(row.location)
            for column, condition in conditions
            for query in select_current_tables(
                [r.source, r.path, column.label("location")],
                condition,
                or_(column.in_(at_or_above), has_prefix(connection, column, prefix)),
            )
            for row in connection.execute(query)
        }
    for name, record in pending.items():
        location_by_table.pop(name, None)
        written = canonical_location(record.location, aliases) if record is not None and record.location else ""
        if written in at_or_above or written.startswith(prefix):
            location_by_table[name] = written
    return location_by_table


def visible_verifying_source(verification: Verification, scopes: Scopes) -> str | None:
    """Return the source whose settings were used to inspect a location. None if the scopes cover nothing of this source."""
    return verification.checked_through if scopes.is_visible((verification.checked_through,)) else None


def _list_locations(connection: Connection, filters: DatasetFilter, scopes: Scopes, *, after: str, limit: int) -> list[str]:
    def build_conditions(location: ColumnElement[str]) -> list[ColumnElement[bool]]:
        inspected = exists().where(has_facts(r.source, r.canonical))
        conditions = [location > after, visibility.is_covered(connection, scopes, r.source, r.path)]
        if filters.declared_in is not None:
            conditions.append(r.source == filters.declared_in)
        if filters.state == UNVERIFIED:
            conditions.append(~inspected)
        elif filters.state is not None:
            conditions.append(inspected.where(t.dataset.c.state == filters.state))
        return conditions

    # With a source as filter, declarations in other sources must count as well.
    several = filters.compares_declarations and filters.declared_in is None
    return list(connection.execute(_select_distinct_locations(build_conditions, limit, several=several)).scalars())


def _select_distinct_locations(
    build_conditions: Callable[[ColumnElement[str]], list[ColumnElement[bool]]], limit: int, *, several: bool = False
) -> Select[Any]:
    """Return a select of declared canonical locations, in order.

    Each branch reads an index in order, so the cost of a page depends only on its size. ``several`` leaves out locations with one
    declaration; locations with aliases, and rows that a draft revision has closed, stay.
    """
    own, alias = r.canonical, t.alias.c.place
    selects = [
        *select_current_tables([own.label("location")], ~exists().where(t.alias.c.canonical == own), *build_conditions(own)),
        *select_current_tables([alias.label("location")], t.alias.c.canonical == own, *build_conditions(alias)),
    ]
    grouped = [query.distinct() for query in selects]
    if several:
        grouped[0] = selects[0].group_by(own).having(func.count() > 1)
    branches = [query.order_by("location").limit(limit).subquery() for query in grouped]
    locations = union(*(select(branch.c.location) for branch in branches)).subquery()
    return select(locations.c.location).order_by(locations.c.location).limit(limit)


def _list_locations_below(connection: Connection, location: str, sources: Sequence[str], scopes: Scopes) -> list[str]:
    covered = and_(visibility.is_covered(connection, scopes, r.source, r.path), r.source.in_(sources))
    query = _select_distinct_locations(
        lambda column: [has_prefix(connection, column, prefix_below(location)), covered], _MAX_CONTAINED
    )
    return list(connection.execute(query).scalars())


def _build_views(
    connection: Connection, locations: Sequence[str], scopes: Scopes, *, conflicting: bool = False
) -> list[Dataset]:
    """Return the datasets at some canonical locations, in their order. Undeclared locations are left out. Those of several stores at
    one location follow each other, in the order of the first sources that declare them.

    With ``conflicting``, datasets without duplicates or disagreements are left out too.
    """
    stores = read_stores(connection)
    declared = {
        (location, store): tables
        for location, found in list_declarations_at(connection, locations, scopes).items()
        for store, tables in _group_by_store(stores, found).items()
        # Filter before the other queries, because few datasets have a conflict.
        if not conflicting or _has_conflict(tables)
    }
    declarations = [(table.source, str(table.canonical)) for tables in declared.values() for table in tables]
    verified = list_verifications(connection, declarations)
    parents = {location: _list_near_parents(location) for location, _ in declared}
    above = list_declarations_at(connection, sorted({parent for each in parents.values() for parent in each}), scopes)
    known = {(parent, store) for parent, tables in above.items() for store in _group_by_store(stores, tables)}
    order = {location: number for number, location in enumerate(locations)}
    return [
        _build_view(location, tables, verified, [parent for parent in parents[location] if (parent, store) in known], scopes)
        for (location, store), tables in sorted(declared.items(), key=lambda item: order[item[0][0]])
    ]


def _list_near_parents(location: str) -> list[str]:
    """Return the nearest directories above a location. A page of the longest locations would have millions of bytes of them."""
    return parent_locations(location, _MAX_PARENTS) if len(location) <= _MAX_LENGTH_WITH_PARENTS else []


def _group_by_store(stores: Mapping[str, str], tables: Sequence[TableRecord]) -> dict[str, list[TableRecord]]:
    grouped: dict[str, list[TableRecord]] = {}
    for table in tables:
        grouped.setdefault(value_at(stores, table.source, str(table.canonical)), []).append(table)
    return grouped


def _has_conflict(tables: Sequence[TableRecord]) -> bool:
    if len({table.source for table in tables}) < len(tables):
        return True
    return len(tables) > 1 and bool(find_disagreements(tables))


def _build_view(
    location: str,
    tables: Sequence[TableRecord],
    verified: Mapping[SourceLocation, Verification],
    inside: list[str],
    scopes: Scopes,
) -> Dataset:
    ids = [path_key((table.source, *table.path)) for table in tables]
    sources = [table.source for table in tables]
    # A dataset may have been inspected under each of its aliases, and with the options of each source.
    states = [verified[one] for one in {(table.source, str(table.canonical)) for table in tables} if one in verified]
    newest = max(states, key=lambda state: rank_state(state.state, state.checked_at), default=None)
    return Dataset(
        location=location,
        state=newest.state if newest else UNVERIFIED,
        declarations=[
            Declaration(name, table.kind.value, str(table.location)) for name, table in zip(ids, tables, strict=True)
        ],
        disagreements=find_disagreements(tables),
        duplicates=[name for name, source in zip(ids, sources, strict=True) if sources.count(source) > 1],
        inside=inside,
        holds=[],
        verified=_build_verification(newest, scopes) if newest else None,
    )


def _build_verification(stored: Verification, scopes: Scopes) -> DatasetVerification:
    return DatasetVerification(
        message=stored.message, version=stored.version, rows=stored.rows, size=stored.size, fragments=stored.fragments,
        indices=stored.indices, format=stored.format, fingerprint=stored.fingerprint, changed_at=stored.changed_at,
        checked_at=stored.checked_at, checked_through=visible_verifying_source(stored, scopes),
        schema=json.loads(stored.schema) if stored.schema else None, since=stored.since,
    )  # fmt: skip
