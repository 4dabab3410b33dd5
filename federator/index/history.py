"""The tree, a table and the Datasets as they were known at a moment.

What is not kept over time is left out rather than shown as of today: freshness, the ledger's entries, and of what opening a place found
all but its state and schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, exists, select, union, union_all

from federator.connector import NamespaceNotFound, TableNotFound
from federator.index import coverage, looks, records, visible
from federator.index import tables as t
from federator.index.agreement import Disagreement, disagreements
from federator.index.bulk import VALUES, chunks
from federator.index.engine import Index
from federator.index.looks import Look
from federator.index.moments import Moment, iso, reading
from federator.index.tree import Declared, Node, Page, declared
from federator.model import Aliases, Coverage, Kind, Path, canonical_location, parse_key, path_key
from federator.model.rows import table_record
from federator.model.scopes import EVERYTHING, Scopes

r = t.record.c


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTable(Declared):
    """One declaration as it was at ``at``. Times are seconds since the epoch. ``dataset`` is how its location had been found; None
    where it was never opened, or that is not kept so far back."""

    at: float
    revision: int
    dataset: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PastDeclaration:
    """One catalog's word on a place: the path from the tree's root, and the location as it was written there."""

    id: str
    kind: str
    location: str


@dataclass(frozen=True, slots=True)
class PastDataset:
    """A place with everyone who declared it, as far as a scope sees them, and how it had been found: ``state`` is ``unverified`` where
    it was never opened, None where that is not kept so far back; ``since`` is in seconds since the epoch."""

    location: str
    state: str | None
    message: str | None
    since: float | None
    schema: list[dict[str, Any]] | None
    declarations: list[PastDeclaration]
    disagreements: list[Disagreement]
    duplicates: list[str]


@dataclass(frozen=True, slots=True)
class PastDatasets:
    """Some Datasets by location, and the cursor of the next page (None: that was all)."""

    datasets: list[PastDataset]
    next: str | None


def children(index: Index, node: Path, at: Moment, *, after: str = "", limit: int = 1000, scopes: Scopes = EVERYTHING) -> Page:
    """The entries below a node, by path; ``after`` is the last page's cursor. Raises NamespaceNotFound and BeyondHorizon."""
    with reading(index, at) as connection:
        if not node:
            return _roots(at, after, limit, scopes)
        source, path = node[0], node[1:]
        revision = at.revision(source)
        unknown = not revision or not scopes.shows(node)
        if unknown or (path and records.get(connection, source, path, is_table=False, revision=revision) is None):
            raise NamespaceNotFound(f"there was no namespace {path_key(node)} at {iso(at.at)}")
        seen = visible.shown(connection, scopes, r.source, r.path, r.is_table)
        wanted = (r.parent == path_key(path), r.path > after, r.path != "", seen)
        state = records.at_revision(source, revision, *wanted).subquery()
        query = select(state).order_by(state.c.path, state.c.is_table).limit(limit + 2)
        rows = list(connection.execute(query).mappings())
        proven = coverage.read(connection, source, revision, only=[row["path"] for row in rows if not row["is_table"]])
        found = looks.then(connection, {row["canonical"] for row in rows if row["canonical"]}, at.at)
    # A namespace and a table may have one name; a cursor names the path only, so a page does not end between the two.
    end = limit + 1 if len(rows) > limit and rows[limit]["path"] == rows[limit - 1]["path"] else limit
    nodes = [_node(source, row, proven, found, scopes) for row in rows[:end]]
    return Page(nodes, rows[end - 1]["path"] if len(rows) > end else None)


def table(index: Index, node: Path, at: Moment, *, scopes: Scopes = EVERYTHING) -> PastTable:
    """One table as it was. Raises TableNotFound and BeyondHorizon."""
    source, path = (node[0], node[1:]) if node else ("", ())
    with reading(index, at) as connection:
        seen = path and scopes.covers(node)
        row = records.get(connection, source, path, is_table=True, revision=at.revision(source)) if seen else None
        if row is None:
            raise TableNotFound(f"there was no table {path_key(node)} at {iso(at.at)}")
        others = _declared(connection, at, [row["canonical"]], scopes) if row["canonical"] else []
        found = looks.then(connection, [row["canonical"]], at.at).get(row["canonical"]) if row["canonical"] else None
    return PastTable(
        **declared(node, row, others), at=at.at, revision=at.revision(source), dataset=found.to_json() if found else None
    )


def datasets(
    index: Index, at: Moment, *, state: str | None = None, declared_in: str | None = None, conflicts: bool = False, after: str = "",
    limit: int = 200, scopes: Scopes = EVERYTHING,
) -> PastDatasets:  # fmt: skip
    """Datasets of then by location: those found in a state, that a source declared, or with duplicates or contradictions.

    Raises BeyondHorizon.
    """
    chosen = conflicts or state is not None
    found: list[PastDataset] = []
    with reading(index, at) as connection:
        while len(found) <= limit:
            places = _places(connection, at, declared_in, after, VALUES if chosen else limit + 1, scopes)
            if not places:
                break
            views = _views(connection, at, places, scopes)
            views = [view for view in views if state in (None, view.state)]
            found += [view for view in views if not conflicts or view.disagreements or view.duplicates]
            after = places[-1]
    return PastDatasets(found[:limit], found[limit - 1].location if len(found) > limit else None)


def dataset(index: Index, location: str, aliases: Aliases, at: Moment, *, scopes: Scopes = EVERYTHING) -> PastDataset:
    """The Dataset that was at a location, in any spelling. Raises TableNotFound where nothing declared it, and BeyondHorizon."""
    place = canonical_location(location, aliases)
    with reading(index, at) as connection:
        found = _views(connection, at, [place], scopes)
    if not found:
        raise TableNotFound(f"no table was declared at {place} at {iso(at.at)}")
    return found[0]


def walk(index: Index, node: Path, at: Moment, *, limit: int = 1000, scopes: Scopes = EVERYTHING) -> Iterator[Node]:
    """Every entry below a node, page by page."""
    after: str | None = ""
    while after is not None:
        page = children(index, node, at, after=after, limit=limit, scopes=scopes)
        yield from page.nodes
        after = page.next


def _roots(at: Moment, after: str, limit: int, scopes: Scopes) -> Page:
    names = [name for name in sorted(at.revisions) if name > after and scopes.shows((name,))]
    return Page([Node(name, name, "source") for name in names[:limit]], names[limit - 1] if len(names) > limit else None)


def _node(
    source: str, row: RowMapping, proven: dict[str, Coverage], found: Mapping[str, Look], scopes: Scopes
) -> Node:  # fmt: skip
    path = (source, *parse_key(row["path"]))
    if not scopes.covers(path):
        return Node(path_key(path), row["name"], Kind(row["kind"]).value)
    evidence = proven.get(row["path"]) if not row["is_table"] else None
    state = evidence.presence if evidence and not evidence.presence.complete else evidence.detail if evidence else None
    look = found.get(row["canonical"])
    return Node(
        path_key(path), row["name"], Kind(row["kind"]).value, row["location"], state.state.value if state else None,
        look.state if look else None, row["problem"] or (state.reason or None if state else None),
    )  # fmt: skip


def _then(at: Moment, source: str, columns: Sequence[Any], *conditions: ColumnElement[bool]) -> list[Select[Any]]:
    """A source's tables at a moment: those that still stand, and those that were closed since, as two selects."""
    revision = at.revision(source)
    base = select(*columns).where(and_(r.source == source, r.valid_from + 0 <= revision, r.is_table == 1, *conditions))
    return [base.where(r.valid_to.is_(None)), base.where(r.valid_to > revision)]


def _places(connection: Connection, at: Moment, declared_in: str | None, after: str, limit: int, scopes: Scopes) -> list[str]:
    """Declared places by their text; each branch is a walk along an index or over what was closed since."""
    own, alias = r.canonical, t.alias.c.place
    seen = visible.inside(connection, scopes, r.source, r.path)
    branches: list[Select[Any]] = []
    for source in sorted(at.revisions):
        if declared_in in (None, source) and scopes.shows((source,)):
            branches += _then(at, source, [own.label("place")], seen, own > after, ~exists().where(t.alias.c.canonical == own))
            branches += _then(at, source, [alias.label("place")], seen, alias > after, t.alias.c.canonical == own)
    if not branches:
        return []
    limited = [query.distinct().order_by("place").limit(limit).subquery() for query in branches]
    found = union(*(select(branch.c.place) for branch in limited)).subquery()
    return list(connection.execute(select(found.c.place).order_by(found.c.place).limit(limit)).scalars())


def _declared(connection: Connection, at: Moment, canonicals: Sequence[str], scopes: Scopes) -> list[RowMapping]:
    """The declarations at some locations that a scope covers, by source and path."""
    seen = visible.inside(connection, scopes, r.source, r.path)
    found: list[RowMapping] = []
    for part in chunks(canonicals):
        some = r.canonical.in_(part)
        queries = [query for source in sorted(at.revisions) for query in _then(at, source, [t.record], some, seen)]
        if queries:
            found += connection.execute(union_all(*queries)).mappings()
    return sorted(found, key=lambda row: (row["source"], row["path"]))


def _views(connection: Connection, at: Moment, places: Sequence[str], scopes: Scopes) -> list[PastDataset]:
    a = t.alias.c
    aliased = set(connection.execute(select(a.canonical).where(a.canonical.in_(places))).scalars())
    others = connection.execute(select(a.canonical, a.place).where(a.place.in_(places)))
    names = {place: place for place in places if place not in aliased} | {row.canonical: row.place for row in others}
    declared: dict[str, list[RowMapping]] = {}
    for row in _declared(connection, at, list(names), scopes):
        declared.setdefault(names[row["canonical"]], []).append(row)
    found = looks.then(connection, {row["canonical"] for rows in declared.values() for row in rows}, at.at)
    unknown = looks.unknown(connection, at.at)
    return [_view(place, declared[place], found, unknown) for place in places if place in declared]


def _view(place: str, rows: list[RowMapping], found: Mapping[str, Look], unknown: str | None) -> PastDataset:
    tables = [table_record(row["source"], dict(row)) for row in rows]
    ids = [path_key((each.source, *each.path)) for each in tables]
    names = [each.source for each in tables]
    # A place with several names may have been opened by each: what was found last counts.
    seen = [found[name] for name in {row["canonical"] for row in rows} if name in found]
    look = max(seen, key=lambda each: each.since, default=None)
    return PastDataset(
        location=place,
        state=look.state if look else unknown,
        message=look.message if look else None,
        since=look.since if look else None,
        schema=json.loads(look.schema) if look and look.schema else None,
        declarations=[
            PastDeclaration(name, each.kind.value, str(each.location)) for name, each in zip(ids, tables, strict=True)
        ],
        disagreements=disagreements(tables),
        duplicates=[name for name, source in zip(ids, names, strict=True) if names.count(source) > 1],
    )
