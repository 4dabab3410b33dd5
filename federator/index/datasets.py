"""Datasets: one row per canonical location, with all its declarations and what verification found there.

Nothing of a Dataset is stored but its verification: the rest is grouped from the current declarations whenever it is asked for, so
that it is never older than they are. A place that has several names by configuration is found through the table ``alias``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    union,
)

from federator.connector import TableNotFound
from federator.index import looks, records, visible
from federator.index import tables as t
from federator.index.agreement import Disagreement, disagreements
from federator.index.bulk import VALUES, chunks
from federator.index.bytewise import begins
from federator.index.engine import Index
from federator.index.looks import UNVERIFIED
from federator.model import Aliases, canonical_location, path_key, places_above
from federator.model.rows import table_record
from federator.model.scopes import EVERYTHING, Scopes

STATES = (
    "valid", "declared_only", "empty", "missing", "not_lance", "corrupt", "denied", "unreachable", UNVERIFIED,
)  # fmt: skip
_WORST_FIRST = ("unreachable", "denied", "corrupt", "missing", "not_lance", "empty", "declared_only", "valid")
# Tables below one directory that its detail names; a bucket may hold a million.
_BELOW = 100

r, s = t.record.c, t.source.c
_STATE = select(t.dataset).where(t.dataset.c.canonical == bindparam("canonical"))


@dataclass(frozen=True, slots=True)
class Declaration:
    """One catalog's word on a place: the path from the tree's root, and the location as it is written there."""

    id: str
    kind: str
    location: str


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A place with everything known of it.

    ``duplicates`` are declarations that one source has under more than one name; ``inside`` are declared places above this one, nearest
    first; ``holds`` (in the detail only) the first declared places below it. Sizes are bytes, times seconds since the epoch.
    """

    location: str
    state: str
    declarations: list[Declaration]
    disagreements: list[Disagreement]
    duplicates: list[str]
    inside: list[str]
    holds: list[str] = field(default_factory=list)
    verified: dict[str, Any] | None = None

    @property
    def conflicting(self) -> bool:
        return bool(self.disagreements or self.duplicates)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which Datasets: of a state (``unverified``: never opened), declared in a source, with duplicates or contradictions."""

    state: str | None = None
    declared_in: str | None = None
    conflicts: bool = False

    def takes(self, view: DatasetView) -> bool:
        """What the query by index could not tell: the state of a place with several names, and what compares declarations."""
        return self.state in (None, view.state) and (view.conflicting or not self.conflicts)


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """Some Datasets by location, and the cursor of the next page (None: that was all)."""

    datasets: list[DatasetView]
    next: str | None


def page(
    index: Index, wanted: Wanted = Wanted(), *, after: str = "", limit: int = 200, scopes: Scopes = EVERYTHING
) -> DatasetPage:
    """Datasets by location, as the declarations tell that a scope covers; ``after`` is the last page's cursor."""
    found: list[DatasetView] = []
    with index.read() as connection:
        while len(found) <= limit:
            places = _places(connection, wanted, scopes, after=after, limit=VALUES if wanted.conflicts else limit + 1)
            if not places:
                break
            found += [view for view in _views(connection, places, scopes, conflicting=wanted.conflicts) if wanted.takes(view)]
            after = places[-1]
    return DatasetPage(found[:limit], found[limit - 1].location if len(found) > limit else None)


def get(index: Index, location: str, aliases: Aliases, *, scopes: Scopes = EVERYTHING) -> DatasetView:
    """The Dataset at a location in any spelling. Raises TableNotFound where nothing declares it that a scope covers."""
    place = canonical_location(location, aliases)
    with index.read() as connection:
        found = _views(connection, [place], scopes)
        if not found:
            raise TableNotFound(f"no table is declared at {place}", hint="federator datasets lists the places that are")
        return replace(found[0], holds=_below(connection, place, scopes))


def follow(connection: Connection, aliases: Aliases) -> None:
    """Writes down which declared places are others by configuration. Called whenever a crawl has published."""
    found: dict[str, str] = {}
    for prefix in aliases.prefixes:
        inside = or_(r.canonical == prefix, begins(connection, r.canonical, _directory(prefix)))
        query = select(r.canonical).where(inside, r.is_table == 1).distinct()
        found |= {place: canonical_location(place, aliases) for place in connection.execute(query).scalars()}
    connection.execute(delete(t.alias))
    if found:
        connection.execute(insert(t.alias), [{"canonical": name, "place": place} for name, place in found.items()])


def due(connection: Connection, source: str, *, checked_before: float, limit: int) -> list[RowMapping]:
    """Distinct locations that a source declares and that are to be opened: never opened, declared anew since, unreachable the last
    time, or opened before ``checked_before``; in this order, then the worst and the oldest first.

    Rows have ``canonical`` and ``location``.
    """
    at, d = records.published(connection, source), t.dataset.c
    wanted = [r.canonical, r.location, r.valid_from]
    state = records.at_revision(source, at, r.is_table == 1, r.canonical.is_not(None), columns=wanted).subquery()
    anew = t.revision.c.published_at > d.checked_at
    stale = or_(d.checked_at.is_(None), anew, d.state == "unreachable", d.checked_at < checked_before)
    bad = case({name: rank for rank, name in enumerate(_WORST_FIRST)}, value=d.state, else_=0)
    query = (
        select(state.c.canonical, state.c.location)
        .join(t.dataset, d.canonical == state.c.canonical, isouter=True)
        .join(t.revision, and_(t.revision.c.source == source, t.revision.c.number == state.c.valid_from), isouter=True)
        .where(stale)
        .order_by(d.checked_at.is_not(None), case((anew, 0), else_=1), bad, d.checked_at, state.c.canonical)
        .limit(limit)
    )
    distinct = {row["canonical"]: row for row in connection.execute(query).mappings()}
    return list(distinct.values())


def save(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Stores verification results (every column of ``dataset`` but ``since``), and how the places were until now where that differs."""
    for batch in chunks(rows):
        since = looks.turn(connection, batch)
        connection.execute(delete(t.dataset).where(t.dataset.c.canonical.in_(list(since))))
        connection.execute(insert(t.dataset), [{**row, "since": since[row["canonical"]]} for row in batch])


def states(connection: Connection, canonicals: Sequence[str]) -> dict[str, RowMapping]:
    """Verification by canonical location, for those that were ever checked."""
    found: dict[str, RowMapping] = {}
    for part in chunks(canonicals):
        query = select(t.dataset).where(t.dataset.c.canonical.in_(part))
        found.update({row["canonical"]: row for row in connection.execute(query).mappings()})
    return found


def state(connection: Connection, canonical: str) -> RowMapping | None:
    """Verification of one canonical location; None for one that was never checked."""
    return connection.execute(_STATE, {"canonical": canonical}).mappings().first()


def through(row: RowMapping, scopes: Scopes) -> str | None:
    """The source whose settings a place was opened with; None where a scope covers nothing of it."""
    return str(row["checked_through"]) if scopes.shows((row["checked_through"],)) else None


def current(columns: Sequence[Any], *conditions: ColumnElement[bool]) -> list[Select[Any]]:
    """The tables of every source as published: those that stand, and those that a draft is about to close, as two selects."""
    scope = and_(r.source == s.name, r.valid_from + 0 <= s.revision, r.is_table == 1, *conditions)
    base = select(*columns).where(scope)
    return [base.where(r.valid_to.is_(None)), base.where(r.valid_to > s.revision)]


def _places(connection: Connection, wanted: Wanted, scopes: Scopes, *, after: str, limit: int) -> list[str]:
    def conditions(place: ColumnElement[str]) -> list[ColumnElement[bool]]:
        opened = exists().where(t.dataset.c.canonical == r.canonical)
        found = [place > after, visible.inside(connection, scopes, r.source, r.path)]
        if wanted.declared_in is not None:
            found.append(r.source == wanted.declared_in)
        if wanted.state == UNVERIFIED:
            found.append(~opened)
        elif wanted.state is not None:
            found.append(opened.where(t.dataset.c.state == wanted.state))
        return found

    # What is declared once contradicts nobody; but the declarations of one source are not all there are.
    twice = wanted.conflicts and wanted.declared_in is None
    return list(connection.execute(_distinct(conditions, limit, twice=twice)).scalars())


def _distinct(
    conditions: Callable[[ColumnElement[str]], list[ColumnElement[bool]]], limit: int, *, twice: bool = False
) -> Select[Any]:
    """Declared places by their text. Each branch is a walk along an index, so that a page costs what it shows.

    ``twice`` leaves out those that have one declaration under one name; those with several names, or about to change, stay.
    """
    own, alias = r.canonical, t.alias.c.place
    selects = [
        *current([own.label("place")], ~exists().where(t.alias.c.canonical == own), *conditions(own)),
        *current([alias.label("place")], t.alias.c.canonical == own, *conditions(alias)),
    ]
    grouped = [query.distinct() for query in selects]
    if twice:
        grouped[0] = selects[0].group_by(own).having(func.count() > 1)
    branches = [query.order_by("place").limit(limit).subquery() for query in grouped]
    found = union(*(select(branch.c.place) for branch in branches)).subquery()
    return select(found.c.place).order_by(found.c.place).limit(limit)


def _below(connection: Connection, place: str, scopes: Scopes) -> list[str]:
    seen = visible.inside(connection, scopes, r.source, r.path)
    query = _distinct(lambda column: [begins(connection, column, _directory(place)), seen], _BELOW)
    return list(connection.execute(query).scalars())


def _directory(place: str) -> str:
    """What every canonical location below a place begins with."""
    return place if place.endswith("/") else place + "/"


def _views(connection: Connection, places: Sequence[str], scopes: Scopes, *, conflicting: bool = False) -> list[DatasetView]:
    """The Datasets at some places, in their order; what nothing declares is left out, and with ``conflicting`` what all agree on."""
    declared = declared_at(connection, places, scopes)
    if conflicting:
        # Before anything else is asked of them: most places agree.
        declared = {place: rows for place, rows in declared.items() if _conflict(rows)}
    verified = states(connection, [row["canonical"] for rows in declared.values() for row in rows])
    above = {place: places_above(place) for place in declared}
    known = declared_at(connection, sorted({upper for uppers in above.values() for upper in uppers}), scopes)
    return [
        _view(place, declared[place], verified, [upper for upper in above[place] if upper in known], scopes)
        for place in places
        if place in declared
    ]


def _conflict(rows: Sequence[RowMapping]) -> bool:
    if len({row["source"] for row in rows}) < len(rows):
        return True
    return len(rows) > 1 and bool(disagreements([table_record(row["source"], dict(row)) for row in rows]))


def _view(
    place: str, rows: list[RowMapping], verified: Mapping[str, RowMapping], inside: list[str], scopes: Scopes
) -> DatasetView:
    tables = [table_record(row["source"], dict(row)) for row in rows]
    ids = [path_key((table.source, *table.path)) for table in tables]
    sources = [table.source for table in tables]
    # A place with several names may have been opened by each: the last look counts.
    looks = [verified[name] for name in {row["canonical"] for row in rows} if name in verified]
    found = max(looks, key=lambda look: look["checked_at"], default=None)
    return DatasetView(
        location=place,
        state=found["state"] if found else UNVERIFIED,
        declarations=[
            Declaration(name, table.kind.value, str(table.location)) for name, table in zip(ids, tables, strict=True)
        ],
        disagreements=disagreements(tables),
        duplicates=[name for name, source in zip(ids, sources, strict=True) if sources.count(source) > 1],
        inside=inside,
        verified=_verified(found, scopes) if found else None,
    )


def _verified(row: RowMapping, scopes: Scopes) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in ("canonical", "location", "state", "schema")}
    kept["checked_through"] = through(row, scopes)
    return {**kept, "schema": json.loads(row["schema"]) if row["schema"] else None}


def declared_at(connection: Connection, places: Sequence[str], scopes: Scopes = EVERYTHING) -> dict[str, list[RowMapping]]:
    """The declarations of each place that a scope covers, by source and path."""
    found: dict[str, list[RowMapping]] = {}
    seen = visible.inside(connection, scopes, r.source, r.path)
    for part in chunks(places):
        names = _spellings(connection, part)
        for query in current([t.record], r.canonical.in_(list(names)), seen):
            for row in connection.execute(query).mappings():
                found.setdefault(names[row["canonical"]], []).append(row)
    return {place: sorted(rows, key=lambda row: (row["source"], row["path"])) for place, rows in found.items()}


def _spellings(connection: Connection, places: Sequence[str]) -> dict[str, str]:
    """The names that some places have in ``record``, each with its place."""
    a = t.alias.c
    aliased = set(connection.execute(select(a.canonical).where(a.canonical.in_(places))).scalars())
    others = connection.execute(select(a.canonical, a.place).where(a.place.in_(places)))
    return {place: place for place in places if place not in aliased} | {row.canonical: row.place for row in others}
