"""The crawl: the tree of namespaces while the shards are cut, their properties and tables inside the shards.

Polaris answers a listing with names only and a missing namespace with an error, so the least is one request for each listing of a
catalog or namespace, one for each namespace's properties, and one for each table. An answered listing proves that its namespace was
there; it is asked again only if a table that it named has gone, since then the namespace may have gone with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from federator.connector import (
    CatalogError,
    NamespaceNotFound,
    ServiceUnavailable,
    Shard,
    TableNotFound,
    Throttled,
    Unauthenticated,
)
from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Evidence,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed,
    fold_digest,
    skipped,
)
from federator_connectors._polaris import records
from federator_connectors._polaris.client import Client
from federator_connectors._polaris.fan import Fan

#: each shard has a deadline of its own, and few namespaces are still for several readers
_NAMESPACES_PER_SHARD = 16
_LEAST_SHARDS = 8
#: what concerns the whole server, so that going on table by table is of no use
_WIDE = (ServiceUnavailable, Throttled, Unauthenticated)
_NAMED = "the catalogs are named in polaris.catalogs and were not listed"


@dataclass(frozen=True)
class Listing:
    """What a namespace was found to hold while the shards were cut: the names of its namespaces, or why they are not known.

    ``described`` are those whose records came with the listing, as catalogs' do.
    """

    names: tuple[str, ...] = ()
    described: tuple[NamespaceRecord, ...] = ()
    error: CatalogError | None = None
    presence: Evidence = COMPLETE


class _Tally:
    """The evidence of one namespace while it is read."""

    def __init__(self, source: str, namespace: Path, presence: Evidence) -> None:
        self._source = source
        self._namespace = namespace
        self._digests: list[str] = []
        self._undescribed = 0
        self._presence = presence
        self._detail = COMPLETE
        self._found = True

    def add(self, record: Record) -> Record:
        self._digests.append(record.digest)
        return record

    def fail(self, error: CatalogError) -> None:
        self._presence = self._detail = failed(error.code, error.message)
        self._found = not isinstance(error, NamespaceNotFound)

    def undescribed(self, name: str, error: CatalogError) -> None:
        self._undescribed += 1
        self._detail = failed(error.code, f"{self._undescribed} could not be described, the last one {name!r}: {error.message}")

    def coverage(self) -> Coverage:
        digest = fold_digest(self._digests)
        return Coverage(self._source, self._namespace, self._presence, self._detail, len(self._digests), digest, self._found)


class Crawl:
    """Shards and reads one server."""

    def __init__(self, source: str, client: Client, fan: Fan, catalogs: Sequence[str] | None) -> None:
        self._source = source
        self._client = client
        self._fan = fan
        self._catalogs = catalogs

    def shards(self) -> list[Shard]:
        """Groups of namespaces, each with what was found to be inside. Raises CatalogError where catalogs cannot be listed."""
        found: dict[Path, Listing] = {ROOT: self._root()}
        waiting: list[Path] = [(name,) for name in _names(found[ROOT])]
        while waiting:
            inside: list[Path] = []
            for path, names in self._fan.each(self._client.namespaces, waiting):
                listing = Listing(error=names) if isinstance(names, CatalogError) else Listing(tuple(names))
                found[path] = listing
                inside += [(*path, name) for name in listing.names]
            waiting = inside
        paths = list(found)
        # Dealt, since the namespaces of one catalog, which follow each other, are of like size.
        count = max(-(-len(paths) // _NAMESPACES_PER_SHARD), min(len(paths), _LEAST_SHARDS))
        groups = [tuple(paths[number::count]) for number in range(count)]
        return [Shard(group, {path: found[path] for path in group}) for group in groups]

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        """For each namespace its children, then its Coverage; never raises CatalogError."""
        payload: Mapping[Path, Listing] = shard.payload
        for namespace in shard.namespaces:
            listing = payload[namespace]
            tally = _Tally(self._source, namespace, listing.presence)
            try:
                for record in self._children(namespace, listing, tally):
                    yield tally.add(record)
                if listing.error:
                    raise listing.error
            except CatalogError as error:
                tally.fail(error)
            yield tally.coverage()

    def _root(self) -> Listing:
        if self._catalogs:
            return Listing(tuple(self._catalogs), presence=skipped(_NAMED))
        listed = self._client.catalogs()
        return Listing(described=tuple(records.catalog_record(self._source, name, told) for name, told in listed.items()))

    def _children(self, namespace: Path, listing: Listing, tally: _Tally) -> Iterator[Record]:
        if len(namespace) > 1:
            yield from self._tables(namespace, tally)
        yield from listing.described
        yield from self._namespaces(namespace, listing.names, tally)

    def _namespaces(self, parent: Path, names: Sequence[str], tally: _Tally) -> Iterator[NamespaceRecord]:
        for path, found in self._fan.each(self._describe, [(*parent, name) for name in names]):
            if isinstance(found, NamespaceNotFound):
                # Dropped since it was listed; its own Coverage says so, too.
                continue
            if isinstance(found, _WIDE):
                raise found
            if isinstance(found, CatalogError):
                tally.undescribed(path[-1], found)
                yield NamespaceRecord(self._source, path)
            else:
                yield found

    def _describe(self, path: Path) -> NamespaceRecord:
        if len(path) == 1:
            return records.catalog_record(self._source, path[0], self._client.catalog(path[0]))
        return records.namespace_record(self._source, path, self._client.namespace(path))

    def _tables(self, namespace: Path, tally: _Tally) -> Iterator[TableRecord]:
        names = self._client.tables(namespace)
        vanished: list[str] = []
        yield from self._described(namespace, names, tally, vanished)
        if not vanished:
            return
        # A table that is changed is deleted and made again, so that one may have come back; and the namespace may be gone.
        there = set(self._client.tables(namespace))
        again: list[str] = []
        yield from self._described(namespace, [name for name in vanished if name in there], tally, again)
        for name in again:
            error = TableNotFound("it is listed, and not found when it is asked for")
            tally.undescribed(name, error)
            yield records.undescribed(self._source, (*namespace, name), error.message)

    def _described(self, namespace: Path, names: Sequence[str], tally: _Tally, vanished: list[str]) -> Iterator[TableRecord]:
        """The Lance tables among ``names``, and what would not say what it is; names of those not found go to ``vanished``."""
        for path, found in self._fan.each(self._client.table, [(*namespace, name) for name in names]):
            if isinstance(found, TableNotFound):
                vanished.append(path[-1])
            elif isinstance(found, _WIDE):
                raise found
            elif isinstance(found, CatalogError):
                tally.undescribed(path[-1], found)
                yield records.undescribed(self._source, path, found.message)
            elif records.is_lance(found):
                yield records.table_record(self._source, path, found)


def _names(listing: Listing) -> list[str]:
    return [*listing.names, *(record.path[0] for record in listing.described)]
