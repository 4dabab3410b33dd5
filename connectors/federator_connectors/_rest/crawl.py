"""The crawl of a REST server.

Planning walks the namespaces. The shards list and describe their tables. The protocol lists names only. Each table and each
namespace therefore needs a request in addition to the listings; the number of concurrent requests is bounded. For an empty listing
of tables the namespace is read again, because a server may list a missing namespace as empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from federator.connector import Catalog, CatalogError, NamespaceNotFound, Shard
from federator.connector.crawl import CoverageBuilder, distribute, walk_namespaces
from federator.connector.fan_out import FanOut
from federator.model import ROOT, Coverage, Path, Record
from federator_connectors._rest.protocol import RestProtocol

_NAMESPACES_PER_SHARD = 20


def plan_shards(protocol: RestProtocol, fan_out: FanOut, depth: int | None) -> list[Shard]:
    """Return shards with all namespaces. Their payload is the children of each, or the error of their listing.

    ``depth`` is the number of namespace levels above each table; None: any number.

    Raise CatalogError if the root cannot be listed. It does no harm if the server lists a missing namespace as empty: ``read_shard``
    checks whether the namespace exists.
    """

    def list_children(path: Path) -> list[str]:
        return protocol.list_namespaces(path) if depth is None or len(path) < depth else []

    root = protocol.list_namespaces(ROOT)
    listings = {ROOT: root, **walk_namespaces(root, list_children, fan_out)}
    groups = distribute(list(listings), math.ceil(len(listings) / _NAMESPACES_PER_SHARD))
    return [Shard(group, {path: listings[path] for path in group}) for group in groups]


def read_shard(catalog: Catalog, shard: Shard, fan_out: FanOut, depth: int | None) -> Iterator[Record | Coverage]:
    """Read one shard, see ``Catalog.read_shard``. ``depth`` is that of ``plan_shards``."""

    def list_tables(namespace: Path) -> list[str]:
        listing = shard.payload[namespace]
        if isinstance(listing, NamespaceNotFound):
            return []
        if depth is None or len(namespace) == depth:
            return catalog.list_tables(namespace)
        if namespace != ROOT and (isinstance(listing, CatalogError) or not listing):
            # An empty listing counts only if the namespace exists after it.
            catalog.describe_namespace(namespace)
        return []

    # The next namespace is listed while the tables of this one are described: a slow server has several requests at any time.
    for namespace, tables in fan_out.map_one_ahead(list_tables, shard.namespaces):
        coverage = CoverageBuilder(catalog.source, namespace)
        children = _read_children(catalog, namespace, shard.payload[namespace], tables, coverage, fan_out)
        yield from coverage.read(children)


def _read_children(
    catalog: Catalog, namespace: Path, listing: list[str] | CatalogError, tables: list[str] | CatalogError,
    coverage: CoverageBuilder, fan_out: FanOut,
) -> Iterator[Record]:  # fmt: skip
    """Yield the records of a namespace's children: those of ``listing``, its child namespaces, and of ``tables``.

    Raise the error of a listing that failed, which makes the coverage incomplete.
    """
    if isinstance(listing, NamespaceNotFound):
        raise listing
    children = [] if isinstance(listing, CatalogError) else [(*namespace, name) for name in sorted(listing)]
    yield from coverage.describe_namespaces(fan_out.map_with_errors(catalog.describe_namespace, children))
    # The tables of a namespace may be listed even if the listing of its child namespaces failed.
    if isinstance(tables, CatalogError):
        raise tables
    for path, table in fan_out.map_with_errors(catalog.describe_table, [(*namespace, name) for name in sorted(tables)]):
        # Also for "not found": the listing contains the table, and only the next listing can prove it absent.
        yield coverage.undescribed_table(path, table) if isinstance(table, CatalogError) else table
    if isinstance(listing, CatalogError):
        raise listing
