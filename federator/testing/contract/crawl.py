"""Tests of the crawl interface: shards, records and their coverage."""

from __future__ import annotations

import pickle

import pytest

from federator.connector import Catalog, ConfigError, ServiceUnavailable
from federator.model import ROOT, Coverage, Kind, NamespaceRecord, Path, Record, TableRecord, fold_digest
from federator.testing.contract.base import (
    MARKER,
    SOURCE,
    Contract,
    Location,
    operation,
    requires,
    supports_creating,
    supports_writes,
    unique_name,
)


class Crawl:
    """One complete crawl. Its coverage is checked against its records.

    ``catalog`` plans the shards. ``worker``, another catalog of the same source, reads them, as Spark does in other processes.
    """

    def __init__(self, catalog: Catalog, worker: Catalog) -> None:
        self.records: dict[Path, Record] = {}
        self.coverage: dict[Path, Coverage] = {}
        for shard in catalog.plan_shards():
            pending: list[Record] = []
            for item in worker.read_shard(pickle.loads(pickle.dumps(shard))):  # noqa: S301 - bytes of this process
                if isinstance(item, Coverage):
                    self._take(item, pending)
                    pending = []
                else:
                    pending.append(item)
            assert not pending, "records without a following Coverage"

    def _take(self, coverage: Coverage, records: list[Record]) -> None:
        assert coverage.namespace not in self.coverage, "a namespace has two Coverages"
        assert coverage.source == SOURCE
        assert {record.path[:-1] for record in records} <= {coverage.namespace}, "a record of another namespace"
        assert {record.source for record in records} <= {SOURCE}
        assert coverage.records == len(records), "the count does not match"
        assert coverage.digest == fold_digest(record.digest for record in records), "the digest does not match"
        self.coverage[coverage.namespace] = coverage
        for record in records:
            assert record.path not in self.records, "a record was returned twice"
            self.records[record.path] = record

    def digests_in(self, namespace: Path) -> dict[Path, str]:
        """Return the digests of a namespace's records by path."""
        return {path: record.digest for path, record in self.records.items() if path[:-1] == namespace}


def crawls_everything(contract: type[Contract]) -> bool:
    return contract.crawls_everything


def _crawls_and_writes(contract: type[Contract]) -> bool:
    return supports_writes(contract) and crawls_everything(contract)


class CrawlContract(Contract):
    default_operation = "crawl"

    @requires(crawls_everything)
    def test_the_root_and_every_namespace_are_covered(self, catalog: Catalog, worker: Catalog, namespace: Path) -> None:
        crawl = Crawl(catalog, worker)
        namespaces = {path for path, record in crawl.records.items() if record.kind is Kind.NAMESPACE}
        assert set(crawl.coverage) >= {ROOT, namespace}
        assert set(crawl.coverage) >= namespaces
        assert set(crawl.coverage) - {ROOT} <= namespaces
        assert crawl.coverage[namespace].complete
        assert crawl.coverage[namespace].records == 0

    @requires(_crawls_and_writes)
    def test_the_crawl_says_what_a_direct_look_says(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        marker = MARKER if self.connector.capabilities.keeps_properties else {}
        tables = [self.declare_new_table(catalog, namespace, location, properties=marker) for _ in range(3)]
        crawl = Crawl(catalog, worker)
        assert crawl.coverage[namespace].complete
        assert crawl.coverage[namespace].detail.complete
        assert set(crawl.digests_in(namespace)) == {table.path for table in tables}
        for table in tables:
            record = crawl.records[table.path]
            assert isinstance(record, TableRecord)
            assert catalog.describe_table(table.path).digest == record.digest == table.digest
            assert marker.items() <= record.properties.items()
            assert record.canonical == table.canonical
        if namespace:
            assert crawl.records[namespace].digest == catalog.describe_namespace(namespace).digest

    @requires(_crawls_and_writes)
    def test_a_second_crawl_has_the_same_digests(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        for _ in range(3):
            self.declare_new_table(catalog, namespace, location)
        first, second = Crawl(catalog, worker), Crawl(worker, catalog)
        assert first.digests_in(namespace) == second.digests_in(namespace)
        assert first.coverage[namespace] == second.coverage[namespace]

    @requires(_crawls_and_writes)
    def test_the_crawl_shows_what_came_and_went(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        stays, goes = (self.declare_new_table(catalog, namespace, location) for _ in range(2))
        catalog.deregister_table(catalog.describe_table(goes.path))
        assert set(Crawl(catalog, worker).digests_in(namespace)) == {stays.path}

    @requires(supports_creating)
    def test_a_namespace_that_went_away_is_not_empty_but_gone(
        self, catalog: Catalog, worker: Catalog, new_namespace_path: Path
    ) -> None:
        catalog.create_namespace(NamespaceRecord(SOURCE, new_namespace_path))
        shards = [shard for shard in catalog.plan_shards() if new_namespace_path in shard.namespaces]
        assert shards, "a namespace in no shard"
        catalog.drop_namespace(new_namespace_path)
        coverages = [item for shard in shards for item in worker.read_shard(shard) if isinstance(item, Coverage)]
        coverage = next(item for item in coverages if item.namespace == new_namespace_path)
        assert not coverage.complete
        assert not coverage.found
        assert coverage.presence.code == 1
        assert coverage.presence.reason

    @requires(lambda c: c.make_managed is not None and crawls_everything(c))
    def test_a_managed_table_is_in_the_crawl_as_such(self, catalog: Catalog, worker: Catalog, namespace: Path) -> None:
        assert self.make_managed is not None
        self.make_managed(namespace, "managed_one")
        crawl = Crawl(catalog, worker)
        assert crawl.records[(*namespace, "managed_one")].kind is Kind.MANAGED_TABLE

    @requires(lambda c: c.make_foreign is not None and crawls_everything(c))
    def test_a_foreign_object_is_not_in_the_crawl(self, catalog: Catalog, worker: Catalog, namespace: Path) -> None:
        assert self.make_foreign is not None
        self.make_foreign(namespace, "foreign_one")
        crawl = Crawl(catalog, worker)
        assert crawl.digests_in(namespace) == {}
        assert crawl.coverage[namespace].complete

    @requires(lambda c: c.unreachable is not None)
    def test_a_catalog_that_does_not_answer_is_an_error_and_not_empty(self, properties: dict[str, str]) -> None:
        dead = self.connector.parse_settings({**properties, **(self.unreachable or {})})
        try:
            with self.connector.open(SOURCE, dead) as catalog:
                coverage = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
        except ServiceUnavailable:
            return
        assert coverage, "an unreachable catalog looked empty"
        assert not any(isinstance(item, Coverage) and item.complete for item in coverage)

    @operation("settings")
    def test_a_ping_proves_the_connection_and_closing_is_harmless_twice(self, properties: dict[str, str]) -> None:
        with self.connector.open(SOURCE, self.connector.parse_settings(properties)) as catalog:
            assert isinstance(catalog.ping(), str)
            catalog.close()

    @requires(lambda c: c.native_page > 0 and _crawls_and_writes(c))
    def test_more_tables_than_a_native_page_are_listed_and_crawled(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        names = sorted(unique_name("t") for _ in range(2 * self.native_page + 1))
        for name in names:
            catalog.declare_table(TableRecord(SOURCE, (*namespace, name), location(name)))
        assert sorted(catalog.list_tables(namespace)) == names, "a page of the listing was lost or repeated"
        crawl = Crawl(catalog, worker)
        assert sorted(path[-1] for path in crawl.digests_in(namespace)) == names, "a page of the crawl was lost or repeated"
        assert crawl.coverage[namespace].complete

    @operation("settings")
    def test_configuration_is_checked(self, properties: dict[str, str]) -> None:
        prefixed = {f"{self.connector.impl}.{key}": value for key, value in properties.items()}
        assert self.connector.parse_settings(prefixed) == self.connector.parse_settings(properties)
        assert self.connector.crawl_concurrency(properties) >= 1
        with pytest.raises(ConfigError, match="no-such-key"):
            self.connector.parse_settings({**properties, "no-such-key": "x"})

    @operation("settings")
    def test_the_connector_and_its_settings_travel_to_other_processes(self, properties: dict[str, str]) -> None:
        settings = self.connector.parse_settings(properties)
        assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - bytes of this process
        assert type(pickle.loads(pickle.dumps(self.connector))) is type(self.connector)  # noqa: S301 - bytes of this process
