"""Tests of the change feed, for connectors that have one.

A feed may name more than has changed, and a namespace instead of the objects in it. It must not omit a change, and it must not report
"no change" if it does not know.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import Catalog, CatalogChanges, Unsupported
from federator.model import ROOT, Coverage, NamespaceRecord, Path, TableRecord, parent_path
from federator.testing.contract.base import (
    MARKER,
    SOURCE,
    Contract,
    Location,
    requires,
    supports_creating,
    supports_writes,
    unique_name,
)


def supports_change_feed(contract: type[Contract]) -> bool:
    return contract.connector.capabilities.change_feed and contract.keeps_feed


def _supports_feed_and_writes(contract: type[Contract]) -> bool:
    return supports_change_feed(contract) and supports_writes(contract)


def _names_path(changes: CatalogChanges, path: Path) -> bool:
    """Whether the changes contain a table or its namespace."""
    assert changes.full_crawl is None
    return path in changes.tables or parent_path(path) in changes.namespaces


class FeedContract(Contract):
    default_operation = "change feed"

    @requires(_supports_feed_and_writes)
    def test_the_feed_names_what_came_changed_and_went(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        cursor = catalog.current_feed_cursor()
        table = self.declare_new_table(catalog, namespace, location)
        changes = catalog.changes_since(cursor)
        assert _names_path(changes, table.path)
        if self.connector.capabilities.can_alter and self.connector.capabilities.keeps_properties:
            table = catalog.update_table(table, replace(table, properties=MARKER))
            changed = catalog.changes_since(changes.cursor)
            assert _names_path(changed, table.path)
            changes = changed
        catalog.deregister_table(table)
        assert _names_path(catalog.changes_since(changes.cursor), table.path)
        assert _names_path(catalog.changes_since(cursor), table.path), "a repeated request has the same changes"

    @requires(_supports_feed_and_writes)
    def test_the_feed_names_nothing_twice_unasked(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        cursor = catalog.current_feed_cursor()
        table = self.declare_new_table(catalog, namespace, location)
        changes = catalog.changes_since(cursor)
        assert not _names_path(catalog.changes_since(changes.cursor), table.path)

    @requires(lambda c: supports_change_feed(c) and supports_creating(c))
    def test_the_feed_names_namespaces_that_came_and_went(self, catalog: Catalog, new_namespace_path: Path) -> None:
        cursor = catalog.current_feed_cursor()
        catalog.create_namespace(NamespaceRecord(SOURCE, new_namespace_path))
        changes = catalog.changes_since(cursor)
        assert changes.full_crawl is None
        assert {new_namespace_path, parent_path(new_namespace_path)} & changes.namespaces
        catalog.drop_namespace(new_namespace_path)
        assert {new_namespace_path, parent_path(new_namespace_path)} & catalog.changes_since(changes.cursor).namespaces

    @requires(supports_change_feed)
    def test_a_cursor_that_the_feed_cannot_follow_asks_for_a_full_crawl(self, catalog: Catalog) -> None:
        changes = catalog.changes_since("not a cursor of this feed")
        assert changes.full_crawl
        assert not changes.namespaces
        assert not changes.tables
        assert catalog.changes_since(changes.cursor).full_crawl is None, "its cursor must be valid after the full crawl"

    @requires(_supports_feed_and_writes)
    def test_some_namespaces_are_crawled_as_in_the_whole(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        tables = [self.declare_new_table(catalog, namespace, location) for _ in range(2)]
        namespaces = [namespace] if namespace == ROOT else [parent_path(namespace), namespace]
        items = [item for shard in catalog.plan_shards_for(namespaces) for item in worker.read_shard(shard)]
        coverage = {item.namespace: item for item in items if isinstance(item, Coverage)}
        assert coverage.keys() >= set(namespaces)
        assert all(coverage[path].complete for path in namespaces)
        assert {table.path for table in tables} == {item.path for item in items if isinstance(item, TableRecord)}
        missing = (*parent_path(namespace), unique_name("nowhere")) if namespace else None
        if missing is not None:
            (missing_coverage,) = (
                item
                for shard in catalog.plan_shards_for([missing])
                for item in worker.read_shard(shard)
                if isinstance(item, Coverage)
            )
            assert (missing_coverage.found, missing_coverage.complete) == (False, False)

    @requires(_supports_feed_and_writes)
    def test_tables_are_read_by_name_as_in_a_crawl(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        tables = [self.declare_new_table(catalog, namespace, location) for _ in range(3)]
        crawled = {
            item.path: item
            for shard in catalog.plan_shards_for([namespace])
            for item in worker.read_shard(shard)
            if isinstance(item, TableRecord)
        }
        first, second, dropped = (table.path for table in tables)
        catalog.deregister_table(tables[2])
        names = [first[-1], unique_name("nothing"), second[-1], dropped[-1]]
        named = {table.path: table for table in worker.describe_tables(namespace, names)}
        assert named == {path: crawled[path] for path in (first, second)}
        assert list(worker.describe_tables(namespace, [dropped[-1]])) == []

    @requires(lambda c: c.connector.capabilities.change_feed and not c.keeps_feed)
    def test_a_server_without_a_feed_says_so(self, catalog: Catalog) -> None:
        for call in (catalog.current_feed_cursor, lambda: catalog.changes_since("")):
            with pytest.raises(Unsupported):
                call()
