"""The crawl of a metastore.

It lists names with the server's filter, then fetches the tables in batches.
Listing names is cheap (60,000/s on one connection). Fetching tables is expensive (about 1,500/s), so only Lance tables are fetched.
The server lists an absent database as empty. A listing is therefore complete only if the database existed before and after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from federator.connector import CatalogError, NamespaceNotFound, ServiceUnavailable, Shard, TableNotFound
from federator.connector.crawl import CoverageBuilder, distribute
from federator.connector.fan_out import result_or_error
from federator.model import ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord
from federator_connectors._hive import records
from federator_connectors._hive.metastore import Metastore

#: tables per response; larger batches are hardly faster and cost the server more memory
BATCH = 500
#: shards per part of a crawl. Each shard has its own deadline; a larger number would increase the overhead.
_SHARDS_PER_PART = 16
#: consecutive connection failures after which the rest of a shard is skipped
_MAX_CONNECT_FAILURES = 2


class Crawl:
    """The crawl of one metastore: it plans shards and reads them."""

    def __init__(self, source: str, store: Metastore, *, parts: int, storage_managed: str) -> None:
        """``parts`` is the number of shards that are read concurrently, ``storage_managed`` the setting of this name."""
        self._source = source
        self._store = store
        self._parts = parts
        self._storage_managed = storage_managed

    def plan_shards(self) -> list[Shard]:
        """Return all namespaces in shards, distributed over ``parts`` readers. Raise ServiceUnavailable.

        The number of tables of a database is unknown at this point. It would cost one request for each database.
        """
        namespaces: list[Path] = [ROOT]
        if self._store.levels == 2:
            for catalog in ((name,) for name in self._store.list_catalogs()):
                namespaces += [catalog, *self._list_databases(catalog)]
        else:
            namespaces += [(name,) for name in self._store.list_databases(ROOT)]
        return [Shard(group) for group in distribute(namespaces, self._parts * _SHARDS_PER_PART)]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        """Yield the children of each namespace, then its Coverage. Never raise CatalogError."""
        unreachable = 0
        for namespace in shard.namespaces:
            coverage = CoverageBuilder(self._source, namespace)
            if unreachable < _MAX_CONNECT_FAILURES:
                yield from coverage.collect(self._read_children(namespace, coverage))
                unreachable = unreachable + 1 if coverage.presence.code == ServiceUnavailable.code else 0
            else:
                coverage.fail(
                    ServiceUnavailable(f"{self._source}: not tried, because the connection attempts before it failed")
                )
            yield coverage.build()

    def read_named_tables(self, database: Path, names: Sequence[str]) -> list[TableRecord]:
        """Return the Lance tables among these names. Raise NamespaceNotFound, or the error of a batch that the server refuses."""
        tables: list[TableRecord] = []
        for start in range(0, len(names), BATCH):
            fetched = self._store.get_tables(database, names[start : start + BATCH])
            tables += [
                records.table_record(
                    self._source, (*database, table.tableName.lower()), table, storage_managed=self._storage_managed
                )
                for table in fetched
                if records.is_lance_table(table)
            ]
        return tables

    def _read_children(self, namespace: Path, coverage: CoverageBuilder) -> Iterator[Record]:
        if len(namespace) == self._store.levels:
            return self._read_tables(namespace, coverage)
        return self._read_namespaces(namespace, coverage)

    def _read_namespaces(self, parent: Path, coverage: CoverageBuilder) -> Iterator[NamespaceRecord]:
        if parent == ROOT:
            names = self._store.list_catalogs() if self._store.levels == 2 else self._store.list_databases(ROOT)
        else:
            self._store.get_catalog(parent)
            names = self._store.list_databases(parent)
            self._store.get_catalog(parent)
        paths = [(*parent, name) for name in names]
        results = ((path, result_or_error(self._describe_namespace, path)) for path in paths)
        yield from coverage.describe_namespaces(results, fatal=(ServiceUnavailable,))

    def _describe_namespace(self, path: Path) -> NamespaceRecord:
        if len(path) == self._store.levels:
            return records.database_record(self._source, path, self._store.get_database(path))
        return records.catalog_record(self._source, path, self._store.get_catalog(path))

    def _read_tables(self, database: Path, coverage: CoverageBuilder) -> Iterator[TableRecord]:
        self._store.get_database(database)
        names = sorted(set(self._store.list_marked_tables(database).names))
        vanished: list[str] = []
        for start in range(0, len(names), BATCH):
            yield from self._read_batch(database, names[start : start + BATCH], coverage, vanished)
        if vanished:
            yield from self._recheck_vanished(database, vanished, coverage)
        self._store.get_database(database)

    def _recheck_vanished(self, database: Path, names: list[str], coverage: CoverageBuilder) -> Iterator[TableRecord]:
        """Yield those tables that are still listed after they were not found. They are present, but undescribed."""
        listed = set(self._store.list_marked_tables(database).names)
        for name in names:
            if name in listed:
                error = TableNotFound("the metastore lists the table, but does not find it by name")
                yield coverage.undescribed_table((*database, name), error)

    def _read_batch(
        self, database: Path, names: list[str], coverage: CoverageBuilder, vanished: list[str]
    ) -> Iterator[TableRecord]:
        """Yield the tables of a batch of names. Append names that are not found to ``vanished``."""
        try:
            fetched = {table.tableName.lower(): table for table in self._store.get_tables(database, names)}
        except (ServiceUnavailable, NamespaceNotFound):
            raise
        except CatalogError:
            # One broken table makes the server refuse the whole batch, so each table is fetched alone.
            fetched = {}
        for name in names:
            path = (*database, name)
            try:
                table: Any = fetched.get(name) or self._store.get_table(path)
            except TableNotFound:
                vanished.append(name)
                continue
            except ServiceUnavailable:
                raise
            except CatalogError as error:
                yield coverage.undescribed_table(path, error)
                continue
            if records.is_lance_table(table):
                yield records.table_record(self._source, path, table, storage_managed=self._storage_managed)

    def _list_databases(self, catalog: Path) -> list[Path]:
        try:
            return [(*catalog, name) for name in self._store.list_databases(catalog)]
        except ServiceUnavailable:
            raise
        except CatalogError:
            # Reading the catalog fails, too, and its Coverage then records the error.
            return []
