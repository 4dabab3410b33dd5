"""The bulk crawl of a metastore: names by the server's filter, then whole tables in batches.

Listing names is cheap (60,000/s on one connection), whole tables are not (about 1,500/s), so only Lance tables are fetched.
A database that does not exist lists as empty: it counts as complete only if it was seen before and after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from federator.connector import CatalogError, NamespaceNotFound, ServiceUnavailable, Shard, TableNotFound
from federator.model import COMPLETE, ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord, failed, fold_digest
from federator_connectors._hive import convert
from federator_connectors._hive.metastore import Metastore

#: tables in one answer; larger ones are hardly faster and cost the server more memory
BATCH = 500
#: shards per part of a crawl: each has a deadline of its own, and few enough keep their overhead small
_SHARDS_PER_PART = 16
#: failures to connect in a row after which the rest of a shard is given up
_PATIENCE = 2


class _Tally:
    """The evidence of one namespace while it is read."""

    def __init__(self, source: str, namespace: Path) -> None:
        self._source = source
        self._namespace = namespace
        self._digests: list[str] = []
        self._undescribed = 0
        self.presence = COMPLETE
        self.detail = COMPLETE
        self.found = True

    def add(self, record: Record) -> Record:
        self._digests.append(record.digest)
        return record

    def fail(self, error: CatalogError) -> None:
        self.presence = self.detail = failed(error.code, error.message)

    def undescribed(self, name: str, error: CatalogError) -> None:
        self._undescribed += 1
        self.detail = failed(error.code, f"{self._undescribed} could not be described, the last one {name!r}: {error.message}")

    def gone(self) -> None:
        """The namespace is not there, whatever of it was seen before."""
        self.found = False
        self.fail(NamespaceNotFound("the namespace does not exist any more"))

    def coverage(self) -> Coverage:
        return Coverage(
            self._source,
            self._namespace,
            self.presence,
            self.detail,
            len(self._digests),
            fold_digest(self._digests),
            self.found,
        )


class Crawl:
    """Shards and reads one metastore."""

    def __init__(self, source: str, store: Metastore, *, parts: int) -> None:
        """``parts``: how many shards are read at once."""
        self._source = source
        self._store = store
        self._parts = parts

    def shards(self) -> list[Shard]:
        """The namespaces in shards for ``parts`` readers that take turns. Raises ServiceUnavailable.

        How many tables a database has is not asked beforehand: reading says so, and asking would cost a request for each.
        """
        namespaces: list[Path] = [ROOT]
        if self._store.levels == 2:
            for catalog in ((name,) for name in self._store.catalogs()):
                namespaces += [catalog, *self._databases(catalog)]
        else:
            namespaces += [(name,) for name in self._store.databases(ROOT)]
        return _dealt(namespaces, self._parts)

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        """For each namespace its children, then its Coverage; never raises CatalogError."""
        unreachable = 0
        for namespace in shard.namespaces:
            tally = _Tally(self._source, namespace)
            if unreachable >= _PATIENCE:
                tally.fail(ServiceUnavailable(f"{self._source}: not tried, the metastore could not be reached just before"))
            else:
                try:
                    for record in self._children(namespace, tally):
                        yield tally.add(record)
                    unreachable = 0
                except ServiceUnavailable as error:
                    unreachable += 1
                    tally.fail(error)
                except CatalogError as error:
                    tally.fail(error)
            yield tally.coverage()

    def _children(self, namespace: Path, tally: _Tally) -> Iterator[Record]:
        if len(namespace) == self._store.levels:
            return self._tables(namespace, tally)
        return self._namespaces(namespace, tally)

    def _namespaces(self, parent: Path, tally: _Tally) -> Iterator[NamespaceRecord]:
        if parent == ROOT:
            names = self._store.catalogs() if self._store.levels == 2 else self._store.databases(ROOT)
        else:
            try:
                self._store.catalog(parent)
                names = self._store.databases(parent)
                self._store.catalog(parent)
            except NamespaceNotFound:
                tally.gone()
                return
        for name in names:
            path = (*parent, name)
            try:
                yield self._described(path)
            except NamespaceNotFound:
                continue
            except ServiceUnavailable:
                raise
            except CatalogError as error:
                tally.undescribed(name, error)
                yield NamespaceRecord(self._source, path)

    def _described(self, path: Path) -> NamespaceRecord:
        if len(path) == self._store.levels:
            return convert.database_record(self._source, path, self._store.database(path))
        return convert.catalog_record(self._source, path, self._store.catalog(path))

    def _tables(self, database: Path, tally: _Tally) -> Iterator[TableRecord]:
        try:
            self._store.database(database)
            names = sorted(set(self._store.marked_tables(database).names))
            vanished: list[str] = []
            for start in range(0, len(names), BATCH):
                yield from self._batch(database, names[start : start + BATCH], tally, vanished)
            if vanished:
                yield from self._vanished(database, vanished, tally)
            self._store.database(database)
        except NamespaceNotFound:
            tally.gone()

    def _vanished(self, database: Path, names: list[str], tally: _Tally) -> Iterator[TableRecord]:
        """Of tables that were listed and then not found, those that are still listed: present, whatever a second answer says."""
        listed = set(self._store.marked_tables(database).names)
        for name in names:
            if name in listed:
                error = TableNotFound("it is listed, and not found when it is asked for")
                tally.undescribed(name, error)
                yield convert.undescribed(self._source, (*database, name), error.message)

    def _batch(self, database: Path, names: list[str], tally: _Tally, vanished: list[str]) -> Iterator[TableRecord]:
        """The tables of a batch of names; those that are not found go to ``vanished``."""
        try:
            answered = {table.tableName.lower(): table for table in self._store.tables(database, names)}
        except (ServiceUnavailable, NamespaceNotFound):
            raise
        except CatalogError:
            # One broken table makes the server refuse all of them; asked singly, the others answer.
            answered = {}
        for name in names:
            path = (*database, name)
            try:
                table: Any = answered.get(name) or self._store.table(path)
            except TableNotFound:
                vanished.append(name)
                continue
            except ServiceUnavailable:
                raise
            except CatalogError as error:
                tally.undescribed(name, error)
                yield convert.undescribed(self._source, path, error.message)
                continue
            if convert.is_lance(table):
                yield convert.table_record(self._source, path, table)

    def _databases(self, catalog: Path) -> list[Path]:
        try:
            return [(*catalog, name) for name in self._store.databases(catalog)]
        except ServiceUnavailable:
            raise
        except CatalogError:
            # The catalog's own Coverage will say so.
            return []


def _dealt(namespaces: list[Path], parts: int) -> list[Shard]:
    """Namespaces in shards such that every ``parts``-th one makes an equal part of them."""
    shards = min(len(namespaces), parts * _SHARDS_PER_PART)
    return [Shard(tuple(namespaces[number::shards])) for number in range(shards)]
