"""The crawl of a Glue catalog.

Planning lists all catalogs and databases. The shards list the tables of the databases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from federator.connector import CatalogError, NamespaceNotFound, Shard, Unauthenticated
from federator.connector.crawl import CoverageBuilder, consecutive_shards
from federator.model import ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord, path_key
from federator_connectors._glue import records
from federator_connectors._glue.catalog_tree import CatalogNode, CatalogTree, Scope
from federator_connectors._glue.client import PAGE_SIZE, Clients, iter_items
from federator_connectors._glue.errors import translate_aws_errors

_DATABASES_PER_SHARD = 20


@dataclass(frozen=True)
class NamespaceRows:
    """The payload of the first shard: all catalogs and databases, and the coverage of their parents."""

    rows: tuple[Record | Coverage, ...]


def plan_shards(source: str, tree: CatalogTree, clients: Clients) -> list[Shard]:
    """Return one shard with all catalogs, then shards with databases of one catalog each. Their payload is the catalog's ``Scope``.

    Raise CatalogError if the root catalog cannot be determined, or if ``catalog_id`` does not exist. Any other catalog that fails
    becomes a failed Coverage.
    """
    root = records.catalog_record(source, tree.root.path, _describe_root(tree))
    coverage = CoverageBuilder(source, ROOT)
    children = _list_child_catalogs(source, tree, tree.root, coverage)
    rows: list[Record | Coverage] = [*coverage.read([root, *(record for _, record in children)])]
    waiting = [tree.root, *(child for child, _ in children)]
    catalogs: list[Path] = [ROOT]
    table_shards: list[Shard] = []
    while waiting:
        node = waiting.pop(0)
        catalogs.append(node.path)
        coverage = CoverageBuilder(source, node.path)
        databases = list(coverage.collect(_iter_databases(source, node, clients)))
        table_shards += consecutive_shards([database.path for database in databases], _DATABASES_PER_SHARD, node.scope)
        # The children of the root catalog stand beside it, and are in the listing of ROOT.
        children = [] if node == tree.root else _list_child_catalogs(source, tree, node, coverage)
        waiting += [child for child, _ in children]
        rows += [*databases, *coverage.read(record for _, record in children)]
    return [Shard(tuple(catalogs), NamespaceRows(tuple(rows))), *table_shards]


def read_shard(source: str, shard: Shard, clients: Clients) -> Iterator[Record | Coverage]:
    """Read one shard, see ``Catalog.read_shard``."""
    if isinstance(shard.payload, NamespaceRows):
        yield from shard.payload.rows
        return
    for database in shard.namespaces:
        yield from CoverageBuilder(source, database).read(_iter_tables(source, database, shard.payload, clients))


def _iter_tables(source: str, database: Path, scope: Scope, clients: Clients) -> Iterator[TableRecord]:
    with translate_aws_errors(f"{source}: listing tables in {path_key(database)}", missing=NamespaceNotFound):
        for table in iter_items(
            clients.reads.get_tables, "TableList", DatabaseName=database[-1], MaxResults=PAGE_SIZE, **scope
        ):
            kind = records.table_kind(table)
            if kind is not None:
                yield records.table_record(source, database, table, kind)


def _iter_databases(source: str, node: CatalogNode, clients: Clients) -> Iterator[NamespaceRecord]:
    with translate_aws_errors(f"{source}: listing databases in {path_key(node.path)}", missing=NamespaceNotFound):
        for database in iter_items(clients.reads.get_databases, "DatabaseList", MaxResults=PAGE_SIZE, **node.scope):
            yield records.database_record(source, (*node.path, database["Name"].lower()), database)


def _describe_root(tree: CatalogTree) -> Mapping[str, Any]:
    try:
        return tree.describe(tree.root)
    except Unauthenticated:
        # IAM policies that are older than catalogs allow databases and tables only. These are crawled.
        return {"CatalogId": tree.root.catalog_id}


def _list_child_catalogs(
    source: str, tree: CatalogTree, node: CatalogNode, coverage: CoverageBuilder
) -> list[tuple[CatalogNode, NamespaceRecord]]:
    """Return the child catalogs of a catalog with their records. A failure is stored in ``coverage``."""
    try:
        children = tree.children(node)
        # From the listing that was just read.
        natives = tree.describe_children(node, since=-math.inf)
    except CatalogError as error:
        coverage.fail(error)
        return []
    return [(child, records.catalog_record(source, child.path, natives[name])) for name, child in children.items()]
