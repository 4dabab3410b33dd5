"""The graph of declarations around one table: origins, mirrors and copies, and the other declarations of the same location."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection, and_, or_, select

from federator.model import Path, TableRecord, parse_path_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import Index, records, verifications, visibility
from federator.store import tables as t
from federator.store.verifications import UNVERIFIED
from federator.views import freshness, tree
from federator.views.freshness import Freshness
from federator.views.tree import MirrorLink

#: the most tables of a graph
MAX_TABLES = 60
# The most ledger entries that are read for one step of the walk.
_MAX_LINKS = 4 * MAX_TABLES


@dataclass(frozen=True, slots=True)
class GraphTable:
    """A table of the graph."""

    id: Annotated[str, Field(examples=["aws$sales$orders"])]
    source: str
    level: Annotated[int, Field(description="number of mirrors between the table and its first origin")]
    is_declared: Annotated[bool, Field(description="false: the last crawl of its catalog did not find it")]
    location: str | None
    state: Annotated[
        str | None, Field(examples=["valid"], description="verification state of the location; null: no location is known")
    ]


@dataclass(frozen=True, slots=True)
class DeclarationGraph:
    """A table, its origins and copies over all mirrors, and the other declarations of its location. Copies of copies are included."""

    id: Annotated[str, Field(examples=["aws$sales$orders"])]
    tables: Annotated[list[GraphTable], Field(description="by level, then by object id")]
    mirrored: Annotated[list[MirrorLink], Field(description="declarations that mirrors made, from origin to target")]
    is_complete: Annotated[bool, Field(description=f"false: tables beyond the first {MAX_TABLES} are left out")]
    freshness: Annotated[list[Freshness], Field(description="freshness of every source that the response is based on")]


def build_graph(index: Index, node: Path, *, scopes: Scopes = EVERYTHING) -> DeclarationGraph:
    """Return the graph around the table ``source$path``, as far as the scopes cover it.

    A ledger entry is part of it if the scopes cover its origin and its target. Raise as ``tree.get_table`` does.
    """
    with index.read() as connection:
        known = freshness.read_freshness(connection, scopes)
        start = tree.read_table(connection, node, known, scopes=scopes)
        walk = _Walk(connection, scopes)
        walk.run([start.id, *start.also_declared])
        levels = _count_levels(walk.tables, walk.links.values())
        tables = [_describe(connection, table, levels[table], known) for table in walk.tables]
    tables.sort(key=lambda table: (table.level, table.id))
    sources = {table.source for table in tables}
    return DeclarationGraph(
        id=start.id, tables=tables, mirrored=[walk.links[key] for key in sorted(walk.links)], is_complete=not walk.left_out,
        freshness=[fresh for name, fresh in known.items() if name in sources],
    )  # fmt: skip


@dataclass
class _Walk:
    """Follows ledger entries from table to table, in both directions."""

    connection: Connection
    scopes: Scopes
    tables: list[str] = field(default_factory=list)
    links: dict[tuple[str, str, str], MirrorLink] = field(default_factory=dict)
    left_out: bool = False

    def run(self, start: Iterable[str]) -> None:
        frontier = self._add(start)
        while frontier:
            links = _list_links(self.connection, frontier, self.scopes)
            self.left_out |= len(links) > _MAX_LINKS
            # Sorted, so that the same tables are left out each time.
            frontier = self._add(sorted({end for link in links for end in (link.origin, link.target)}))
            shown = set(self.tables)
            self.links |= {
                (link.origin, link.mirror, link.target): link for link in links if {link.origin, link.target} <= shown
            }

    def _add(self, ids: Iterable[str]) -> list[str]:
        new = [table_id for table_id in ids if table_id not in self.tables]
        free = MAX_TABLES - len(self.tables)
        self.left_out |= len(new) > free
        self.tables += new[:free]
        return new[:free]


def _list_links(connection: Connection, ids: Iterable[str], scopes: Scopes) -> list[MirrorLink]:
    e = t.ledger.c
    ends = [(path[0], path_key(path[1:])) for path in map(parse_path_key, ids)]
    is_an_end = or_(
        *(and_(e.origin_source == source, e.origin_path == path) for source, path in ends),
        *(and_(e.target_source == source, e.target_path == path) for source, path in ends),
    )
    query = select(t.ledger).where(
        is_an_end, e.is_table == 1, visibility.is_covered(connection, scopes, e.origin_source, e.origin_path),
        visibility.is_covered(connection, scopes, e.target_source, e.target_path),
    ).order_by(e.origin_source, e.origin_path, e.mirror, e.target_path).limit(_MAX_LINKS + 1)  # fmt: skip
    return [MirrorLink.from_row(row) for row in connection.execute(query).mappings()]


def _count_levels(ids: Iterable[str], links: Iterable[MirrorLink]) -> dict[str, int]:
    """Return the level of each table: one more than the highest level of its origins. A ring of mirrors is followed once."""
    origins = defaultdict(list)
    for link in links:
        origins[link.target].append(link.origin)

    levels: dict[str, int] = {}

    def level(table: str) -> int:
        if table not in levels:
            # Ends the recursion if the table is its own origin over several mirrors.
            levels[table] = 0
            levels[table] = max((level(origin) + 1 for origin in origins[table]), default=0)
        return levels[table]

    return {table_id: level(table_id) for table_id in ids}


def _describe(connection: Connection, table: str, level: int, known: Mapping[str, Freshness]) -> GraphTable:
    source, *path = parse_path_key(table)
    fresh = known.get(source)
    current = (
        records.find_record(connection, source, tuple(path), is_table=True, revision=fresh.revision)
        if fresh is not None
        else None
    )
    record = current.record if current is not None else None
    location = record.location if isinstance(record, TableRecord) else None
    state = None
    if current is not None and current.canonical:
        verification = verifications.find_verification(connection, source, current.canonical)
        state = verification.state if verification is not None else UNVERIFIED
    return GraphTable(table, source, level, current is not None, location, state)
