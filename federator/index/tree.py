"""The one tree over all sources, as the command line and the API show it.

The root's children are the sources; below each come its own levels. A path in text form begins with the source's name:
``lake_hive$sales$orders``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Text, bindparam, select

from federator.connector import NamespaceNotFound, TableNotFound
from federator.index import coverage, datasets, freshness, records, visible
from federator.index import tables as t
from federator.index.engine import Index
from federator.index.freshness import Freshness, state_of
from federator.index.prepared import built_once
from federator.model import Coverage, Kind, Path, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes


@dataclass(frozen=True, slots=True)
class Node:
    """One entry of the tree. ``id`` is its path in text form from the tree's root; ``coverage`` says what a namespace's listing
    proved (``complete``, ``failed``, ...), ``verified`` what opening a table's location found."""

    id: str
    name: str
    kind: str
    location: str | None = None
    coverage: str | None = None
    verified: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source with its freshness. Times are seconds since the epoch.

    ``carried`` namespaces were not read by the last crawl: they are as the feed of changes had them at ``crawled_at``. Everything was
    read at ``full_at``.
    """

    name: str
    impl: str
    state: str
    message: str | None
    revision: int
    namespaces: int
    tables: int
    failed_namespaces: int
    crawled_at: float | None
    published_at: float | None
    carried: int = 0
    full_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One declaration: its record, from the revision ``since_revision`` that first had it so, and who else declares its location."""

    id: str
    source: str
    path: list[str]
    kind: str
    location: str | None
    properties: dict[str, str]
    doc: str | None
    owner: str | None
    schema: list[dict[str, Any]] | None
    native_id: str | None
    problem: str | None
    digest: str
    since_revision: int
    also_declared: list[str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView(Declared):
    """Everything known about one declaration: also what verification found, and which mirrors it is part of."""

    dataset: dict[str, Any] | None
    mirrored: list[dict[str, Any]]
    crawled_at: float | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some nodes in order, and the cursor of the next page (None: that was all)."""

    nodes: list[Node] = field(default_factory=list)
    next: str | None = None


def sources(index: Index, scopes: Scopes = EVERYTHING) -> list[SourceView]:
    """Every source that was ever crawled and of which a scope covers something, by name; counted is what it covers."""
    with index.read() as connection:
        views = []
        for row in _sources(connection, scopes):
            namespaces, tables = records.counts(connection, row["name"], scopes)
            failed = coverage.unread(connection, row["name"], row["revision"], scopes)
            views.append(
                SourceView(
                    row["name"], row["impl"], *state_of(connection, row, scopes), row["revision"], namespaces, tables, failed,
                    row["crawled_at"], row["published_at"],
                    carried=coverage.carried(connection, row["name"], row["revision"], scopes), full_at=row["full_at"],
                )
            )  # fmt: skip
    return views


def children(
    index: Index, node: Path = (), *, after: str = "", limit: int = 1000, revision: int | None = None,
    scopes: Scopes = EVERYTHING,
) -> Page:  # fmt: skip
    """The entries below a node that a scope covers, and the namespaces on the way to such, by path; ``after`` is the last page's
    cursor. Raises NamespaceNotFound, also for what the scope does not show."""
    with index.read() as connection:
        return read_children(connection, node, after=after, limit=limit, revision=revision, scopes=scopes)


def read_children(
    connection: Connection, node: Path, *, after: str = "", limit: int, revision: int | None = None,
    scopes: Scopes = EVERYTHING,
) -> Page:  # fmt: skip
    """``children``, within a transaction; who names a ``revision`` has looked the source up already."""
    if not node:
        return _roots(connection, after, limit, scopes)
    source, path = node[0], node[1:]
    at = freshness.among(freshness.read(connection, scopes), source).revision if revision is None else revision
    # What is not shown is not even looked up.
    rows = []
    if scopes.shows(node):
        rows = records.children(connection, source, path, after=after, limit=limit + 2, revision=at, scopes=scopes)
    # What has children is there.
    if (
        not rows
        and path
        and (not scopes.shows(node) or records.get(connection, source, path, is_table=False, revision=at) is None)
    ):
        raise NamespaceNotFound(f"there is no namespace {path_key(node)}", hint="federator tree shows what there is")
    proven = coverage.read(connection, source, at, only=[row["path"] for row in rows if not row["is_table"]])
    # A namespace and a table may have one name; a cursor names the path only, so a page does not end between the two.
    end = limit + 1 if len(rows) > limit and rows[limit]["path"] == rows[limit - 1]["path"] else limit
    nodes = [_node(source, row, proven, scopes) for row in rows[:end]]
    return Page(nodes, rows[end - 1]["path"] if len(rows) > end else None)


def table(index: Index, node: Path, *, scopes: Scopes = EVERYTHING) -> TableView:
    """One table. Raises TableNotFound that says what is near, also for what a scope does not cover, and NamespaceNotFound where no
    source of that name is known."""
    with index.read() as connection:
        return read_table(connection, node, freshness.read(connection, scopes), scopes=scopes)


def read_table(
    connection: Connection, node: Path, known: Mapping[str, Freshness], *, scopes: Scopes = EVERYTHING
) -> TableView:  # fmt: skip
    """``table``, within a transaction that read what is ``known`` of the sources."""
    source = freshness.among(known, node[0]) if node else None
    if source is None or len(node) < 2:
        raise TableNotFound(f"{path_key(node)!r} names no table", hint="source$namespace$table, as federator tree shows it")
    path = node[1:]
    # What is not covered is not even looked up.
    covered = scopes.covers(node)
    row = records.get(connection, node[0], path, is_table=True, revision=source.revision) if covered else None
    if row is None:
        raise TableNotFound(f"there is no table {path_key(node)}", hint=f"federator search {path[-1]}")
    found = datasets.state(connection, row["canonical"]) if row["canonical"] else None
    others = records.declarations(connection, row["canonical"], sources=list(known), scopes=scopes) if row["canonical"] else []
    mirrored = _mirrored(connection, node[0], row["path"], scopes)
    return TableView(
        **declared(node, row, others), dataset=_dataset(found, scopes), mirrored=mirrored, crawled_at=source.crawled_at
    )


def declared(node: Path, row: RowMapping, others: Sequence[RowMapping]) -> dict[str, Any]:
    """The fields of ``Declared``, from a table's row and those of all declarations of its location."""
    ids = [path_key((other["source"], *parse_key(other["path"]))) for other in others]
    return {
        "id": path_key(node), "source": node[0], "path": list(node[1:]), "kind": row["kind"], "location": row["location"],
        "properties": json.loads(row["properties"]), "doc": row["doc"], "owner": row["owner"],
        "schema": json.loads(row["schema"]) if row["schema"] else None, "native_id": row["native_id"], "problem": row["problem"],
        "digest": row["digest"], "since_revision": row["valid_from"],
        "also_declared": [other for other in ids if other != path_key(node)],
    }  # fmt: skip


def _roots(connection: Connection, after: str, limit: int, scopes: Scopes) -> Page:
    rows = _sources(connection, scopes, after=after, limit=limit + 1)
    states = [state_of(connection, row, scopes) for row in rows[:limit]]
    nodes = [
        Node(row["name"], row["name"], "source", coverage=state, message=message)
        for row, (state, message) in zip(rows, states, strict=False)
    ]
    return Page(nodes, nodes[-1].name if len(rows) > limit else None)


def _sources(connection: Connection, scopes: Scopes, *, after: str = "", limit: int | None = None) -> Sequence[RowMapping]:
    s = t.source.c
    query = select(t.source).where(s.name > after, visible.sources(scopes, s.name)).order_by(s.name).limit(limit)
    return connection.execute(query).mappings().all()


def _node(source: str, row: RowMapping, proven: dict[str, Coverage], scopes: Scopes) -> Node:
    path = (source, *parse_key(row["path"]))
    kind = Kind(row["kind"]).value
    if not scopes.covers(path):
        return Node(path_key(path), row["name"], kind)
    evidence = proven.get(row["path"]) if not row["is_table"] else None
    state = evidence.presence if evidence and not evidence.presence.complete else evidence.detail if evidence else None
    return Node(
        path_key(path), row["name"], kind, row["location"], state.state.value if state else None, row["verified"],
        row["problem"] or (state.reason or None if state else None),
    )  # fmt: skip


def _dataset(row: RowMapping | None, scopes: Scopes) -> dict[str, Any] | None:
    if row is None:
        return None
    names = ("canonical", "state", "message", "version", "rows", "fragments", "checked_at")
    through = datasets.through(row, scopes)
    return {
        **{name: row[name] for name in names},
        "checked_through": through,
        "schema": json.loads(row["schema"]) if row["schema"] else None,
    }


def _mirrored(connection: Connection, source: str, path: str, scopes: Scopes) -> list[dict[str, Any]]:
    rows = connection.execute(_entries_of(connection, scopes), {"source": source, "path": path}).mappings()
    return [
        {
            "mirror": row["mirror"],
            "origin": path_key((row["origin_source"], *parse_key(row["origin_path"]))),
            "target": path_key((row["target_source"], *parse_key(row["target_path"]))),
            "run_id": row["run_id"],
            "updated_at": row["updated_at"],
        }
        for row in rows
    ]


@built_once
def _entries_of(connection: Connection, scopes: Scopes) -> Select[Any]:
    """The ledger's entries for a table, where the table at the other end is inside the scope too."""
    e, source, path = t.ledger.c, bindparam("source", type_=Text), bindparam("path", type_=Text)
    both = (
        visible.inside(connection, scopes, e.origin_source, e.origin_path),
        visible.inside(connection, scopes, e.target_source, e.target_path),
    )
    mine = ((e.origin_source == source) & (e.origin_path == path)) | ((e.target_source == source) & (e.target_path == path))
    return select(t.ledger).where(mine, e.is_table == 1, *both).order_by(e.mirror, e.target_path)
