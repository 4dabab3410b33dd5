"""The merged view: one tree over all sources, in which what several catalogs call the same is one entry.

An entry's path is the source's own, less the leading levels that only name a catalog (docs/adr/0008). Each entry tells its homes: every
declaration that stands behind it, and of these only what the scopes cover, so that a conflict with what one may not see is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select, union_all

from federator.connector import NamespaceNotFound
from federator.index import bytewise, datasets, looks, records, visible
from federator.index import tables as t
from federator.index.bulk import chunks
from federator.index.engine import Index
from federator.index.moments import Moment, iso, reading
from federator.model import Path, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes

# Branches of one query; SQLite takes 500, and each of ours is two of them.
_BRANCHES = 50

r = t.record.c


@dataclass(frozen=True, slots=True)
class Home:
    """Where an entry of the merged view is: its path from the tree's root, and a table's place and state."""

    id: str
    source: str
    kind: str
    location: str | None = None
    verified: str | None = None


@dataclass(frozen=True, slots=True)
class MergedNode:
    """One entry. ``default`` is the home that is meant where one must be chosen: that of the first source in the configured order.

    ``conflict``: its homes are tables at different places.
    """

    id: str
    name: str
    kind: str
    homes: list[Home]
    default: str
    conflict: bool


@dataclass(frozen=True, slots=True)
class MergedPage:
    """Some entries by name, and the cursor of the next page (None: that was all)."""

    nodes: list[MergedNode]
    next: str | None


@dataclass(frozen=True, slots=True)
class _Branch:
    """One namespace of one source whose children belong to the listing; ``tables`` only where its namespaces are left out."""

    source: str
    revision: int
    parent: Path
    tables: bool = False


def children(
    index: Index, skipped: Mapping[str, int], path: Path = (), *, after: str = "", limit: int = 200,
    at: Moment | None = None, scopes: Scopes = EVERYTHING,
) -> MergedPage:  # fmt: skip
    """The entries below a path of the merged view, by name; a namespace and a table of one name are two, on one page.

    ``skipped`` are the leading levels to leave out by source, in the order of priority; a source that is not in it leaves out none and
    comes last. ``at`` shows what there was at a moment. Raises NamespaceNotFound where no source has, or had, such a namespace, and
    BeyondHorizon.
    """
    with index.read() if at is None else reading(index, at) as connection:
        known = _known(connection, scopes, at)
        order = {name: number for number, name in enumerate(dict.fromkeys([*skipped, *known]))}
        branches = [
            branch
            for name, revision in known.items()
            for branch in _branches(connection, scopes, name, revision, path, skipped.get(name, 0))
        ]
        if path and not branches:
            when = "no source has" if at is None else f"at {iso(at.at)} no source had"
            raise NamespaceNotFound(f"{when} a namespace {path_key(path)}", hint="federator tree --view merged")
        # A name may be a namespace and a table, in each branch.
        rows = _rows(connection, scopes, branches, after, 2 * (limit + 1))
        names = list(dict.fromkeys(row["name"] for row in rows))
        shown = set(names[:limit])
        wanted = [row for row in rows if row["name"] in shown]
        canonicals = [row["canonical"] for row in wanted if row["canonical"]]
        verified = _verified(connection, canonicals, at)
        places = _places(connection, canonicals)
    groups = groupby(wanted, key=lambda row: (row["name"], row["is_table"]))
    nodes = [_node(path, list(group), order, verified, places) for _, group in groups]
    return MergedPage(nodes, names[limit - 1] if len(names) > limit else None)


def _known(connection: Connection, scopes: Scopes, at: Moment | None) -> dict[str, int]:
    """The sources of which a scope shows something, by name, each with the revision to look at."""
    if at is not None:
        return {name: number for name, number in sorted(at.revisions.items()) if number and scopes.shows((name,))}
    query = select(t.source.c.name, t.source.c.revision).where(visible.sources(scopes, t.source.c.name))
    return dict(connection.execute(query.order_by(t.source.c.name)).tuples().all())


def _verified(connection: Connection, canonicals: list[str], at: Moment | None) -> dict[str, str]:
    """What opening some locations found, or had found."""
    if at is not None:
        return {canonical: look.state for canonical, look in looks.then(connection, canonicals, at.at).items()}
    return {canonical: str(row["state"]) for canonical, row in datasets.states(connection, canonicals).items()}


def _branches(
    connection: Connection, scopes: Scopes, source: str, revision: int, path: Path, skipped: int
) -> Iterator[_Branch]:
    """The namespaces of a source that stand for a path of the merged view."""
    tops: list[Path] = [()]
    for _ in range(skipped):
        if not path:
            # A table above the levels that are left out would be nowhere else.
            yield from (_Branch(source, revision, top, tables=True) for top in tops)
        tops = [
            parse_key(row["path"])
            for top in tops
            for row in _run(connection, _listed(connection, scopes, _Branch(source, revision, top), is_table=0))
        ]
    for top in tops:
        if not path or _exists(connection, scopes, source, revision, (*top, *path)):
            yield _Branch(source, revision, (*top, *path))


def _exists(connection: Connection, scopes: Scopes, source: str, revision: int, path: Path) -> bool:
    shown = visible.shown(connection, scopes, r.source, r.path, r.is_table)
    query = records.at_revision(source, revision, r.is_table == 0, r.path == path_key(path), shown, columns=[r.path])
    return connection.execute(query.limit(1)).first() is not None


def _listed(
    connection: Connection, scopes: Scopes, branch: _Branch, *, is_table: int | None = None, after: str = ""
) -> Select[Any]:
    shown = visible.shown(connection, scopes, r.source, r.path, r.is_table)
    conditions = [r.parent == path_key(branch.parent), r.path != "", bytewise.ordered(connection, r.name) > after, shown]
    if is_table is not None:
        conditions.append(r.is_table == is_table)
    columns = [r.source, r.path, r.name, r.is_table, r.kind, r.location, r.canonical]
    return records.at_revision(branch.source, branch.revision, *conditions, columns=columns)


def _rows(connection: Connection, scopes: Scopes, branches: list[_Branch], after: str, limit: int) -> list[RowMapping]:
    """The first rows of every branch, by name: more than enough of each for a page."""
    found: list[RowMapping] = []
    for some in chunks(branches, _BRANCHES):
        parts = []
        for branch in some:
            state = _listed(connection, scopes, branch, is_table=1 if branch.tables else None, after=after).subquery()
            name = bytewise.ordered(connection, state.c.name)
            parts.append(select(select(state).order_by(name, state.c.is_table).limit(limit).subquery()))
        found += connection.execute(union_all(*parts)).mappings()
    return sorted(found, key=lambda row: (row["name"], row["is_table"]))


def _run(connection: Connection, query: Select[Any]) -> list[RowMapping]:
    return list(connection.execute(query).mappings())


def _places(connection: Connection, canonicals: list[str]) -> dict[str, str]:
    """Those of some locations that are others by configuration."""
    found: dict[str, str] = {}
    for some in chunks(canonicals):
        known = t.alias.c.canonical.in_(some)
        found |= dict(connection.execute(select(t.alias.c.canonical, t.alias.c.place).where(known)).tuples().all())
    return found


def _node(
    path: Path, rows: list[RowMapping], order: Mapping[str, int], verified: Mapping[str, str], places: Mapping[str, str]
) -> MergedNode:
    rows = sorted(rows, key=lambda row: (order[row["source"]], row["path"]))
    homes = [_home(row, verified) for row in rows]
    apart = {places.get(row["canonical"], row["canonical"]) for row in rows if row["canonical"]}
    kind = rows[0]["kind"] if rows[0]["is_table"] else "namespace"
    return MergedNode(
        path_key((*path, rows[0]["name"])),
        rows[0]["name"],
        kind,
        homes,
        homes[0].id,
        bool(rows[0]["is_table"]) and len(apart) > 1,
    )


def _home(row: RowMapping, verified: Mapping[str, str]) -> Home:
    key = path_key((row["source"], *parse_key(row["path"])))
    return Home(key, row["source"], row["kind"], row["location"], verified.get(row["canonical"] or ""))
