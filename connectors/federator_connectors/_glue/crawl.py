"""The crawl: catalogs and databases are listed whole while the shards are cut, tables by whole pages inside the shards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federator.connector import CatalogError, NamespaceNotFound, Shard, Unauthenticated
from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Evidence,
    NamespaceRecord,
    Path,
    Record,
    failed,
    fold_digest,
    path_key,
)
from federator_connectors._glue import records
from federator_connectors._glue.client import Clients
from federator_connectors._glue.errors import calling
from federator_connectors._glue.pages import PAGE, pages
from federator_connectors._glue.tree import Node, Scope, Tree

_DATABASES_PER_SHARD = 20


@dataclass(frozen=True)
class Survey:
    """The payload of the first shard: every catalog and database, and the coverage of what holds them."""

    rows: tuple[Record | Coverage, ...]


@dataclass
class _Holding:
    """What one catalog, or the root, was found to hold."""

    namespace: Path
    children: list[NamespaceRecord] = field(default_factory=list)
    presence: Evidence = COMPLETE
    found: bool = True

    def fail(self, error: CatalogError) -> None:
        self.presence = failed(error.code, error.message)
        self.found = self.namespace == ROOT or not isinstance(error, NamespaceNotFound)

    def rows(self, source: str) -> list[Record | Coverage]:
        digest = fold_digest(child.digest for child in self.children)
        coverage = Coverage(source, self.namespace, self.presence, self.presence, len(self.children), digest, self.found)
        return [*self.children, coverage]


def shards(source: str, tree: Tree, clients: Clients) -> list[Shard]:
    """One shard with all namespaces, then the databases in shards of one catalog each, their payload being its scope.

    Raises CatalogError where not even the root can be named, or ``catalog_id`` does not exist; a catalog that fails is a failed
    Coverage.
    """
    rows: list[Record | Coverage] = []
    cut: list[Shard] = []
    root = _Holding(ROOT, [records.catalog_record(source, tree.root.path, _root(tree))])
    waiting = [tree.root, *_inside(source, tree, tree.root, root)]
    rows += root.rows(source)
    seen: list[Path] = [ROOT]
    while waiting:
        node = waiting.pop(0)
        seen.append(node.path)
        holding = _Holding(node.path)
        _databases(source, node, clients, holding)
        paths = [record.path for record in holding.children]
        cut += [Shard(some, node.scope) for some in _chunks(paths)]
        if node != tree.root:
            waiting += _inside(source, tree, node, holding)
        rows += holding.rows(source)
    return [Shard(tuple(seen), Survey(tuple(rows))), *cut]


def read(source: str, shard: Shard, clients: Clients) -> Iterator[Record | Coverage]:
    """See ``Catalog.read``."""
    if isinstance(shard.payload, Survey):
        yield from shard.payload.rows
        return
    for database in shard.namespaces:
        yield from _tables(source, database, shard.payload, clients)


def _tables(source: str, database: Path, scope: Scope, clients: Clients) -> Iterator[Record | Coverage]:
    evidence, found = COMPLETE, True
    digests: list[str] = []
    try:
        with calling(f"{source}: listing tables in {path_key(database)}", missing=NamespaceNotFound):
            for table in pages(clients.reads.get_tables, "TableList", DatabaseName=database[-1], MaxResults=PAGE, **scope):
                kind = records.kind_of(table)
                if kind is not None:
                    record = records.table_record(source, database, table, kind)
                    digests.append(record.digest)
                    yield record
    except CatalogError as error:
        evidence, found = failed(error.code, error.message), not isinstance(error, NamespaceNotFound)
    yield Coverage(source, database, evidence, evidence, len(digests), fold_digest(digests), found)


def _chunks(paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    for start in range(0, len(paths), _DATABASES_PER_SHARD):
        yield tuple(paths[start : start + _DATABASES_PER_SHARD])


def _root(tree: Tree) -> Mapping[str, Any]:
    try:
        return tree.describe(tree.root)
    except Unauthenticated:
        # Policies from before there were catalogs allow databases and tables only; what they allow is crawled.
        return {"CatalogId": tree.root.catalog_id}


def _inside(source: str, tree: Tree, node: Node, holding: _Holding) -> list[Node]:
    """The catalogs inside one, added to what it holds. A failure is its coverage."""
    try:
        children = tree.children(node)
        natives = tree.natives(node, since=-math.inf)
    except CatalogError as error:
        holding.fail(error)
        return []
    holding.children += [records.catalog_record(source, child.path, natives[name]) for name, child in children.items()]
    return list(children.values())


def _databases(source: str, node: Node, clients: Clients, holding: _Holding) -> None:
    try:
        with calling(f"{source}: listing databases in {path_key(node.path)}", missing=NamespaceNotFound):
            for database in pages(clients.reads.get_databases, "DatabaseList", MaxResults=PAGE, **node.scope):
                path = (*node.path, database["Name"].lower())
                holding.children.append(records.database_record(source, path, database))
    except CatalogError as error:
        holding.fail(error)
