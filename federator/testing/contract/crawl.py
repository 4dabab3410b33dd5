"""The crawl face: shards, records and the Coverage that proves them."""

from __future__ import annotations

import pickle

import pytest

from federator.connector import Catalog, ConfigError, ServiceUnavailable
from federator.model import ROOT, Coverage, Kind, NamespaceRecord, Path, Record, TableRecord, fold_digest
from federator.testing.contract.base import MARK, SOURCE, Contract, Location, creates, fresh, needs, writes


class Crawl:
    """One complete crawl, its Coverage checked against its records.

    ``catalog`` cuts the shards; ``worker``, another one on the same source, reads them, since in Spark that happens elsewhere.
    """

    def __init__(self, catalog: Catalog, worker: Catalog) -> None:
        self.records: dict[Path, Record] = {}
        self.coverage: dict[Path, Coverage] = {}
        for shard in catalog.shards():
            pending: list[Record] = []
            for item in worker.read(pickle.loads(pickle.dumps(shard))):  # noqa: S301 - our own bytes
                if isinstance(item, Coverage):
                    self._take(item, pending)
                    pending = []
                else:
                    pending.append(item)
            assert not pending, "records without a Coverage after them"

    def _take(self, coverage: Coverage, records: list[Record]) -> None:
        assert coverage.namespace not in self.coverage, "a namespace was covered twice"
        assert coverage.source == SOURCE
        assert {record.path[:-1] for record in records} <= {coverage.namespace}, "a record of another namespace"
        assert {record.source for record in records} <= {SOURCE}
        assert coverage.records == len(records), "the count does not match"
        assert coverage.digest == fold_digest(record.digest for record in records), "the digest does not match"
        self.coverage[coverage.namespace] = coverage
        for record in records:
            assert record.path not in self.records, "a record was handed over twice"
            self.records[record.path] = record

    def of(self, namespace: Path) -> dict[Path, str]:
        """The digests of a namespace's records."""
        return {path: record.digest for path, record in self.records.items() if path[:-1] == namespace}


class CrawlFace(Contract):
    def test_the_root_and_every_namespace_are_covered(self, catalog: Catalog, worker: Catalog, namespace: Path) -> None:
        crawl = Crawl(catalog, worker)
        namespaces = {path for path, record in crawl.records.items() if record.kind is Kind.NAMESPACE}
        assert set(crawl.coverage) >= {ROOT, namespace}
        assert set(crawl.coverage) >= namespaces
        assert set(crawl.coverage) - {ROOT} <= namespaces
        assert crawl.coverage[namespace].complete
        assert crawl.coverage[namespace].records == 0

    @needs(writes)
    def test_the_crawl_says_what_a_direct_look_says(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        marks = MARK if self.connector.capabilities.keeps_properties else {}
        tables = [self.declared(catalog, namespace, location, properties=marks) for _ in range(3)]
        crawl = Crawl(catalog, worker)
        assert crawl.coverage[namespace].complete
        assert crawl.coverage[namespace].detail.complete
        assert set(crawl.of(namespace)) == {table.path for table in tables}
        for table in tables:
            found = crawl.records[table.path]
            assert isinstance(found, TableRecord)
            assert catalog.describe_table(table.path).digest == found.digest == table.digest
            assert marks.items() <= found.properties.items()
            assert found.canonical == table.canonical
        if namespace:
            assert crawl.records[namespace].digest == catalog.describe_namespace(namespace).digest

    @needs(writes)
    def test_a_second_crawl_has_the_same_digests(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        for _ in range(3):
            self.declared(catalog, namespace, location)
        first, second = Crawl(catalog, worker), Crawl(worker, catalog)
        assert first.of(namespace) == second.of(namespace)
        assert first.coverage[namespace] == second.coverage[namespace]

    @needs(writes)
    def test_the_crawl_shows_what_came_and_went(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        stays, goes = (self.declared(catalog, namespace, location) for _ in range(2))
        catalog.deregister_table(catalog.describe_table(goes.path))
        assert set(Crawl(catalog, worker).of(namespace)) == {stays.path}

    @needs(creates)
    def test_a_namespace_that_went_away_is_not_empty_but_gone(self, catalog: Catalog, worker: Catalog, sibling: Path) -> None:
        catalog.create_namespace(NamespaceRecord(SOURCE, sibling))
        shards = [shard for shard in catalog.shards() if sibling in shard.namespaces]
        assert shards, "a namespace in no shard"
        catalog.drop_namespace(sibling)
        found = [item for shard in shards for item in worker.read(shard) if isinstance(item, Coverage)]
        gone = next(item for item in found if item.namespace == sibling)
        assert not gone.complete
        assert not gone.found
        assert gone.presence.code == 1
        assert gone.presence.reason

    @needs(lambda c: c.make_managed is not None)
    def test_a_managed_table_is_in_the_crawl_as_such(self, catalog: Catalog, worker: Catalog, namespace: Path) -> None:
        assert self.make_managed is not None
        self.make_managed(namespace, "managed_one")
        crawl = Crawl(catalog, worker)
        assert crawl.records[(*namespace, "managed_one")].kind is Kind.MANAGED_TABLE

    @needs(lambda c: c.make_foreign is not None)
    def test_a_foreign_object_is_not_in_the_crawl(self, catalog: Catalog, worker: Catalog, namespace: Path) -> None:
        assert self.make_foreign is not None
        self.make_foreign(namespace, "foreign_one")
        crawl = Crawl(catalog, worker)
        assert crawl.of(namespace) == {}
        assert crawl.coverage[namespace].complete

    @needs(lambda c: c.unreachable is not None)
    def test_a_catalog_that_does_not_answer_is_an_error_and_not_empty(self, properties: dict[str, str]) -> None:
        dead = self.connector.configure({**properties, **(self.unreachable or {})})
        try:
            with self.connector.open(SOURCE, dead) as catalog:
                coverage = [item for shard in catalog.shards() for item in catalog.read(shard)]
        except ServiceUnavailable:
            return
        assert coverage, "an unreachable catalog looked empty"
        assert not any(isinstance(item, Coverage) and item.complete for item in coverage)

    def test_a_ping_proves_the_connection_and_closing_is_harmless_twice(self, properties: dict[str, str]) -> None:
        with self.connector.open(SOURCE, self.connector.configure(properties)) as catalog:
            assert isinstance(catalog.ping(), str)
            catalog.close()

    @needs(lambda c: c.native_page > 0 and writes(c))
    def test_more_tables_than_a_native_page_are_listed_and_crawled(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        wanted = sorted(fresh("t") for _ in range(2 * self.native_page + 1))
        for name in wanted:
            catalog.declare_table(TableRecord(SOURCE, (*namespace, name), location(name)))
        assert sorted(catalog.list_tables(namespace)) == wanted, "a page of the listing was lost or repeated"
        crawl = Crawl(catalog, worker)
        assert sorted(path[-1] for path in crawl.of(namespace)) == wanted, "a page of the crawl was lost or repeated"
        assert crawl.coverage[namespace].complete

    def test_configuration_is_checked(self, properties: dict[str, str]) -> None:
        prefixed = {f"{self.connector.impl}.{key}": value for key, value in properties.items()}
        assert self.connector.configure(prefixed) == self.connector.configure(properties)
        assert self.connector.concurrency(properties) >= 1
        with pytest.raises(ConfigError, match="no-such-key"):
            self.connector.configure({**properties, "no-such-key": "x"})

    def test_the_connector_and_its_settings_travel_to_other_processes(self, properties: dict[str, str]) -> None:
        settings = self.connector.configure(properties)
        assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - our own bytes
        assert type(pickle.loads(pickle.dumps(self.connector))) is type(self.connector)  # noqa: S301 - our own bytes
