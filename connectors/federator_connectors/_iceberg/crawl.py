"""The crawl of a server with Iceberg's namespaces: Polaris, or an Iceberg REST catalog.

Planning lists the tree of namespaces. The shards read the namespaces' properties and tables. The server lists names only, and returns
an error for a missing namespace. The crawl therefore needs one request for each listing of a catalog or namespace, one for each
namespace's properties, and one for each table. A listing proves that its namespace exists. It is repeated only if a listed table is
not found, because the namespace may then have been dropped, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from federator.connector import (
    CatalogError,
    ServiceUnavailable,
    Shard,
    TableNotFound,
    Throttled,
    Unauthenticated,
)
from federator.connector.crawl import CoverageBuilder, distribute, walk_namespaces
from federator.connector.fan_out import FanOut
from federator.model import ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord, skipped_evidence

_NAMESPACES_PER_SHARD = 16
_MIN_SHARDS = 8
#: errors of the whole server, after which the next tables are not tried
_SERVER_WIDE_ERRORS = (ServiceUnavailable, Throttled, Unauthenticated)
#: the children of a namespace, or the error of their listing. Records are children that were described by the listing.
Listing = Sequence[str | NamespaceRecord] | CatalogError

_CONFIGURED_CATALOGS_REASON = "the catalogs are named in the configuration and were not listed"


class Reader(Protocol):
    """The calls of a crawl. All raise CatalogError."""

    def list_catalogs(self) -> list[NamespaceRecord]:
        """Return the catalogs, if the configuration does not name them."""

    def list_namespaces(self, parent: Path) -> list[str]:
        """Return the names of the children of a catalog or namespace. Raise NamespaceNotFound."""

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        """Return a catalog or namespace. Raise NamespaceNotFound."""

    def list_all_tables(self, namespace: Path) -> list[str]:
        """Return the names of all tables of a namespace, Lance or not. Raise NamespaceNotFound."""

    def read_table(self, path: Path) -> TableRecord | None:
        """Return a Lance table, None for another table. Raise TableNotFound."""


class Crawl:
    """The crawl of one server: it plans shards and reads them. ``catalogs`` are those that the configuration names."""

    def __init__(self, source: str, reader: Reader, fan: FanOut, catalogs: Sequence[str] | None) -> None:
        self._source = source
        self._reader = reader
        self._fan = fan
        self._catalogs = catalogs

    def plan_shards(self) -> list[Shard]:
        """Return groups of namespaces, with the listing of each namespace. Raise CatalogError if catalogs cannot be listed."""
        catalogs = [] if self._catalogs else self._reader.list_catalogs()
        names = self._catalogs or [record.path[0] for record in catalogs]
        listings: dict[Path, Listing] = {ROOT: catalogs or names}
        listings |= walk_namespaces(names, self._reader.list_namespaces, self._fan)
        # Each shard has its own deadline. A crawl of few namespaces is still divided among several readers.
        count = max(-(-len(listings) // _NAMESPACES_PER_SHARD), _MIN_SHARDS)
        groups = distribute(list(listings), count)
        return [Shard(group, {path: listings[path] for path in group}) for group in groups]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        """Yield the children of each namespace, then its Coverage. Never raise CatalogError."""
        # If a namespace were listed after the tables of the one before, a server that answers late would have nothing to do in between.
        for namespace, tables in self._fan.map_one_ahead(self._list_tables, shard.namespaces):
            coverage = CoverageBuilder(self._source, namespace)
            if namespace == ROOT and self._catalogs:
                coverage.presence = skipped_evidence(_CONFIGURED_CATALOGS_REASON)
            yield from coverage.read(self._read_children(namespace, shard.payload[namespace], tables, coverage))

    def _list_tables(self, namespace: Path) -> list[str]:
        return self._reader.list_all_tables(namespace) if len(namespace) > 1 else []

    def _read_children(
        self, namespace: Path, listing: Listing, tables: list[str] | CatalogError, coverage: CoverageBuilder
    ) -> Iterator[Record]:
        if isinstance(tables, CatalogError):
            raise tables
        yield from self._read_tables(namespace, tables, coverage)
        if isinstance(listing, CatalogError):
            raise listing
        yield from (child for child in listing if isinstance(child, NamespaceRecord))
        paths = [(*namespace, child) for child in listing if isinstance(child, str)]
        yield from coverage.describe_namespaces(
            self._fan.map_with_errors(self._reader.describe_namespace, paths), fatal=_SERVER_WIDE_ERRORS
        )

    def _read_tables(self, namespace: Path, names: list[str], coverage: CoverageBuilder) -> Iterator[TableRecord]:
        vanished: list[str] = []
        yield from self._describe_tables(namespace, names, coverage, vanished)
        if not vanished:
            return
        # Clients change a table by deleting and creating it, so a vanished table may exist again. The listing also shows whether
        # the namespace still exists.
        listed = set(self._reader.list_all_tables(namespace))
        still_missing: list[str] = []
        yield from self._describe_tables(namespace, [name for name in vanished if name in listed], coverage, still_missing)
        for name in still_missing:
            error = TableNotFound("the catalog lists the table, but does not find it by name")
            yield coverage.undescribed_table((*namespace, name), error)

    def _describe_tables(
        self, namespace: Path, names: Sequence[str], coverage: CoverageBuilder, vanished: list[str]
    ) -> Iterator[TableRecord]:
        """Yield the Lance tables among ``names`` and those that could not be described. Append names not found to ``vanished``."""
        for path, result in self._fan.map_with_errors(self._reader.read_table, [(*namespace, name) for name in names]):
            if isinstance(result, TableNotFound):
                vanished.append(path[-1])
            elif isinstance(result, _SERVER_WIDE_ERRORS):
                raise result
            elif isinstance(result, CatalogError):
                yield coverage.undescribed_table(path, result)
            elif result is not None:
                yield result
